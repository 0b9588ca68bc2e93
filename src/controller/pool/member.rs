//! The pods of sessions as the watch shows them. Pure.

use codeworkspace_api::{condition, labels};
use codeworkspace_protocol::RunRecord;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use crate::controller::wait::Wait;

/// Longest reason that a pod gives for not starting.
const MESSAGE_MAX: usize = 512;

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The version that was seen: a pod that was claimed since has another one.
    pub resource_version: Option<String>,
    /// When it was made.
    pub created: Timestamp,
    /// Hash of what it was made from.
    pub hash: String,
    /// The session that has it, or had it.
    pub session: Option<String>,
    /// Where it stands.
    pub standing: Standing,
}

/// Where a pod stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It waits for nobody yet: it still starts.
    Starting,
    /// A session can have it at once.
    Ready,
    /// It is warm, and a session is about to claim it.
    Reserved,
    /// A session has it.
    Claimed,
    /// It was warm and has failed, for this reason.
    Failed(String),
    /// It has ended with its session, which sees to it.
    Ended,
    /// It is being deleted.
    Going,
}

impl Member {
    /// Reads a pod. `reserved` says whether it stands in a session that has not ended.
    pub fn of(pod: &Pod, reserved: bool, now: Timestamp, start_budget: SignedDuration) -> Self {
        let created = pod.creation_timestamp().map_or(now, |created| created.0);
        let label = |key: &str| pod.labels().get(key).map(String::as_str);
        Self {
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            resource_version: pod.resource_version(),
            created,
            hash: label(labels::POOL).unwrap_or_default().to_owned(),
            session: label(labels::SESSION).map(str::to_owned),
            standing: standing(pod, reserved, now.duration_since(created), start_budget),
        }
    }

    /// Whether nobody has it.
    pub fn is_warm(&self) -> bool {
        matches!(self.standing, Standing::Starting | Standing::Ready)
    }

    /// Whether it takes a place.
    pub fn is_alive(&self) -> bool {
        self.is_warm() || matches!(self.standing, Standing::Reserved | Standing::Claimed)
    }
}

fn standing(pod: &Pod, reserved: bool, age: SignedDuration, start_budget: SignedDuration) -> Standing {
    if pod.metadata.deletion_timestamp.is_some() {
        return Standing::Going;
    }
    let status = pod.status.as_ref();
    let ended = status.is_some_and(|status| matches!(status.phase.as_deref(), Some("Failed" | "Succeeded")));
    // Whatever is not surely warm may belong to a session.
    if pod.labels().get(labels::STATE).map(String::as_str) != Some(labels::STATE_WARM) {
        return if ended { Standing::Ended } else { Standing::Claimed };
    }
    if ended {
        return Standing::Failed(why_it_ended(pod));
    }
    if reserved {
        return Standing::Reserved;
    }
    if is_ready(pod) && pod.annotations().contains_key(labels::KEY_DIGEST) {
        return Standing::Ready;
    }
    if age >= start_budget {
        let seconds = start_budget.as_secs();
        return Standing::Failed(format!(
            "it did not start within {seconds} seconds: {}",
            Wait::of(pod).message
        ));
    }
    Standing::Starting
}

/// Whether the kubelet takes the pod for ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn why_it_ended(pod: &Pod) -> String {
    let Some(status) = &pod.status else {
        return "it ended".to_owned();
    };
    if let Some(reason) = &status.reason {
        let message = status.message.as_deref().unwrap_or_default();
        return cut(format!("{reason}: {message}"));
    }
    let containers = status
        .init_container_statuses
        .iter()
        .chain(&status.container_statuses)
        .flatten();
    let ended = containers
        .filter_map(|container| Some((container, container.state.as_ref()?.terminated.as_ref()?)))
        .rfind(|(container, terminated)| terminated.exit_code != 0 || container.name == crate::pod::SESSION);
    let Some((container, terminated)) = ended else {
        return "it ended".to_owned();
    };
    let recorded = terminated
        .message
        .as_deref()
        .and_then(|message| RunRecord::parse(message).ok())
        .and_then(|record| record.message);
    cut(format!(
        "container {} ended with exit code {} ({}): {}",
        container.name,
        terminated.exit_code,
        terminated.reason.as_deref().unwrap_or("no reason"),
        recorded
            .or_else(|| terminated.message.clone())
            .unwrap_or_else(|| "it left no record".to_owned())
    ))
}

fn cut(message: String) -> String {
    condition::truncate(message, MESSAGE_MAX)
}

#[cfg(test)]
#[path = "member_tests.rs"]
mod tests;
