//! Runs the real runner on real processes and reads what it leaves.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use codeworkspace_protocol::{Cause, RunRecord, StreamRecord};
use tempfile::TempDir;

pub const RUNNER: &str = env!("CARGO_BIN_EXE_runner");

/// A run that never ends by itself fails its test through this limit instead of hanging it.
const LIMIT_MS: &str = "60000";

/// One call of `runner exec`, in a directory of its own.
pub struct Exec {
    pub directory: TempDir,
    wrapper: Vec<String>,
    timeout_ms: String,
    grace_ms: String,
}

/// What was seen of a run.
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub log: String,
}

impl Exec {
    pub fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            wrapper: Vec::new(),
            timeout_ms: LIMIT_MS.to_owned(),
            grace_ms: LIMIT_MS.to_owned(),
        }
    }

    /// The runner is process 1 of a process namespace, as in a container.
    pub fn as_init() -> Self {
        let mut exec = Self::new();
        exec.wrapper = [
            &unshare()[..],
            &["--pid", "--fork", "--mount-proc"].map(str::to_owned),
        ]
        .concat();
        exec
    }

    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = timeout_ms.to_string();
        self
    }

    pub fn grace_ms(mut self, grace_ms: u64) -> Self {
        self.grace_ms = grace_ms.to_string();
        self
    }

    pub fn wrapped(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    pub fn termination_log(&self) -> PathBuf {
        self.directory.path().join("termination-log")
    }

    /// The whole command line, with the record's file in `$LOG` for bodies that play with it.
    pub fn command(&self, argv: &[impl AsRef<OsStr>]) -> Command {
        let mut words = self.wrapper.iter().map(String::as_str).chain([RUNNER]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        command.args([
            "exec",
            "--timeout-ms",
            &self.timeout_ms,
            "--grace-ms",
            &self.grace_ms,
            "--workdir",
        ]);
        command
            .arg(self.directory.path())
            .arg("--termination-log")
            .arg(self.termination_log());
        command
            .arg("--")
            .args(argv)
            .env("LOG", self.termination_log())
            .env("LANG", "C.UTF-8");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, argv: &[impl AsRef<OsStr>]) -> Outcome {
        self.finish(self.command(argv).output().unwrap())
    }

    pub fn shell(&self, script: &str) -> Outcome {
        self.run(&["sh", "-c", script])
    }

    pub fn finish(&self, output: std::process::Output) -> Outcome {
        Outcome {
            status: output.status,
            stdout: output.stdout,
            stderr: output.stderr,
            log: fs_err::read_to_string(self.termination_log()).unwrap_or_default(),
        }
    }
}

impl Outcome {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub fn record(&self) -> RunRecord {
        RunRecord::parse(&self.log).unwrap_or_else(|error| panic!("{error}: {:?}", self.log))
    }

    pub fn stdout(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8(self.stderr.clone()).unwrap()
    }
}

/// A finished record without what differs between two equal runs: times, and the machine's count of memory kills.
pub fn timeless(record: &RunRecord) -> RunRecord {
    let mut record = record.clone();
    assert!(record.finished_at.is_none_or(|end| end >= record.started_at));
    record.started_at = jiff::Timestamp::UNIX_EPOCH;
    record.finished_at = record.finished_at.map(|_| jiff::Timestamp::UNIX_EPOCH);
    record.oom_kills = None;
    record
}

/// The timeless record of a body without output.
pub fn silent(cause: Cause, exit_code: Option<i32>, signal: Option<i32>) -> RunRecord {
    let mut record =
        RunRecord::running(jiff::Timestamp::UNIX_EPOCH).finished(jiff::Timestamp::UNIX_EPOCH, cause);
    (record.exit_code, record.signal) = (exit_code, signal);
    record
}

pub fn whole(text: &str) -> StreamRecord {
    StreamRecord {
        total_bytes: text.len() as u64,
        tail: text.to_owned(),
        truncated: false,
    }
}

/// The beginning of a command that may make namespaces: as root directly, else through a user namespace.
pub fn unshare() -> Vec<String> {
    let words: &[&str] = if rustix::process::geteuid().is_root() {
        &["unshare"]
    } else {
        &["unshare", "--user", "--map-root-user"]
    };
    let probe = Command::new(words[0])
        .args(&words[1..])
        .args(["--mount", "true"])
        .status();
    assert!(
        probe.is_ok_and(|status| status.success()),
        "these tests need namespaces: run them as root, or where unprivileged user namespaces are allowed"
    );
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Looks again and again until `look` finds something; a generous limit fails the test.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An executable file.
pub fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs_err::write(path, text).unwrap();
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
