//! How a session's pod ended, as far as the pod tells. Pure.
//!
//! What the node says of the pod comes first, then that the kernel killed for memory, then the runner's record, which code in the
//! session could have written too.

use codeworkspace_api::{SessionReason, condition};
use codeworkspace_protocol::{Cause, RunRecord, RunState};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod, PodStatus};

use crate::pod::SESSION;

/// Longest message in a CodeSession's status.
const MESSAGE_MAX: usize = 1024;

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Why.
    pub reason: SessionReason,
    /// For people.
    pub message: String,
}

impl Ending {
    /// An end for this reason.
    pub fn new(reason: SessionReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: condition::truncate(message.into(), MESSAGE_MAX),
        }
    }
}

/// How the pod of a session ended, or that it is about to; nothing while the session lives.
pub fn ending(pod: &Pod) -> Option<Ending> {
    let status = pod.status.as_ref();
    if let Some(ending) = status.and_then(of_node) {
        return Some(ending);
    }
    let terminated = status.and_then(terminated);
    if let Some(ending) = terminated.map(of_container) {
        // A container that ended because its pod was to go says nothing about why.
        return Some(leaving(pod).unwrap_or(ending));
    }
    leaving(pod).or_else(|| {
        let phase = status?.phase.as_deref()?;
        matches!(phase, "Failed" | "Succeeded")
            .then(|| Ending::new(SessionReason::RunnerFailed, "the pod ended and does not say how"))
    })
}

/// Why the node ended the pod.
fn of_node(status: &PodStatus) -> Option<Ending> {
    if status.phase.as_deref() != Some("Failed") {
        return None;
    }
    let reason = status.reason.as_deref()?;
    let said = status.message.as_deref().unwrap_or_default();
    let known = match reason {
        "DeadlineExceeded" => {
            return Some(Ending::new(
                SessionReason::SessionTimeout,
                "the time of the session was up",
            ));
        }
        "Evicted" | "NodeShutdown" | "Terminated" | "Preempting" => SessionReason::Evicted,
        "NodeLost" => SessionReason::NodeLost,
        _ => SessionReason::RunnerFailed,
    };
    Some(Ending::new(known, format!("{reason}: {said}")))
}

/// Why a pod that is being deleted is, as far as that was somebody's decision.
fn leaving(pod: &Pod) -> Option<Ending> {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let disruption = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == "DisruptionTarget" && condition.status == "True");
    if let Some(disruption) = disruption {
        let [reason, message] =
            [&disruption.reason, &disruption.message].map(|text| text.as_deref().unwrap_or_default());
        let known = match reason {
            "DeletionByTaintManager" | "DeletionByPodGC" => SessionReason::NodeLost,
            _ => SessionReason::Evicted,
        };
        return Some(Ending::new(known, format!("{reason}: {message}")));
    }
    pod.metadata
        .deletion_timestamp
        .as_ref()
        .map(|_| Ending::new(SessionReason::PodDeleted, "somebody deleted the pod"))
}

fn terminated(status: &PodStatus) -> Option<&ContainerStateTerminated> {
    let containers = status.container_statuses.as_ref()?;
    let session = containers.iter().find(|container| container.name == SESSION)?;
    session.state.as_ref()?.terminated.as_ref()
}

fn of_container(terminated: &ContainerStateTerminated) -> Ending {
    let record = terminated
        .message
        .as_deref()
        .and_then(|message| RunRecord::parse(message).ok())
        .filter(|record| record.state == RunState::Finished);
    let said = record
        .as_ref()
        .and_then(|record| record.message.clone())
        .unwrap_or_default();
    let cause = record.and_then(|record| record.cause);
    // A kernel that was killed for memory earlier marks the container too; one that ended in order was not ended by that.
    if terminated.reason.as_deref() == Some("OOMKilled") && terminated.exit_code != 0 {
        return Ending::new(
            SessionReason::OutOfMemory,
            "the node killed the session for memory: use less, or raise sessionLimits.memoryMb of its RunnerTemplate",
        );
    }
    match (cause, terminated.exit_code) {
        (Some(Cause::IdleTimeout), 0) => Ending::new(SessionReason::IdleTimeout, said),
        (Some(Cause::Stopped), 0) => Ending::new(SessionReason::Stopped, said),
        (Some(Cause::RunnerFailed), code) if code != 0 => Ending::new(SessionReason::RunnerFailed, said),
        (_, code) => Ending::new(
            SessionReason::RunnerFailed,
            format!("the session's container ended with exit code {code} and left no record"),
        ),
    }
}

#[cfg(test)]
#[path = "ending_tests.rs"]
mod tests;
