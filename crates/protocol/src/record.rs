//! The record of a run, as it stands in the container's termination message.
//!
//! Kubelet cuts that message at 4,096 bytes, and a cut JSON text is worth nothing, so a record never exceeds
//! [`MAX_RECORD_BYTES`]. The file behind it is writable by the body, so the reading side trusts nothing: see
//! [`RunRecord::parse`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::tail::{MAX_TAIL_BYTES, suffix_within};

/// Bytes of JSON that a record takes at most.
pub const MAX_RECORD_BYTES: usize = 3072;

/// Bytes of JSON that a record's message takes at most, so that the tails keep the larger part.
const MAX_MESSAGE_JSON_BYTES: usize = 1024;

const VERSION: u64 = 1;

/// Shells' base for bodies that a signal ended.
const EXIT_SIGNAL_BASE: i32 = 128;

/// `timeout(1)`'s exit code, used when a body that ran too long still calls itself successful.
const EXIT_TIMED_OUT: u8 = 124;

/// Whether a run was still going on when its record was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// The body had been started, or was about to be. If the container has ended, the runner died before it could say more and
    /// nothing else in the record is to be believed.
    Running,
    /// Every other process of the container was dead; the record is the runner's last word.
    Finished,
}

/// Why a run, or its preparation, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The body ended by itself with `exitCode`.
    Exited,
    /// The body was ended by `signal`, sent by anyone but the runner.
    Signalled,
    /// The body ran longer than its limit and was ended by the runner; `exitCode` or `signal` tell how it went.
    TimedOut,
    /// The runner was asked to stop (pod deletion, eviction, node shutdown) and ended the body; `exitCode` or `signal` tell how
    /// it went.
    Terminated,
    /// The body could not be started; `message` says why and what to do.
    SpawnFailed,
    /// The runner itself could not do its work; `message` says why. Whether a body ran is not known.
    RunnerFailed,
    /// The delivered bundle is not the one that the pod was made for. From `prepare`.
    DigestMismatch,
    /// The bundle could not be read or written to its volume. From `prepare`.
    UnpackFailed,
    /// The runner could not be copied into its volume. From `prepare` and `register`.
    InstallFailed,
    /// The pod's key could not be made, or the operator did not take its digest. From `register`.
    RegistrationFailed,
    /// Nobody used the session for as long as it may be idle, so that its runner ended it. From `serve`, with exit code 0.
    IdleTimeout,
    /// The gateway, or whoever ends pods, asked the session's runner to end. From `serve`, with exit code 0.
    Stopped,
}

/// One output stream of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StreamRecord {
    /// Every byte that the body and its children wrote.
    pub total_bytes: u64,
    /// The stream's end: at most [`MAX_TAIL_BYTES`], whole characters, U+FFFD for what is not UTF-8.
    pub tail: String,
    /// Whether the stream began before `tail`.
    pub truncated: bool,
}

/// What the runner knows about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunRecord {
    version: u64,
    /// Whether this is the last word.
    pub state: RunState,
    /// When the body was started (`prepare`: when it began).
    pub started_at: Timestamp,
    /// When the body ended; never before `started_at`. Present exactly in a finished record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Why it ended. Present exactly in a finished record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The body's own exit code, 0 to 255. Absent when a signal ended it: a shell's 128 + n is never made up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of the signal that ended the body, 1 to 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What a person should read; always present when there was no body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The body's standard output.
    pub stdout: StreamRecord,
    /// The body's standard error.
    pub stderr: StreamRecord,
    /// Processes of the container that the kernel killed for want of memory during the run; absent when it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<u64>,
}

/// Why a termination message is no record.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordError {
    /// Longer than any record.
    #[error("the run's record has {0} bytes, more than the {MAX_RECORD_BYTES} that a record may have")]
    TooLong(usize),
    /// Not JSON, or not of a record's shape.
    #[error("the run's record cannot be read: {0}")]
    Malformed(String),
    /// Written by a runner of another generation.
    #[error("the run's record has version {0}; this program reads version {VERSION}")]
    Version(String),
    /// Readable, but it contradicts itself.
    #[error("the run's record contradicts itself: {0}")]
    Inconsistent(&'static str),
}

impl RunRecord {
    /// The record of a run that begins now.
    pub fn running(started_at: Timestamp) -> Self {
        Self {
            version: VERSION,
            state: RunState::Running,
            started_at,
            finished_at: None,
            cause: None,
            exit_code: None,
            signal: None,
            message: None,
            stdout: StreamRecord::default(),
            stderr: StreamRecord::default(),
            oom_kills: None,
        }
    }

    /// The same record, ended. `exit_code`, `signal` and `message` are left as they are.
    #[must_use]
    pub fn finished(mut self, finished_at: Timestamp, cause: Cause) -> Self {
        self.state = RunState::Finished;
        self.finished_at = Some(finished_at.max(self.started_at));
        self.cause = Some(cause);
        self
    }

    /// The record as JSON of at most [`MAX_RECORD_BYTES`].
    ///
    /// Control characters take six bytes each in JSON, so tails that fit as text may not fit here: both are shortened at their
    /// beginning, the longer one first, and marked `truncated`.
    pub fn to_message(&self) -> String {
        let mut record = self.clone();
        if let Some(message) = &mut record.message {
            truncate_end(message, MAX_MESSAGE_JSON_BYTES);
        }
        let tails = [
            std::mem::take(&mut record.stdout.tail),
            std::mem::take(&mut record.stderr.tail),
        ];
        // `truncated` may still turn from `false` into `true`, which is shorter.
        let room = MAX_RECORD_BYTES.saturating_sub(record.to_json().len());
        let [stdout_room, stderr_room] = share(room, tails.each_ref().map(|tail| json_length(tail)));
        record.stdout.restore_tail(&tails[0], stdout_room);
        record.stderr.restore_tail(&tails[1], stderr_room);
        record.to_json()
    }

    /// The exit code with which the runner ends after a body: the body's own, or 128 and the signal's number as shells do. A record
    /// in a container that exited otherwise was not written by its runner as the last word. `None` when there was no body.
    pub fn container_exit_code(&self) -> Option<u8> {
        let code = self
            .exit_code
            .or(self.signal.map(|signal| EXIT_SIGNAL_BASE + signal))?;
        match u8::try_from(code) {
            Ok(0) if self.cause == Some(Cause::TimedOut) => Some(EXIT_TIMED_OUT),
            code => code.ok(),
        }
    }

    /// Reads a termination message.
    ///
    /// The body can write to the same file, so everything is checked: length, shape (no unknown fields), ranges, and that the
    /// fields fit together.
    pub fn parse(message: &str) -> Result<Self, RecordError> {
        if message.len() > MAX_RECORD_BYTES {
            return Err(RecordError::TooLong(message.len()));
        }
        let malformed = |error: serde_json::Error| RecordError::Malformed(error.to_string());
        let value: serde_json::Value = serde_json::from_str(message).map_err(malformed)?;
        match value.get("version") {
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) => return Err(RecordError::Version(version.to_string())),
            None => return Err(RecordError::Malformed("there is no `version`".to_owned())),
        }
        let record: Self = serde_json::from_value(value).map_err(malformed)?;
        record.check().map_err(RecordError::Inconsistent)?;
        Ok(record)
    }

    fn check(&self) -> Result<(), &'static str> {
        let require = |condition: bool, otherwise| if condition { Ok(()) } else { Err(otherwise) };
        // Go's time, in which Kubernetes keeps it, has no RFC 3339 form before year 0.
        require(
            self.started_at >= Timestamp::UNIX_EPOCH,
            "startedAt lies before 1970",
        )?;
        require(
            self.exit_code.is_none_or(|code| (0..=255).contains(&code)),
            "exitCode is not within 0 to 255",
        )?;
        require(
            self.signal.is_none_or(|signal| (1..=64).contains(&signal)),
            "signal is not within 1 to 64",
        )?;
        for stream in [&self.stdout, &self.stderr] {
            require(stream.tail.len() <= MAX_TAIL_BYTES, "a tail is longer than 1 KiB")?;
            require(
                stream.total_bytes > 0 || stream.tail.is_empty(),
                "a tail of a stream without bytes",
            )?;
        }
        let (reported_code, reported_signal) = (self.exit_code.is_some(), self.signal.is_some());
        match (self.state, self.finished_at, self.cause) {
            (RunState::Running, None, None) => require(
                !reported_code && !reported_signal,
                "a running body has neither exitCode nor signal",
            ),
            (RunState::Finished, Some(finished_at), Some(cause)) => {
                require(finished_at >= self.started_at, "finishedAt lies before startedAt")?;
                match cause {
                    Cause::Exited => require(
                        reported_code && !reported_signal,
                        "Exited goes with exitCode alone",
                    ),
                    Cause::Signalled => require(
                        reported_signal && !reported_code,
                        "Signalled goes with signal alone",
                    ),
                    Cause::TimedOut | Cause::Terminated => require(
                        reported_code != reported_signal,
                        "a body ends with either exitCode or signal",
                    ),
                    Cause::IdleTimeout | Cause::Stopped => require(
                        self.exit_code == Some(0) && !reported_signal && self.message.is_some(),
                        "a session ends in order with exitCode 0 and a message",
                    ),
                    Cause::SpawnFailed
                    | Cause::RunnerFailed
                    | Cause::DigestMismatch
                    | Cause::UnpackFailed
                    | Cause::InstallFailed
                    | Cause::RegistrationFailed => require(
                        !reported_code && !reported_signal && self.message.is_some(),
                        "without a body there is a message and neither exitCode nor signal",
                    ),
                }
            }
            _ => Err("finishedAt and cause go with state Finished"),
        }
    }

    fn to_json(&self) -> String {
        // Serialising strings, numbers and derived structs into memory cannot fail; an empty text would be refused by `parse`.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl StreamRecord {
    fn restore_tail(&mut self, tail: &str, room: usize) {
        let kept = suffix_within(tail, room, json_cost);
        self.truncated |= kept.len() < tail.len();
        kept.clone_into(&mut self.tail);
    }
}

/// Splits `room` between two texts: each may have half, and what one leaves free goes to the other.
fn share(room: usize, wanted: [usize; 2]) -> [usize; 2] {
    let half = room / 2;
    let first = wanted[0].min(room - wanted[1].min(half));
    [first, room - first]
}

/// Bytes that a character takes inside a JSON string as `serde_json` writes it (RFC 8259, section 7).
fn json_cost(character: char) -> usize {
    match character {
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

fn json_length(text: &str) -> usize {
    text.chars().map(json_cost).sum()
}

/// Cuts `text` at its end so that it takes at most `budget` bytes of JSON, and marks the cut.
fn truncate_end(text: &mut String, budget: usize) {
    const MARK: char = '…';
    if json_length(text) <= budget {
        return;
    }
    let mut left = budget - json_cost(MARK);
    let end =
        text.char_indices().find_map(
            |(index, character)| match left.checked_sub(json_cost(character)) {
                Some(rest) => {
                    left = rest;
                    None
                }
                None => Some(index),
            },
        );
    text.truncate(end.unwrap_or(text.len()));
    text.push(MARK);
}
