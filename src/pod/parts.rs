//! What the pods of runs, readers and sessions have in common.

use std::collections::BTreeMap;

use codeworkspace_protocol::layout;
use k8s_openapi::api::core::v1::{
    Capabilities, EmptyDirVolumeSource, PodSecurityContext, ResourceRequirements, SeccompProfile,
    SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Kubernetes expands `$(NAME)` in arguments; `$$` stands for one dollar sign. A body's words are never expanded.
pub(super) fn kubernetes_arguments(arguments: Vec<String>) -> Vec<String> {
    arguments
        .into_iter()
        .map(|argument| argument.replace('$', "$$"))
        .collect()
}

pub(super) fn empty_dir(name: &str, size_limit: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            size_limit: Some(quantity(size_limit)),
            medium: None,
        }),
        ..Volume::default()
    }
}

pub(super) fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}

pub(super) fn resources(
    memory_request: &Quantity,
    memory_limit: &Quantity,
    cpu_request: &str,
    cpu_limit: &str,
) -> ResourceRequirements {
    ResourceRequirements {
        requests: Some(BTreeMap::from([
            ("cpu".to_owned(), quantity(cpu_request)),
            ("memory".to_owned(), memory_request.clone()),
        ])),
        limits: Some(BTreeMap::from([
            ("cpu".to_owned(), quantity(cpu_limit)),
            ("memory".to_owned(), memory_limit.clone()),
        ])),
        claims: None,
    }
}

pub(super) fn quantity(text: &str) -> Quantity {
    Quantity(text.to_owned())
}

/// What the `restricted` pod security level asks of a pod, and the one user that all our pods have.
pub(super) fn unprivileged() -> PodSecurityContext {
    let id = Some(i64::from(layout::USER_ID));
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: id,
        run_as_group: id,
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..PodSecurityContext::default()
    }
}

/// What the `restricted` pod security level asks of a container, and a read-only root.
pub(super) fn locked_down() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        ..SecurityContext::default()
    }
}

/// The same, and volumes that the user can write to.
pub(super) fn unprivileged_with_volumes() -> PodSecurityContext {
    PodSecurityContext {
        fs_group: Some(i64::from(layout::USER_ID)),
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        ..unprivileged()
    }
}

/// Cores in thousandths, rounded up.
pub(super) fn millicores(cores: f64) -> String {
    format!("{}m", (cores * 1000.0).ceil())
}
