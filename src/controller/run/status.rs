//! The status of a run: computed without a client, written only when something real changed.

use codeworkspace_api::{CodeRun, CodeRunStatus, OutcomeReason};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use super::outcome::Settled;
use crate::pod::BODY;

/// A run that waits for something.
pub fn waiting(run: &CodeRun, reason: OutcomeReason, message: String) -> CodeRunStatus {
    CodeRunStatus {
        reason: Some(reason),
        message: Some(message),
        ..seen(run)
    }
}

/// A run whose pod exists.
pub fn with_pod(run: &CodeRun, pod: &Pod) -> CodeRunStatus {
    let status = seen(run);
    CodeRunStatus {
        pod_name: pod.metadata.name.clone().or(status.pod_name),
        pod_uid: pod.uid().or(status.pod_uid),
        bundle_digest: pod
            .annotations()
            .get(codeworkspace_api::labels::BUNDLE_DIGEST)
            .cloned()
            .or(status.bundle_digest),
        image_id: image_id(pod).or(status.image_id),
        ..status
    }
}

/// A run whose body runs.
pub fn running(status: CodeRunStatus, started_at: Option<Timestamp>) -> CodeRunStatus {
    CodeRunStatus {
        reason: Some(OutcomeReason::Running),
        message: None,
        started_at: started_at.map(Time).or(status.started_at),
        ..status
    }
}

/// A run whose outcome is settled.
pub fn finished(status: CodeRunStatus, settled: Settled, now: Timestamp) -> CodeRunStatus {
    CodeRunStatus {
        outcome: Some(settled.outcome),
        reason: Some(settled.reason),
        message: settled.message,
        exit_code: settled.exit_code,
        signal: settled.signal,
        stdout: settled.stdout,
        stderr: settled.stderr,
        started_at: settled.started_at.map(Time).or(status.started_at),
        finished_at: Some(Time(settled.finished_at.unwrap_or(now))),
        ..status
    }
}

/// The former status, now speaking of this generation.
fn seen(run: &CodeRun) -> CodeRunStatus {
    CodeRunStatus {
        observed_generation: run.metadata.generation,
        ..run.status.clone().unwrap_or_default()
    }
}

fn image_id(pod: &Pod) -> Option<String> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    let body = containers.iter().find(|container| container.name == BODY)?;
    Some(body.image_id.clone()).filter(|image| !image.is_empty())
}

/// The object that carries a status to the API server, for that very object and no later one of the same name.
pub fn patch(run: &CodeRun, status: &CodeRunStatus) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": format!("{}/{}", codeworkspace_api::GROUP, codeworkspace_api::VERSION),
        "kind": "CodeRun",
        "metadata": {"name": run.name_any(), "uid": run.uid()},
        "status": status,
    })
}
