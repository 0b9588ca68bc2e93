//! The processes that the server starts, and the orphans that it inherits as process 1.
//!
//! One thread reaps whatever ends. Starting and signalling happen under the same lock as reaping, so that a number is never that of
//! another process: a child that ended is reaped before anybody can signal it, or not yet.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
use signal_hook::consts::SIGCHLD;
use signal_hook::iterator::Signals;
use tokio::sync::watch;

use crate::processes::Ending;

/// Room below a process's own inclination to be killed: children go before the server (proc(5), `oom_score_adj`).
const OOM_SCORE_STEP: i32 = 300;
const MAX_OOM_SCORE: i32 = 1000;

/// All processes that were started here and have not ended.
#[derive(Clone)]
pub(super) struct Children {
    running: Arc<Mutex<HashMap<Pid, Entry>>>,
    oom_score: i32,
}

struct Entry {
    ended: watch::Sender<Option<Ending>>,
    group: Group,
}

/// What becomes of a child's process group when the child ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// It is killed: what belongs to a kernel is of no use without it.
    EndsWithChild,
    /// It goes on: a command may leave something running.
    GoesOn,
}

/// One process, leader of a group.
#[derive(Clone)]
pub(super) struct Child {
    pid: Pid,
    children: Children,
    ended: watch::Receiver<Option<Ending>>,
}

impl Children {
    /// Begins to reap.
    pub(super) fn watch() -> io::Result<Self> {
        let own: i32 = fs_err::read_to_string("/proc/self/oom_score_adj")
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or_default();
        let children = Self {
            running: Arc::default(),
            oom_score: (own + OOM_SCORE_STEP).min(MAX_OOM_SCORE),
        };
        let mut signals = Signals::new([SIGCHLD])?;
        let reaper = children.clone();
        thread::Builder::new().name("reaper".to_owned()).spawn(move || {
            for _ in signals.forever() {
                reaper.reap();
            }
        })?;
        Ok(children)
    }

    /// Starts a child by `spawn`, which makes it the leader of a process group.
    pub(super) fn start<E>(&self, group: Group, spawn: impl FnOnce() -> Result<Pid, E>) -> Result<Child, E> {
        let mut running = self.lock();
        let pid = spawn()?;
        let (sender, ended) = watch::channel(None);
        running.insert(pid, Entry { ended: sender, group });
        drop(running);
        // Where the kernel does not let us, the child is as likely to be killed as the server.
        let _ = fs_err::write(
            format!("/proc/{}/oom_score_adj", pid.as_raw_pid()),
            self.oom_score.to_string(),
        );
        Ok(Child {
            pid,
            children: self.clone(),
            ended,
        })
    }

    fn reap(&self) {
        let mut running = self.lock();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let (Some(entry), Some(ending)) = (running.remove(&pid), Ending::from_status(status)) else {
                continue;
            };
            if entry.group == Group::EndsWithChild {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            entry.ended.send_replace(Some(ending));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Pid, Entry>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Child {
    /// Waits for its end.
    pub(super) async fn ended(&self) -> Ending {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await.map(|ending| *ending) {
            Ok(Some(ending)) => ending,
            // The sender is only dropped with an answer.
            _ => std::future::pending().await,
        }
    }

    /// How it ended, if it has.
    pub(super) fn ending(&self) -> Option<Ending> {
        *self.ended.borrow()
    }

    /// Sends a signal to its process group, as long as it has not ended.
    pub(super) fn signal(&self, signal: Signal) {
        let running = self.children.lock();
        if running.contains_key(&self.pid) {
            // A group that is gone already needs no signal.
            let _ = kill_process_group(self.pid, signal);
        }
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ExitCode(code) => write!(formatter, "exit code {code}"),
            Self::Signal(signal) => write!(formatter, "signal {signal}"),
        }
    }
}
