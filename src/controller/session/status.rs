//! The status of a session: computed without a client, written only when something real changed.

use codeworkspace_api::{CodeSession, CodeSessionStatus, SessionReason, SessionState};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use super::ending::Ending;

/// A session without a pod.
pub fn waiting(session: &CodeSession, message: String) -> CodeSessionStatus {
    CodeSessionStatus {
        state: Some(SessionState::Pending),
        reason: Some(SessionReason::WaitingForPod),
        message: Some(message),
        ..seen(session)
    }
}

/// A session that has its pod.
pub fn live(session: &CodeSession, pod_uid: String, expires_at: Option<Timestamp>) -> CodeSessionStatus {
    CodeSessionStatus {
        state: Some(SessionState::Ready),
        reason: Some(SessionReason::Claimed),
        message: None,
        pod_uid: Some(pod_uid),
        expires_at: expires_at.map(Time),
        ..seen(session)
    }
}

/// A session that has ended.
pub fn ended(session: &CodeSession, ending: &Ending, now: Timestamp) -> CodeSessionStatus {
    CodeSessionStatus {
        state: Some(SessionState::Terminated),
        reason: Some(ending.reason),
        message: Some(ending.message.clone()),
        ended_at: Some(Time(now)),
        ..seen(session)
    }
}

/// The former status, now speaking of this generation.
fn seen(session: &CodeSession) -> CodeSessionStatus {
    CodeSessionStatus {
        observed_generation: session.metadata.generation,
        ..session.status.clone().unwrap_or_default()
    }
}

/// The object that carries a status to the API server, for that very object as it was seen: an end that was written a moment ago must
/// not be replaced by what the watch shows of the time before.
pub fn patch(session: &CodeSession, status: &CodeSessionStatus) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": format!("{}/{}", codeworkspace_api::GROUP, codeworkspace_api::VERSION),
        "kind": "CodeSession",
        "metadata": {
            "name": session.name_any(), "uid": session.uid(), "resourceVersion": session.resource_version()
        },
        "status": status,
    })
}
