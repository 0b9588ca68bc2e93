//! Commands, as `bash` runs them.

mod lane;
mod tasks;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codeworkspace_protocol::session::{CommandRequest, ExecutionOutcome, OutputStream};
use rustix::process::Signal;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::call::{Call, Stop};
use super::children::{Child, Children, Group};
use super::pipes::read_by_thread;
use super::private::{PrivateFile, PrivateFolder};
use super::transcript::{End, Transcript};
use crate::memory::{CONTROL_GROUPS, oom_kills};
use crate::processes::Ending;
use crate::program::spawn;

pub(super) use lane::{CommandJob, CommandLane};
pub(super) use tasks::{Task, Tasks};

/// How long a command that is stopped may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// How long output is waited for once `bash` has ended: processes that it left behind may hold its streams open for ever.
const LAST_OUTPUT: Duration = Duration::from_millis(250);
/// 128 and the number of SIGKILL: what `bash` says of a child that was killed.
const EXIT_KILLED: i32 = 137;

/// What every command starts from.
#[derive(Clone)]
pub(super) struct Shell {
    pub(super) folder: PrivateFolder,
    pub(super) root: String,
    pub(super) environment: BTreeMap<OsString, OsString>,
    pub(super) children: Children,
}

/// A command that was started.
struct Running {
    child: Child,
    streams: [oneshot::Receiver<()>; 2],
    /// Commands do not stand on a command line: they may be long, and others can read those.
    _script: PrivateFile,
}

impl Shell {
    fn start(&self, request: &CommandRequest, transcript: &Arc<Transcript>) -> Result<Running, String> {
        let unable = |error: io::Error| format!("the command cannot be started: {error}");
        let script = self
            .folder
            .file("sh", request.command.as_bytes())
            .map_err(unable)?;
        let mut environment = self.environment.clone();
        environment.extend(
            request
                .environment
                .iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value))),
        );
        let into = |stream| {
            let transcript = Arc::clone(transcript);
            read_by_thread(move |bytes| transcript.output(stream, bytes)).map_err(unable)
        };
        let (stdout, stdout_ended) = into(OutputStream::Stdout)?;
        let (stderr, stderr_ended) = into(OutputStream::Stderr)?;
        let argv = ["bash".to_owned(), script.path().display().to_string()];
        transcript.start();
        let child = self
            .children
            .start(Group::GoesOn, || {
                spawn(&argv, &self.root, &environment, stdout, stderr)
            })
            .map_err(|error| error.to_string())?;
        Ok(Running {
            child,
            streams: [stdout_ended, stderr_ended],
            _script: script,
        })
    }

    /// Runs a command to its end.
    async fn run(&self, request: &CommandRequest, call: &Call) -> End {
        let kills_before = oom_kills(Path::new(CONTROL_GROUPS));
        let running = match self.start(request, &call.transcript) {
            Ok(running) => running,
            Err(message) => return End::new(ExecutionOutcome::Died).remark(message),
        };
        let child = &running.child;
        let (ending, stop) = tokio::select! {
            ending = child.ended() => (ending, None),
            stop = call.stopped_within(request.timeout_ms) => {
                child.signal(Signal::TERM);
                let ending = if let Ok(ending) = timeout(GRACE, child.ended()).await {
                    ending
                } else {
                    child.signal(Signal::KILL);
                    child.ended().await
                };
                (ending, Some(stop))
            }
        };
        for stream in running.streams {
            // What comes later is read and counts for nobody.
            let _ = timeout(LAST_OUTPUT, stream).await;
        }
        let kills = oom_kills(Path::new(CONTROL_GROUPS)).zip(kills_before);
        end_of(
            ending,
            stop.as_ref(),
            kills.is_some_and(|(now, before)| now > before),
        )
    }
}

fn end_of(ending: Ending, stop: Option<&Stop>, killed: bool) -> End {
    let out_of_memory = "the node's kernel killed a process of the session because memory ran out";
    match (stop, ending) {
        (Some(stop), _) => stop.end(),
        (None, Ending::ExitCode(EXIT_KILLED)) if killed => End::new(ExecutionOutcome::OutOfMemory)
            .exit_code(EXIT_KILLED)
            .remark(out_of_memory),
        (None, Ending::Signal(9)) if killed => End::new(ExecutionOutcome::OutOfMemory).remark(out_of_memory),
        (None, Ending::ExitCode(code)) => {
            let outcome = match code {
                0 => ExecutionOutcome::Completed,
                _ => ExecutionOutcome::Failed,
            };
            let end = End::new(outcome).exit_code(code);
            if killed { end.remark(out_of_memory) } else { end }
        }
        (None, Ending::Signal(signal)) => {
            End::new(ExecutionOutcome::Died).remark(format!("signal {signal} ended the command"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commands_end_is_told_as_far_as_it_is_known() {
        let end = |outcome| End::new(outcome);
        let memory = "the node's kernel killed a process of the session because memory ran out";
        let stop = Stop::TimedOut(7);
        for (ending, stop, killed, expected) in [
            (
                Ending::ExitCode(0),
                None,
                false,
                end(ExecutionOutcome::Completed).exit_code(0),
            ),
            (
                Ending::ExitCode(3),
                None,
                false,
                end(ExecutionOutcome::Failed).exit_code(3),
            ),
            (
                Ending::ExitCode(137),
                None,
                false,
                end(ExecutionOutcome::Failed).exit_code(137),
            ),
            (
                Ending::ExitCode(137),
                None,
                true,
                end(ExecutionOutcome::OutOfMemory).exit_code(137).remark(memory),
            ),
            (
                Ending::ExitCode(0),
                None,
                true,
                end(ExecutionOutcome::Completed).exit_code(0).remark(memory),
            ),
            (
                Ending::Signal(9),
                None,
                true,
                end(ExecutionOutcome::OutOfMemory).remark(memory),
            ),
            (
                Ending::Signal(11),
                None,
                true,
                end(ExecutionOutcome::Died).remark("signal 11 ended the command"),
            ),
            (
                Ending::ExitCode(0),
                Some(&stop),
                false,
                end(ExecutionOutcome::TimedOut).remark("it took longer than its limit of 7 ms"),
            ),
        ] {
            assert_eq!(end_of(ending, stop, killed), expected);
        }
    }
}
