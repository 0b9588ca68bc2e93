//! One kernel by its name, with the calls that wait for it. The process behind it may be replaced; the name stays.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use codeworkspace_protocol::session::{
    ErrorCode, ExecuteRequest, ExecutionOutcome, KernelStatus, QUEUE_DEPTH, SessionError,
};
use tokio::sync::{mpsc, oneshot};

use super::end::end_of;
use super::environment::{assertion, fault};
use super::launch::Launcher;
use super::spec::KernelSpec;
use super::{Kernel, LaunchError};
use crate::memory::{CONTROL_GROUPS, oom_kills};
use crate::serve::call::{Call, Stop};
use crate::serve::children::Children;
use crate::serve::idle::Activity;
use crate::serve::private::PrivateFolder;
use crate::serve::queue::Queue;
use crate::serve::transcript::End;

/// Restarts that may wait to be begun.
const RESTARTS_AHEAD: usize = 4;

const NOT_BEGUN: &str = "it had not begun";

/// What every kernel of a session starts from.
#[derive(Clone)]
pub(in crate::serve) struct Setup {
    pub(in crate::serve) folder: PrivateFolder,
    pub(in crate::serve) root: String,
    pub(in crate::serve) environment: BTreeMap<OsString, OsString>,
    pub(in crate::serve) children: Children,
}

/// An execution that waits or runs.
pub(in crate::serve) struct Job {
    pub(in crate::serve) call: Call,
    pub(in crate::serve) request: ExecuteRequest,
    pub(in crate::serve) activity: Activity,
}

type Restarted = oneshot::Sender<Result<(), LaunchError>>;

/// A kernel as callers know it.
pub(in crate::serve) struct KernelLane {
    name: String,
    language: String,
    queue: Queue<Job>,
    restart: mpsc::Sender<Restarted>,
    restarts: AtomicU64,
    busy: AtomicBool,
}

/// The only one who talks to the kernel.
struct Worker {
    lane: Arc<KernelLane>,
    launcher: Launcher,
    kernel: Option<Kernel>,
    /// What the next call that runs should know.
    untold: Option<String>,
}

impl KernelLane {
    /// Starts the kernel and answers when it is ready.
    pub(in crate::serve) async fn start(name: &str, setup: Setup) -> Result<Arc<Self>, LaunchError> {
        let jupyter_path = setup.environment.get(std::ffi::OsStr::new("JUPYTER_PATH"));
        let spec = KernelSpec::find(name, jupyter_path.map(OsString::as_os_str)).map_err(|error| {
            LaunchError::Io {
                name: name.to_owned(),
                error,
            }
        })?;
        let mut environment = setup.environment;
        environment.extend(
            spec.env
                .iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value))),
        );
        let launcher = Launcher {
            name: name.to_owned(),
            spec,
            folder: setup.folder,
            root: setup.root,
            environment,
            children: setup.children,
        };
        let kernel = launcher.start().await?;
        let (restart, restarts) = mpsc::channel(RESTARTS_AHEAD);
        let lane = Arc::new(Self {
            name: name.to_owned(),
            language: launcher.spec.language.clone(),
            queue: Queue::new(QUEUE_DEPTH),
            restart,
            restarts: AtomicU64::new(0),
            busy: AtomicBool::new(false),
        });
        let worker = Worker {
            lane: Arc::clone(&lane),
            launcher,
            kernel: Some(kernel),
            untold: None,
        };
        tokio::spawn(worker.work(restarts));
        Ok(lane)
    }

    pub(in crate::serve) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::serve) fn status(&self) -> KernelStatus {
        KernelStatus {
            name: self.name.clone(),
            restarts: self.restarts.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
        }
    }

    /// Whether the request can be served at all.
    pub(in crate::serve) fn check(&self, request: &ExecuteRequest) -> Result<(), SessionError> {
        let wrong = |message| Err(SessionError::new(ErrorCode::InvalidRequest, message));
        if let Some(fault) = fault(&request.environment) {
            return wrong(fault);
        }
        if !request.environment.is_empty() && assertion(&self.language, &request.environment).is_none() {
            return wrong(format!(
                "environment variables cannot be set in the kernel `{}`: its language `{}` is not known here",
                self.name, self.language
            ));
        }
        Ok(())
    }

    /// Takes an execution into the queue.
    pub(in crate::serve) fn submit(&self, job: Job) -> Result<(), SessionError> {
        self.queue.push(job).map_err(|_| {
            SessionError::new(
                ErrorCode::QueueFull,
                format!(
                    "{QUEUE_DEPTH} executions wait for the kernel `{}` already",
                    self.name
                ),
            )
        })
    }

    /// Ends a call that has not begun.
    pub(in crate::serve) fn withdraw(&self, call: &Call, why: &Stop) {
        for job in self.queue.take_if(|job| job.call.is(call)) {
            job.call.transcript.finish(why.end().remark(NOT_BEGUN));
        }
    }

    /// Replaces the process; what runs in it is cancelled.
    pub(in crate::serve) async fn restart(&self) -> Result<(), SessionError> {
        let (sender, restarted) = oneshot::channel();
        let ending = || SessionError::new(ErrorCode::Stopping, "the session is ending");
        self.restart.send(sender).await.map_err(|_| ending())?;
        restarted
            .await
            .map_err(|_| ending())?
            .map_err(|error| SessionError::new(ErrorCode::Internal, error.to_string()))
    }
}

impl Worker {
    async fn work(mut self, mut restarts: mpsc::Receiver<Restarted>) {
        let lane = Arc::clone(&self.lane);
        loop {
            tokio::select! {
                job = lane.queue.next() => {
                    lane.busy.store(true, Ordering::Relaxed);
                    let restart = {
                        let execution = self.execute(&job);
                        tokio::select! {
                            end = execution => {
                                job.call.transcript.finish(end);
                                None
                            }
                            restart = restarts.recv() => restart,
                        }
                    };
                    if let Some(restarted) = restart {
                        let stop = Stop::Cancelled("the kernel was restarted".to_owned());
                        job.call.transcript.finish(stop.end());
                        let _ = restarted.send(self.replace().await);
                    }
                    lane.busy.store(false, Ordering::Relaxed);
                    drop(job.activity);
                }
                Some(restarted) = restarts.recv() => {
                    // Whoever asked may be gone.
                    let _ = restarted.send(self.replace().await);
                }
            }
        }
    }

    async fn replace(&mut self) -> Result<(), LaunchError> {
        if let Some(mut kernel) = self.kernel.take() {
            kernel.end().await;
        }
        self.kernel = Some(self.launcher.start().await?);
        self.lane.restarts.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Provides a living kernel, without variables if the call wants that.
    async fn provide(&mut self, clear: bool) -> Result<(), LaunchError> {
        let Some(kernel) = &self.kernel else {
            return self.replace().await;
        };
        if let Some(ending) = kernel.process.ending() {
            if !kernel.fresh && !clear {
                self.untold = Some(format!(
                    "the kernel had ended before ({ending}); this ran in a new process, without the variables of the old one"
                ));
            }
            return self.replace().await;
        }
        if clear && !kernel.fresh {
            return self.replace().await;
        }
        Ok(())
    }

    /// Everything that comes before the code. `Err` is the call's end.
    async fn prepare(&mut self, job: &Job) -> Result<(), End> {
        let Job { call, request, .. } = job;
        let mode = self.launcher.spec.interrupt_mode;
        let mut clear = request.clear_context;
        let mut again = true;
        loop {
            tokio::select! {
                biased;
                stop = call.stopped() => return Err(stop.end().remark(NOT_BEGUN)),
                provided = self.provide(clear) => {
                    provided.map_err(|error| End::new(ExecutionOutcome::Died).remark(error.to_string()))?;
                }
            }
            let code = assertion(&self.lane.language, &request.environment)
                .filter(|_| !request.environment.is_empty());
            let (Some(code), Some(kernel)) = (code, &mut self.kernel) else {
                return Ok(());
            };
            let ran = kernel
                .run(&code, None, mode, call.stopped_within(request.timeout_ms))
                .await;
            match (&ran.stop, ran.death) {
                (Some(stop), None) => return Err(stop.end().remark(NOT_BEGUN)),
                // It was about to end when the call came. None of the call's own code has run.
                (None, Some(_)) if again => (again, clear) = (false, false),
                (None, None) if !ran.error => return Ok(()),
                _ => {
                    return Err(end_of(&ran, false)
                        .remark("the environment could not be set, and the code did not run"));
                }
            }
        }
    }

    async fn execute(&mut self, job: &Job) -> End {
        if let Err(end) = self.prepare(job).await {
            return end;
        }
        let Job { call, request, .. } = job;
        let kills_before = oom_kills(Path::new(CONTROL_GROUPS));
        let mode = self.launcher.spec.interrupt_mode;
        let Some(kernel) = &mut self.kernel else {
            return End::new(ExecutionOutcome::Died).remark("there is no kernel");
        };
        kernel.fresh = false;
        call.transcript.start();
        let stop = call.stopped_within(request.timeout_ms);
        let ran = kernel
            .run(&request.code, Some(&call.transcript), mode, stop)
            .await;
        let end = end_of(&ran, was_killed(kills_before));
        match self.untold.take() {
            Some(remark) => end.remark(remark),
            None => end,
        }
    }
}

/// Whether the node's kernel has killed a process of the container since; where that cannot be read, nothing is claimed.
fn was_killed(kills_before: Option<u64>) -> bool {
    oom_kills(Path::new(CONTROL_GROUPS))
        .zip(kills_before)
        .is_some_and(|(now, before)| now > before)
}
