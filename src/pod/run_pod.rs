use std::collections::BTreeMap;

use codeworkspace_api::{
    CodeRun, ImagePullPolicy, ResolvedLimits, RunnerTemplateSpec, Volume as WorkspaceVolume, labels,
};
use codeworkspace_protocol::{ExecArguments, PrepareArguments, layout};
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, KeyToPath, Pod, PodSpec, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource as _;

use super::parts::{
    empty_dir, kubernetes_arguments, locked_down, millicores, mount, quantity, resources,
    unprivileged_with_volumes,
};
use crate::configuration::{RunnerImage, Runs};

/// Name of the init container that brings runner and bundle.
pub const PREPARE: &str = "prepare";
/// Name of the container that runs the body.
pub const BODY: &str = "body";

/// Milliseconds between asking a body to end and killing it.
const GRACE_MS: u64 = 5_000;
/// Seconds that the kubelet waits for a pod to end: the runner's own grace and some time to write the record.
const TERMINATION_GRACE_SECONDS: i64 = 15;
/// Size limit of the volumes at `/tmp` and the home, each, when the workspace limits no scratch space.
const SCRATCH_MIB: i64 = 512;
/// What the runner and its bookkeeping take beyond the body's own memory.
const WRAPPER_MEMORY_MIB: i64 = 16;

/// What a run's pod is made of. Every part was resolved and checked before.
#[derive(Debug)]
pub struct RunPod<'a> {
    /// The run; it owns the pod and gives it its name.
    pub run: &'a CodeRun,
    /// Name of the ConfigMap that holds the bundle.
    pub bundle_config_map: &'a str,
    /// Digest that the runner verifies.
    pub digest: &'a str,
    /// The workspace's volume.
    pub volume: &'a WorkspaceVolume,
    /// The command, without the run's own arguments.
    pub argv: &'a [String],
    /// What the body may use.
    pub limits: &'a ResolvedLimits,
    /// The image and how to pull it.
    pub template: &'a RunnerTemplateSpec,
    /// The image that brings the runner.
    pub runner_image: &'a RunnerImage,
    /// Defaults and limits of runs.
    pub runs: &'a Runs,
}

impl RunPod<'_> {
    /// The pod object.
    pub fn build(&self) -> Pod {
        let name = self.run.metadata.name.clone().unwrap_or_default();
        let workspace = &self.run.spec.workspace_ref.name;
        let timeout_ms = self.timeout_ms();
        Pod {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: self.run.metadata.namespace.clone(),
                labels: Some(BTreeMap::from(
                    [
                        (labels::MANAGED_BY, labels::MANAGER.to_owned()),
                        (labels::CLASS, labels::CLASS_RUN.to_owned()),
                        (labels::WORKSPACE, labels::value(workspace)),
                        (labels::RUN, labels::value(&name)),
                    ]
                    .map(|(key, value)| (key.to_owned(), value)),
                )),
                annotations: Some(BTreeMap::from(
                    [
                        (labels::BUNDLE_DIGEST, self.digest),
                        // Spares whoever reads the log the choice between the body and its preparation.
                        ("kubectl.kubernetes.io/default-container", BODY),
                    ]
                    .map(|(key, value)| (key.to_owned(), value.to_owned())),
                )),
                owner_references: self.run.controller_owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec {
                init_containers: Some(vec![self.prepare()]),
                containers: vec![self.body(timeout_ms)],
                volumes: Some(self.volumes()),
                restart_policy: Some("Never".to_owned()),
                // Counted from the pod's start, so that it includes pulls and unpacking; the runner itself keeps the body's time.
                active_deadline_seconds: Some(
                    self.runs.start_budget_seconds + timeout_ms / 1000 + TERMINATION_GRACE_SECONDS,
                ),
                termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
                automount_service_account_token: Some(false),
                enable_service_links: Some(false),
                image_pull_secrets: Some(self.template.image_pull_secrets.clone())
                    .filter(|secrets| !secrets.is_empty()),
                security_context: Some(unprivileged_with_volumes()),
                ..PodSpec::default()
            }),
            status: None,
        }
    }

    /// Milliseconds that the body may take: the run's own wish, never above the workspace's or the operator's limit.
    fn timeout_ms(&self) -> i64 {
        let limit = self
            .limits
            .timeout_ms
            .min(self.runs.maximum_timeout_seconds.saturating_mul(1000));
        self.run
            .spec
            .timeout_seconds
            .map_or(limit, |seconds| limit.min(seconds.saturating_mul(1000)))
    }

    fn mount_path(&self) -> &str {
        self.volume.mount_path.as_deref().unwrap_or(layout::DEFAULT_MOUNT)
    }

    fn prepare(&self) -> Container {
        let arguments = PrepareArguments {
            bundle: layout::BUNDLE.to_owned(),
            digest: self.digest.to_owned(),
            target: self.mount_path().to_owned(),
            install: layout::TOOLS_DIRECTORY.to_owned(),
            termination_log: layout::TERMINATION_LOG.to_owned(),
        };
        // The unpacker holds one file at a time, and its buffer may double while it grows.
        let (request, limit) = (quantity("32Mi"), quantity("256Mi"));
        Container {
            name: PREPARE.to_owned(),
            image: Some(self.runner_image.reference.clone()),
            image_pull_policy: self.runner_image.pull_policy.clone(),
            command: Some(vec!["/usr/local/bin/runner".to_owned()]),
            args: Some(kubernetes_arguments(arguments.to_args())),
            resources: Some(resources(&request, &limit, "10m", "1")),
            security_context: Some(locked_down()),
            volume_mounts: Some(vec![
                VolumeMount {
                    read_only: Some(true),
                    ..mount("bundle", layout::BUNDLE_DIRECTORY)
                },
                mount("tools", layout::TOOLS_DIRECTORY),
                mount("workspace", self.mount_path()),
            ]),
            ..Container::default()
        }
    }

    fn body(&self, timeout_ms: i64) -> Container {
        let arguments = ExecArguments {
            workdir: self.mount_path().to_owned(),
            timeout_ms: u64::try_from(timeout_ms).ok().filter(|timeout| *timeout > 0),
            grace_ms: GRACE_MS,
            termination_log: layout::TERMINATION_LOG.to_owned(),
            argv: self.argv.iter().chain(&self.run.spec.args).cloned().collect(),
        };
        let memory = quantity(&format!(
            "{}Mi",
            self.limits.memory_mb.saturating_add(WRAPPER_MEMORY_MIB)
        ));
        let cpu = self.limits.vcpus.map_or_else(|| "1".to_owned(), millicores);
        Container {
            name: BODY.to_owned(),
            image: Some(self.template.image.clone()),
            image_pull_policy: self
                .template
                .image_pull_policy
                .map(ImagePullPolicy::as_str)
                .map(str::to_owned),
            command: Some(vec![layout::RUNNER.to_owned()]),
            args: Some(kubernetes_arguments(arguments.to_args())),
            working_dir: Some(self.mount_path().to_owned()),
            resources: Some(resources(&memory, &memory, "10m", &cpu)),
            security_context: Some(locked_down()),
            volume_mounts: Some(vec![
                VolumeMount {
                    read_only: Some(true),
                    ..mount("tools", layout::TOOLS_DIRECTORY)
                },
                VolumeMount {
                    read_only: Some(self.volume.read_only).filter(|read_only| *read_only),
                    ..mount("workspace", self.mount_path())
                },
                mount("tmp", layout::TEMPORARY_DIRECTORY),
                mount("home", layout::HOME),
            ]),
            ..Container::default()
        }
    }

    fn volumes(&self) -> Vec<Volume> {
        let scratch = format!("{}Mi", self.limits.ephemeral_storage_mb.unwrap_or(SCRATCH_MIB));
        let workspace = self
            .volume
            .size_limit
            .as_deref()
            .unwrap_or(&self.runs.volume_size_limit);
        vec![
            Volume {
                name: "bundle".to_owned(),
                config_map: Some(ConfigMapVolumeSource {
                    name: self.bundle_config_map.to_owned(),
                    items: Some(vec![KeyToPath {
                        key: layout::BUNDLE_KEY.to_owned(),
                        path: layout::BUNDLE_KEY.to_owned(),
                        mode: None,
                    }]),
                    ..ConfigMapVolumeSource::default()
                }),
                ..Volume::default()
            },
            empty_dir("tools", "16Mi"),
            empty_dir("workspace", workspace),
            empty_dir("tmp", &scratch),
            empty_dir("home", &scratch),
        ]
    }
}

#[cfg(test)]
#[path = "run_pod_tests.rs"]
mod tests;
