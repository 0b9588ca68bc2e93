//! The life of one body: start, time limit, requests to stop, and the end of everything it started.

use std::io::{self, PipeWriter};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use codeworkspace_protocol::{Cause, ExecArguments, RunRecord};
use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::relay::Relay;
use crate::clock::now;
use crate::environment::body_environment;
use crate::memory::{CONTROL_GROUPS, oom_kills};
use crate::processes::{Ending, Processes, reap_until};
use crate::program::spawn;
use crate::record_file::RecordFile;

/// How often a running body's record is refreshed at most.
const REFRESH: Duration = Duration::from_secs(1);

/// How long killed processes may take to disappear before the record is written without waiting for them any longer.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// How long the streams may stay open after the last process that could be killed is gone.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// How long a killed body is waited for before it is killed again.
const KILL_AGAIN: Duration = Duration::from_secs(1);

/// Signals that may wait to be handled; more of them are merged by the kernel and by their handler.
const EVENTS_AHEAD: usize = 16;

/// Exit code for a failure that is the machine's and not the body's (`EX_OSERR` of `sysexits.h`).
const EXIT_NO_RESOURCES: u8 = 71;

/// What came of the attempt to start a body.
pub(super) enum Start<'a> {
    Running(Supervisor<'a>),
    Failed { record: RunRecord, exit_code: u8 },
}

/// A body that was started.
pub(super) struct Supervisor<'a> {
    record: RunRecord,
    record_file: &'a RecordFile,
    arguments: &'a ExecArguments,
    processes: Processes,
    body: Pid,
    started: Instant,
    oom_kills_before: Option<u64>,
    stdout: Relay,
    stderr: Relay,
    events: Receiver<Event>,
}

/// A body that has ended, with its record complete.
pub(super) struct Ended {
    record: RunRecord,
    stdout: Relay,
    stderr: Relay,
}

enum Event {
    StopRequested(Signal),
    BodyEnded(Option<Ending>),
}

/// Why the runner itself ends the body, and when it stops asking.
struct Stop {
    cause: Cause,
    message: String,
    kill_at: Instant,
}

impl<'a> Supervisor<'a> {
    /// Starts the body. Everything that can fail for want of resources is made before it, so that a body never runs unwatched.
    pub(super) fn start(
        arguments: &'a ExecArguments,
        record: RunRecord,
        record_file: &'a RecordFile,
    ) -> Start<'a> {
        let failed = |record: RunRecord, cause, message: String, exit_code| {
            let mut record = record.finished(now(), cause);
            record.message = Some(message);
            Start::Failed { record, exit_code }
        };
        let watch = match Watch::set_up() {
            Ok(watch) => watch,
            Err(error) => {
                let message =
                    format!("the body is not started, because it could not be watched over: {error}");
                return failed(record, Cause::RunnerFailed, message, EXIT_NO_RESOURCES);
            }
        };
        let oom_kills_before = oom_kills(Path::new(CONTROL_GROUPS));
        let environment = body_environment(std::env::vars_os(), &arguments.workdir);
        let started = Instant::now();
        let ((stdout, stdout_end), (stderr, stderr_end)) = (watch.stdout, watch.stderr);
        match spawn(
            &arguments.argv,
            &arguments.workdir,
            &environment,
            stdout_end,
            stderr_end,
        ) {
            Ok(body) => {
                // The receiver is a thread that waits for exactly this.
                let _ = watch.reaper.send(body);
                Start::Running(Self {
                    record,
                    record_file,
                    arguments,
                    processes: watch.processes,
                    body,
                    started,
                    oom_kills_before,
                    stdout,
                    stderr,
                    events: watch.events,
                })
            }
            Err(error) => failed(record, Cause::SpawnFailed, error.to_string(), error.exit_code()),
        }
    }

    /// Waits for the body's end, ends whatever it left behind, and completes the record.
    pub(super) fn supervise(self) -> Ended {
        let (ending, stop) = self.await_body();
        let elapsed = self.started.elapsed();
        let all_dead = self.processes.end_all(KILL_LIMIT);
        let drained_by = Instant::now() + DRAIN_LIMIT;
        let drained = [&self.stdout, &self.stderr].map(|stream| stream.await_end(drained_by));
        let mut record = self.with_observations();
        record.message = self.remarks(stop.as_ref(), ending, all_dead, drained == [true; 2]);
        match ending {
            Some(Ending::ExitCode(code)) => record.exit_code = Some(code),
            Some(Ending::Signal(signal)) => record.signal = Some(signal),
            None => {}
        }
        let cause = match (stop, ending) {
            (_, None) => Cause::RunnerFailed,
            (Some(stop), Some(_)) => stop.cause,
            (None, Some(Ending::ExitCode(_))) => Cause::Exited,
            (None, Some(Ending::Signal(_))) => Cause::Signalled,
        };
        let record = record.finished(after(self.record.started_at, elapsed), cause);
        Ended {
            record,
            stdout: self.stdout,
            stderr: self.stderr,
        }
    }

    fn await_body(&self) -> (Option<Ending>, Option<Stop>) {
        let mut stop: Option<Stop> = None;
        let mut written = self.record.clone();
        let mut refresh_at = self.started + REFRESH;
        loop {
            let wake_at = self
                .act_at(stop.as_ref())
                .map_or(refresh_at, |act_at| act_at.min(refresh_at));
            match self
                .events
                .recv_timeout(wake_at.saturating_duration_since(Instant::now()))
            {
                Ok(Event::BodyEnded(ending)) => return (ending, stop),
                Ok(Event::StopRequested(signal)) => {
                    self.signal_group(signal);
                    stop.get_or_insert_with(|| self.stop_for_request(signal));
                }
                Err(_) => {}
            }
            // Looked at after every event, so that a flood of signals cannot put off the end.
            let now = Instant::now();
            if self.act_at(stop.as_ref()).is_some_and(|act_at| act_at <= now) {
                if let Some(stop) = &mut stop {
                    self.processes.kill_all();
                    stop.kill_at = now + KILL_AGAIN;
                } else {
                    self.signal_group(Signal::TERM);
                    stop = Some(self.stop_for_time());
                }
            }
            if refresh_at <= now {
                refresh_at = now + REFRESH;
                let current = self.with_observations();
                // The next refresh or the final record makes up for one that failed.
                if current != written && self.record_file.write(&current).is_ok() {
                    written = current;
                }
            }
        }
    }

    /// When the runner has to do something about the body by itself. A limit beyond the clock's range is no limit.
    fn act_at(&self, stop: Option<&Stop>) -> Option<Instant> {
        match stop {
            Some(stop) => Some(stop.kill_at),
            None => self
                .started
                .checked_add(Duration::from_millis(self.arguments.timeout_ms?)),
        }
    }

    fn stop_for_request(&self, signal: Signal) -> Stop {
        Stop {
            cause: Cause::Terminated,
            message: format!("the runner was asked to stop (signal {})", signal.as_raw()),
            kill_at: self.kill_at(),
        }
    }

    fn stop_for_time(&self) -> Stop {
        let limit = self.arguments.timeout_ms.unwrap_or_default();
        Stop {
            cause: Cause::TimedOut,
            message: format!("the body ran longer than its limit of {limit} ms"),
            kill_at: self.kill_at(),
        }
    }

    fn kill_at(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(Duration::from_millis(self.arguments.grace_ms))
            .unwrap_or(now)
    }

    /// A group that is gone already needs no signal.
    fn signal_group(&self, signal: Signal) {
        let _ = kill_process_group(self.body, signal);
    }

    fn with_observations(&self) -> RunRecord {
        let mut record = self.record.clone();
        record.stdout = self.stdout.record();
        record.stderr = self.stderr.record();
        // The counter belongs to the control group, which may have had a life before the body.
        record.oom_kills = oom_kills(Path::new(CONTROL_GROUPS))
            .zip(self.oom_kills_before)
            .map(|(kills, before)| kills.saturating_sub(before));
        record
    }

    fn remarks(
        &self,
        stop: Option<&Stop>,
        ending: Option<Ending>,
        all_dead: bool,
        drained: bool,
    ) -> Option<String> {
        let mut remarks: Vec<String> = stop.map(|stop| stop.message.clone()).into_iter().collect();
        if ending.is_none() {
            remarks.push("the kernel did not report how the body ended".to_owned());
        }
        if !all_dead {
            remarks.push("a process of the run could not be killed".to_owned());
        }
        if !drained {
            remarks.push(
                "the output was still held open after the run; what was written later is lost".to_owned(),
            );
        }
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if let Some(failure) = stream.failure() {
                remarks.push(format!(
                    "{name} could not be passed on to the container's log: {failure}"
                ));
            }
        }
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }
}

impl Ended {
    pub(super) fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Waits until the container's log has every byte.
    pub(super) fn flush(&self) {
        self.stdout.await_delivery();
        self.stderr.await_delivery();
    }
}

/// Everything that watches over a body, from before there is one.
struct Watch {
    processes: Processes,
    events: Receiver<Event>,
    reaper: Sender<Pid>,
    stdout: (Relay, PipeWriter),
    stderr: (Relay, PipeWriter),
}

impl Watch {
    fn set_up() -> io::Result<Self> {
        let (sender, events) = sync_channel(EVENTS_AHEAD);
        let processes = Processes::adopt()?;
        forward_stop_requests(sender.clone())?;
        let reaper = reap_in_background(sender)?;
        let (stdout, stderr) = (Relay::start(io::stdout())?, Relay::start(io::stderr())?);
        Ok(Self {
            processes,
            events,
            reaper,
            stdout,
            stderr,
        })
    }
}

/// Every signal with which container runtimes commonly ask a container to stop (an image's `STOPSIGNAL`). As process 1 they
/// would be ignored without a handler.
fn forward_stop_requests(events: SyncSender<Event>) -> io::Result<()> {
    // A handler for SIGCHLD, whatever it does, undoes an inherited "ignore", with which the kernel would keep no exit codes.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGCHLD])?;
    thread::Builder::new().spawn(move || {
        for signal in signals.forever().filter(|signal| *signal != SIGCHLD) {
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = events.send(Event::StopRequested(signal));
            }
        }
    })?;
    Ok(())
}

/// The thread is there before the body; it gets to know the body's number only once there is one.
fn reap_in_background(events: SyncSender<Event>) -> io::Result<Sender<Pid>> {
    let (sender, bodies) = channel();
    thread::Builder::new().spawn(move || {
        for body in bodies {
            let _ = events.send(Event::BodyEnded(reap_until(body)));
        }
    })?;
    Ok(sender)
}

/// Wall clocks jump; a run's length is what the steady clock says.
fn after(start: Timestamp, elapsed: Duration) -> Timestamp {
    let milliseconds = SignedDuration::from_millis(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX));
    start.saturating_add(milliseconds).unwrap_or(start)
}
