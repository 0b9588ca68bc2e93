//! From a pod to what is known about its run. Pure: the pod and the time come in, nothing is asked.
//!
//! When several things speak, the one that could not be made up by the body wins: what the node says of the pod, then that the
//! kernel killed for memory, then the runner's record (believed only when it fits the container's own exit), then the bare
//! exit of the container.

use codeworkspace_api::{Outcome, OutcomeReason, StreamStatus, condition};
use codeworkspace_protocol::{Cause, RunRecord, RunState, StreamRecord};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

use crate::controller::wait::Wait;
use crate::pod::{BODY, PREPARE};

/// Longest message in a CodeRun's status.
const MESSAGE_MAX: usize = 1024;
/// By how much a record's times may lie outside of the container's own, which are told in whole seconds.
const SLACK: SignedDuration = SignedDuration::from_secs(1);

/// What a pod tells about its run.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// The body has not started; the message says what it waits for.
    Starting(String),
    /// The body runs.
    Running {
        /// When its container started.
        started_at: Option<Timestamp>,
    },
    /// The outcome is settled; the pod itself has ended.
    Settled(Box<Settled>),
    /// The body did not start within the budget: the pod must be deleted, and then the outcome is settled.
    GaveUp(Box<Settled>),
}

/// A settled outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// How it ended.
    pub outcome: Outcome,
    /// Why.
    pub reason: OutcomeReason,
    /// For people.
    pub message: Option<String>,
    /// The body's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended the body.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: Option<StreamStatus>,
    /// Standard error.
    pub stderr: Option<StreamStatus>,
    /// When the body started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl Settled {
    /// An outcome about which nothing more is known.
    pub fn new(outcome: Outcome, reason: OutcomeReason, message: impl Into<String>) -> Self {
        let message = condition::truncate(message.into(), MESSAGE_MAX);
        Self {
            outcome,
            reason,
            message: Some(message).filter(|message| !message.is_empty()),
            exit_code: None,
            signal: None,
            stdout: None,
            stderr: None,
            started_at: None,
            finished_at: None,
        }
    }

    fn with_record(mut self, record: Option<&RunRecord>) -> Self {
        if let Some(record) = record {
            self.exit_code = record.exit_code;
            self.signal = record.signal;
            self.stdout = Some(stream(&record.stdout));
            self.stderr = Some(stream(&record.stderr));
            self.started_at = Some(record.started_at);
            self.finished_at = record.finished_at;
        }
        self
    }

    /// Adds the container's own times. The record's are finer and stay as long as they lie within them: a body that makes up a
    /// record must not decide how long its run is kept.
    fn at(mut self, terminated: &ContainerStateTerminated) -> Self {
        let started = terminated.started_at.as_ref().map(|time| time.0);
        let finished = terminated.finished_at.as_ref().map(|time| time.0);
        let within = |time: &Timestamp| {
            started.is_none_or(|started| started.duration_since(*time) <= SLACK)
                && finished.is_none_or(|finished| time.duration_since(finished) <= SLACK)
        };
        self.started_at = self.started_at.filter(within).or(started);
        self.finished_at = self.finished_at.filter(within).or(finished);
        self
    }
}

/// Reads a pod.
pub fn observe(pod: &Pod, now: Timestamp, start_budget: SignedDuration) -> Observation {
    let body = Body::of(pod);
    if let Some(settled) = settled_by_node(pod, &body) {
        return Observation::Settled(Box::new(settled));
    }
    if let Some(terminated) = body.terminated {
        return Observation::Settled(Box::new(settled_by_body(
            terminated,
            body.record.as_ref(),
            told_to_stop(pod),
        )));
    }
    if let Some(terminated) = failed_prepare(pod) {
        return Observation::Settled(Box::new(settled_by_prepare(terminated)));
    }
    if let Some(running) = body
        .status
        .and_then(|status| status.state.as_ref()?.running.as_ref())
    {
        return Observation::Running {
            started_at: running.started_at.as_ref().map(|time| time.0),
        };
    }
    let wait = Wait::of(pod);
    match pod.metadata.creation_timestamp.as_ref() {
        Some(created) if now.duration_since(created.0) >= start_budget => {
            Observation::GaveUp(Box::new(Settled::new(
                Outcome::StartError,
                wait.reason,
                format!(
                    "the body did not start within {} seconds: {}",
                    start_budget.as_secs(),
                    wait.message
                ),
            )))
        }
        _ => Observation::Starting(wait.message),
    }
}

/// The body's container as the node reports it.
struct Body<'a> {
    status: Option<&'a ContainerStatus>,
    terminated: Option<&'a ContainerStateTerminated>,
    /// The runner's last word, only when it fits the container's own exit.
    record: Option<RunRecord>,
}

impl<'a> Body<'a> {
    fn of(pod: &'a Pod) -> Self {
        let status = pod.status.as_ref().and_then(|status| {
            status
                .container_statuses
                .as_ref()?
                .iter()
                .find(|container| container.name == BODY)
        });
        let terminated = status.and_then(|status| status.state.as_ref()?.terminated.as_ref());
        Self {
            status,
            terminated,
            record: terminated.and_then(believed),
        }
    }
}

/// The record in a termination message, if the runner wrote it as its last word: the file is writable by the body, so a record
/// counts only when it says what the container's exit says too.
fn believed(terminated: &ContainerStateTerminated) -> Option<RunRecord> {
    let record = RunRecord::parse(terminated.message.as_deref()?).ok()?;
    let fits = match record.cause? {
        Cause::Exited | Cause::Signalled | Cause::TimedOut | Cause::Terminated => {
            Some(terminated.exit_code) == record.container_exit_code().map(i32::from)
        }
        Cause::SpawnFailed | Cause::RunnerFailed => terminated.exit_code != 0,
        // Only init containers and sessions write these.
        Cause::DigestMismatch
        | Cause::UnpackFailed
        | Cause::InstallFailed
        | Cause::RegistrationFailed
        | Cause::IdleTimeout
        | Cause::Stopped => false,
    };
    (record.state == RunState::Finished && fits).then_some(record)
}

/// What the node says of the whole pod; a body cannot make it up.
fn settled_by_node(pod: &Pod, body: &Body) -> Option<Settled> {
    let status = pod.status.as_ref()?;
    if status.phase.as_deref() != Some("Failed") {
        return None;
    }
    let said = status.message.clone().unwrap_or_default();
    let settled = match status.reason.as_deref()? {
        "DeadlineExceeded" if body.status.is_some_and(has_started) => Settled::new(
            Outcome::TimedOut,
            OutcomeReason::TimeLimit,
            format!("the pod's deadline passed: {said}"),
        ),
        "DeadlineExceeded" => {
            let wait = Wait::of(pod);
            Settled::new(
                Outcome::StartError,
                wait.reason,
                format!("the body had not started at the pod's deadline: {}", wait.message),
            )
        }
        "Evicted" | "NodeShutdown" | "Terminated" | "Preempting" | "NodeLost" => {
            Settled::new(Outcome::Evicted, OutcomeReason::Evicted, said)
        }
        // The kubelet refuses a pod for many reasons (`OutOfmemory`, `NodeAffinity`, …), and then makes no container at all.
        refused if status.container_statuses.is_none() => Settled::new(
            Outcome::StartError,
            OutcomeReason::NotScheduled,
            format!("the node refused the pod: {refused}: {said}"),
        ),
        _ => return None,
    };
    let settled = match &body.record {
        Some(record) => Settled {
            exit_code: None,
            signal: None,
            ..settled.with_record(Some(record))
        },
        None => settled,
    };
    Some(match body.terminated {
        Some(terminated) => settled.at(terminated),
        None => settled,
    })
}

fn has_started(status: &ContainerStatus) -> bool {
    let state = status.state.as_ref();
    state.is_some_and(|state| {
        state.running.is_some()
            || state
                .terminated
                .as_ref()
                .is_some_and(|ended| ended.started_at.is_some())
    })
}

fn settled_by_body(
    terminated: &ContainerStateTerminated,
    record: Option<&RunRecord>,
    told_to_stop: Option<Settled>,
) -> Settled {
    let killed_for_memory = terminated.reason.as_deref() == Some("OOMKilled")
        || record
            .and_then(|record| record.oom_kills)
            .is_some_and(|kills| kills > 0);
    let settled = if killed_for_memory {
        Settled::new(
            Outcome::OOMKilled,
            OutcomeReason::MemoryLimit,
            "the kernel killed a process of the run for memory: raise runner.limits.memory_mb or use less",
        )
    } else if let Some(record) = record {
        match told_to_stop {
            Some(stopped) if record.cause == Some(Cause::Terminated) => stopped,
            _ => settled_by_record(record),
        }
    } else {
        match told_to_stop {
            Some(stopped) if terminated.exit_code != 0 => stopped,
            _ => settled_by_exit(terminated),
        }
    };
    settled.with_record(record).at(terminated)
}

/// What happened to a pod that somebody else wants gone, if its body ended because of that.
fn told_to_stop(pod: &Pod) -> Option<Settled> {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let disruption = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == "DisruptionTarget" && condition.status == "True");
    if let Some(disruption) = disruption {
        let [reason, message] =
            [&disruption.reason, &disruption.message].map(|text| text.as_deref().unwrap_or_default());
        return Some(Settled::new(
            Outcome::Evicted,
            OutcomeReason::Evicted,
            format!("{reason}: {message}"),
        ));
    }
    pod.metadata.deletion_timestamp.as_ref().map(|_| {
        Settled::new(
            Outcome::Lost,
            OutcomeReason::PodDeleted,
            "the pod was deleted while the body ran",
        )
    })
}

fn settled_by_record(record: &RunRecord) -> Settled {
    let said = record.message.clone().unwrap_or_default();
    match record.cause {
        // A body can ask its own runner to stop: then it ended as it did.
        Some(Cause::Exited | Cause::Signalled | Cause::Terminated) => match record.exit_code {
            Some(0) => Settled::new(Outcome::Succeeded, OutcomeReason::Completed, said),
            Some(_) => Settled::new(Outcome::Failed, OutcomeReason::NonZeroExit, said),
            None => Settled::new(Outcome::Failed, OutcomeReason::Signal, said),
        },
        Some(Cause::TimedOut) => Settled::new(Outcome::TimedOut, OutcomeReason::TimeLimit, said),
        Some(Cause::SpawnFailed) => Settled::new(Outcome::StartError, OutcomeReason::CommandNotStarted, said),
        Some(Cause::RunnerFailed) => Settled::new(Outcome::Lost, OutcomeReason::NoRecord, said),
        // `believed` lets none of these through.
        Some(
            Cause::DigestMismatch
            | Cause::UnpackFailed
            | Cause::InstallFailed
            | Cause::RegistrationFailed
            | Cause::IdleTimeout
            | Cause::Stopped,
        )
        | None => Settled::new(
            Outcome::Failed,
            OutcomeReason::NoRecord,
            "the runner's record is not that of a body",
        ),
    }
}

/// The container ended and nobody can say how the body did. Its exit code is the runner's, which mirrors the body's; codes
/// above 128 stay untold, since they may stand for a signal.
fn settled_by_exit(terminated: &ContainerStateTerminated) -> Settled {
    let reason = terminated.reason.as_deref().unwrap_or_default();
    let said = terminated.message.as_deref().unwrap_or_default();
    match (reason, terminated.exit_code) {
        ("StartError" | "ContainerCannotRun", _) => Settled::new(
            Outcome::StartError,
            OutcomeReason::ContainerNotStarted,
            format!("{reason}: {said}"),
        ),
        // The node lost sight of the container, which may have run.
        ("ContainerStatusUnknown", _) => Settled::new(
            Outcome::Lost,
            OutcomeReason::NoRecord,
            format!("{reason}: {said}"),
        ),
        (_, 0) => Settled {
            exit_code: Some(0),
            ..Settled::new(
                Outcome::Succeeded,
                OutcomeReason::NoRecord,
                "the container exited with 0 and left no record",
            )
        },
        (_, code) => Settled {
            exit_code: Some(code).filter(|code| *code <= 128),
            ..Settled::new(
                Outcome::Failed,
                OutcomeReason::NoRecord,
                format!("the container ended with exit code {code} and left no record of its body"),
            )
        },
    }
}

fn failed_prepare(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let containers = pod.status.as_ref()?.init_container_statuses.as_ref()?;
    let prepare = containers.iter().find(|container| container.name == PREPARE)?;
    prepare
        .state
        .as_ref()?
        .terminated
        .as_ref()
        .filter(|terminated| terminated.exit_code != 0)
}

fn settled_by_prepare(terminated: &ContainerStateTerminated) -> Settled {
    let record = terminated
        .message
        .as_deref()
        .and_then(|message| RunRecord::parse(message).ok());
    let said = record
        .as_ref()
        .and_then(|record| record.message.clone())
        .unwrap_or_else(|| {
            format!(
                "the bundle could not be prepared: {} with exit code {}",
                terminated.reason.as_deref().unwrap_or("the container ended"),
                terminated.exit_code
            )
        });
    let reason = match record.and_then(|record| record.cause) {
        Some(Cause::DigestMismatch) => OutcomeReason::DigestMismatch,
        _ => OutcomeReason::UnpackFailed,
    };
    Settled {
        finished_at: terminated.finished_at.as_ref().map(|time| time.0),
        ..Settled::new(Outcome::StartError, reason, said)
    }
}

fn stream(record: &StreamRecord) -> StreamStatus {
    StreamStatus {
        tail: record.tail.clone(),
        total_bytes: i64::try_from(record.total_bytes).unwrap_or(i64::MAX),
        truncated: record.truncated,
    }
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
