//! `runner serve`: process 1 of a session's container.
//!
//! Kernels are started first; the port opens when all of them have answered, so that whoever can dial it has a session that works. What
//! callers ask for runs in other processes, with the runner's user id but without its key, its memory or its descriptors.

mod call;
mod children;
mod command;
mod files;
mod http;
mod idle;
mod invocations;
mod kernel;
mod pipes;
mod private;
mod queue;
mod session;
mod transcript;

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codeworkspace_protocol::{Cause, RunRecord, ServeArguments};
use futures::future::try_join_all;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use crate::clock::now;
use crate::environment::body_environment;
use crate::processes::Processes;
use crate::record_file::RecordFile;
use children::Children;
use command::Shell;
use files::Root;
use http::{Callers, router, server_config};
use kernel::{KernelLane, LaunchError, Setup};
use private::PrivateFolder;
use session::{Farewell, Session};

/// Threads that serve calls: one may be busy with a disk.
const THREADS: usize = 4;
/// How long callers may take to hear the end.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long killed processes may take to disappear before the record is written without waiting for them any longer.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Why there is no session.
#[derive(Debug, Error)]
enum ServeError {
    #[error("the session cannot be served: {0}")]
    Io(#[from] io::Error),
    #[error("the session's root {root} cannot be used: {error}")]
    Root { root: String, error: io::Error },
    #[error("{0}")]
    Kernel(#[from] LaunchError),
}

impl ServeError {
    fn cause(&self) -> Cause {
        match self {
            Self::Io(_) | Self::Root { .. } => Cause::RunnerFailed,
            Self::Kernel(_) => Cause::SpawnFailed,
        }
    }
}

/// Serves a session to its end, and says in the termination log why it ended.
pub(crate) fn serve(arguments: &ServeArguments) -> ExitCode {
    let record = RunRecord::running(now());
    let record_file = match RecordFile::open(&arguments.termination_log) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("runner: the session is not served, because its end could not be recorded: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ended = begin(arguments).map(|(runtime, processes)| {
        let ended = runtime.block_on(run(arguments));
        // Nobody else is left to write to the record's file.
        end_all(processes);
        // Tasks that wait for a disk are not waited for.
        runtime.shutdown_background();
        ended
    });
    let (mut record, code, message) = match ended.unwrap_or_else(|error| Err(error.into())) {
        Ok(farewell) => {
            let (cause, message) = match farewell {
                Farewell::Idle(time) => (
                    Cause::IdleTimeout,
                    format!("nobody used the session for {} s", time.as_secs()),
                ),
                Farewell::Stopped => (Cause::Stopped, "the gateway stopped the session".to_owned()),
                Farewell::Signalled(signal) => (
                    Cause::Stopped,
                    format!("the runner was asked to stop (signal {signal})"),
                ),
            };
            let mut record = record.finished(now(), cause);
            record.exit_code = Some(0);
            (record, ExitCode::SUCCESS, message)
        }
        Err(error) => (
            record.finished(now(), error.cause()),
            ExitCode::FAILURE,
            error.to_string(),
        ),
    };
    eprintln!("runner: {message}");
    record.message = Some(message);
    if let Err(error) = record_file.write(&record) {
        eprintln!("runner: the end cannot be recorded: {error}");
    }
    code
}

/// Closes the runner to what will run beside it, with the same user id (ptrace(2), "Ptrace access mode checking").
fn begin(arguments: &ServeArguments) -> io::Result<(tokio::runtime::Runtime, Processes)> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    std::env::set_current_dir(&arguments.root)?;
    let processes = Processes::adopt()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()?;
    Ok((runtime, processes))
}

async fn run(arguments: &ServeArguments) -> Result<Farewell, ServeError> {
    let config = server_config(arguments)?;
    let root = Root::open(Path::new(&arguments.root)).map_err(|error| ServeError::Root {
        root: arguments.root.clone(),
        error: error.into(),
    })?;
    let children = Children::watch()?;
    let setup = Setup {
        folder: PrivateFolder::create()?,
        root: arguments.root.clone(),
        environment: body_environment(std::env::vars_os(), &arguments.root),
        children,
    };
    // Signals from here on end the session in order, also while its kernels start.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let starting = try_join_all(
        arguments
            .kernels
            .iter()
            .map(|kernel| KernelLane::start(kernel, setup.clone())),
    );
    let kernels = tokio::select! {
        kernels = starting => kernels?,
        _ = terminate.recv() => return Ok(Farewell::Signalled(SignalKind::terminate().as_raw_value())),
        _ = interrupt.recv() => return Ok(Farewell::Signalled(SignalKind::interrupt().as_raw_value())),
    };
    let folder = setup.folder.clone();
    let shell = Shell {
        folder: setup.folder,
        root: setup.root,
        environment: setup.environment,
        children: setup.children,
    };
    let session = Session::new(Arc::new(root), kernels, shell);
    let callers = Callers::listen(arguments.port, config).await?;
    eprintln!("runner: the session is served at port {}", callers.port());
    let app = router(Arc::clone(&session));
    let serving = tokio::spawn(async move { axum::serve(callers, app).await });
    let farewell = tokio::select! {
        farewell = session.ending() => farewell,
        _ = terminate.recv() => Farewell::Signalled(SignalKind::terminate().as_raw_value()),
        _ = interrupt.recv() => Farewell::Signalled(SignalKind::interrupt().as_raw_value()),
    };
    session.end(farewell);
    sleep(LAST_WORDS).await;
    serving.abort();
    folder.remove();
    Ok(farewell)
}

/// Ends all other processes. The thread that reaps goes on doing so.
fn end_all(processes: Processes) {
    let deadline = Instant::now() + KILL_LIMIT;
    while processes.kill_all() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}
