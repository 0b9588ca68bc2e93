//! What keeps a pod from starting, as its status tells.

use codeworkspace_api::OutcomeReason;
use k8s_openapi::api::core::v1::{ContainerStateWaiting, ContainerStatus, Pod};

/// What a pod that has not started waits for.
#[derive(Debug)]
pub struct Wait {
    /// What kind of thing.
    pub reason: OutcomeReason,
    /// For people.
    pub message: String,
}

impl Wait {
    /// Reads a pod.
    pub fn of(pod: &Pod) -> Self {
        let Some(status) = pod.status.as_ref() else {
            return Self {
                reason: OutcomeReason::NotScheduled,
                message: "the pod is not scheduled yet".to_owned(),
            };
        };
        let scheduled = status
            .conditions
            .iter()
            .flatten()
            .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
        if let Some(condition) = scheduled {
            let message = condition
                .message
                .clone()
                .unwrap_or_else(|| "the pod is not scheduled yet".to_owned());
            return Self {
                reason: OutcomeReason::NotScheduled,
                message,
            };
        }
        let mut containers = status
            .init_container_statuses
            .iter()
            .chain(&status.container_statuses)
            .flatten();
        let waiting = containers.find_map(|container| {
            let waiting = container.state.as_ref()?.waiting.as_ref()?;
            // These two only mean that it is another container's turn, or that the kubelet has just begun.
            let telling = !matches!(
                waiting.reason.as_deref(),
                None | Some("PodInitializing" | "ContainerCreating")
            );
            telling.then_some((container, waiting))
        });
        match waiting {
            Some((container, waiting)) => Self::for_container(container, waiting),
            None => Self {
                reason: OutcomeReason::ContainerNotStarted,
                message: "the pod's containers are being made".to_owned(),
            },
        }
    }

    fn for_container(container: &ContainerStatus, waiting: &ContainerStateWaiting) -> Self {
        let word = waiting.reason.as_deref().unwrap_or_default();
        let reason = match word {
            "ErrImagePull"
            | "ImagePullBackOff"
            | "InvalidImageName"
            | "ErrImageNeverPull"
            | "ImageInspectError"
            | "RegistryUnavailable"
            | "SignatureValidationFailed" => OutcomeReason::ImagePullFailed,
            _ => OutcomeReason::ContainerNotStarted,
        };
        let said = waiting.message.as_deref().unwrap_or_default();
        Self {
            reason,
            message: format!("{word} for image {}: {said}", container.image),
        }
    }
}
