//! The other processes of the container: who they are, how they are ended, how they are reaped.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, pidfd_open,
    pidfd_send_signal, set_child_subreaper, wait,
};

/// How a body ended, as the kernel reported it: exactly one of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    ExitCode(i32),
    Signal(i32),
}

impl Ending {
    pub(crate) fn from_status(status: WaitStatus) -> Option<Self> {
        let exit_code = status.exit_status().map(Self::ExitCode);
        exit_code.or_else(|| status.terminating_signal().map(Self::Signal))
    }
}

/// Everything that this process answers for: as process 1 all others of its process namespace, else its own descendants.
#[derive(Clone, Copy)]
pub(crate) struct Processes {
    is_init: bool,
}

impl Processes {
    /// Becomes the parent of every orphan, if the process is not that already by being number 1.
    pub(crate) fn adopt() -> io::Result<Self> {
        let own = getpid();
        if !own.is_init() {
            set_child_subreaper(Some(own))?;
        }
        Ok(Self {
            is_init: own.is_init(),
        })
    }

    /// Sends SIGKILL to all of them, and tells whether there was any.
    ///
    /// As process 1 it is one system call that no fork escapes. Otherwise a process can be born between looking and killing,
    /// so call it until nobody is left, as [`Processes::end_all`] does.
    pub(crate) fn kill_all(self) -> bool {
        if self.is_init {
            // kill(2) with -1: everybody but process 1 itself, which is the sender.
            return kill_process_group(Pid::INIT, Signal::KILL).is_ok();
        }
        let descendants = descendants();
        for (pid, status) in &descendants {
            kill_exactly(*pid, status);
        }
        !descendants.is_empty()
    }

    /// Kills and reaps until nobody is left; `false` if somebody still was after `limit` (stuck in the kernel, for example on a
    /// dead network file system).
    ///
    /// Only for when no other thread waits for children.
    pub(crate) fn end_all(self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_millis(1);
        loop {
            let somebody = self.kill_all();
            while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
            if !somebody {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

/// Reaps whatever ends, orphans included, up to and including the body. `None` if the kernel no longer knows the body.
pub(crate) fn reap_until(body: Pid) -> Option<Ending> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == body => return Ending::from_status(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// What tells a process from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    parent: i32,
    started: u64,
}

fn descendants() -> Vec<(i32, Identity)> {
    let Ok(entries) = fs_err::read_dir("/proc") else {
        return Vec::new();
    };
    let mut unrelated: BTreeMap<i32, Identity> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, identity(pid)?)))
        .collect();
    let mut related = Vec::new();
    let mut parents = vec![getpid().as_raw_pid()];
    while let Some(parent) = parents.pop() {
        for (pid, identity) in unrelated.extract_if(.., |_, identity| identity.parent == parent) {
            parents.push(pid);
            related.push((pid, identity));
        }
    }
    related
}

/// Reads `/proc/PID/stat` (proc(5)): the name in brackets may hold anything, so fields are counted from its end.
fn identity(pid: i32) -> Option<Identity> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(Identity { parent, started })
}

/// Kills the process only if it still is the one that was seen; one that is gone is no failure.
fn kill_exactly(pid: i32, seen: &Identity) {
    let Some(handle) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return;
    };
    if identity(pid).is_some_and(|now| now.started == seen.started) {
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
}
