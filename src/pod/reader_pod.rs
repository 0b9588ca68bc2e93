use std::collections::BTreeMap;

use codeworkspace_api::{CodeWorkspace, labels};
use codeworkspace_bundle::{BundlePath, Caps, Digest};
use codeworkspace_protocol::{ReadArguments, RefusedLinks, layout};
use k8s_openapi::api::core::v1::{
    Affinity, Container, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PersistentVolumeClaimVolumeSource, Pod, PodSpec, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};

use super::parts::{kubernetes_arguments, locked_down, mount, quantity, resources, unprivileged};
use crate::configuration::RunnerImage;

/// Name of the container that reads.
pub const READER: &str = "reader";
/// How the names of all readers begin. An admission policy lets the operator attach to pods of such names only.
pub const READER_PREFIX: &str = "codeworkspace-reader-";

const VOLUME: &str = "root";
/// Hex digits in a name that tell readers apart: enough that no two readings of a cluster meet.
const NAME_DIGITS: usize = 20;

/// What a reader's pod is made of.
#[derive(Debug)]
pub struct ReaderPod<'a> {
    /// The workspace that asks; it owns the pod.
    pub workspace: &'a CodeWorkspace,
    /// Name of the claim.
    pub claim: &'a str,
    /// The folder of the volume.
    pub folder: Option<&'a BundlePath>,
    /// What is read, in a form that tells one reading from every other.
    pub identity: &'a str,
    /// The node that the volume is bound to while another pod uses it.
    pub node: Option<&'a str>,
    /// Whether links that cannot be kept are left out.
    pub skip_links: bool,
    /// What is read at most.
    pub caps: Caps,
    /// Seconds after which the kubelet ends the pod, whatever became of the operator.
    pub deadline_seconds: i64,
    /// The image that brings the runner.
    pub runner_image: &'a RunnerImage,
}

impl ReaderPod<'_> {
    /// Name of the pod: the same for the same reading, so that a second try meets what a first one has left.
    pub fn name(&self) -> String {
        let uid = self.workspace.uid().unwrap_or_default();
        let digest = Digest::of(format!("{uid} {}", self.identity).as_bytes()).to_string();
        let digits: String = digest.chars().skip("sha256:".len()).take(NAME_DIGITS).collect();
        format!("{READER_PREFIX}{digits}")
    }

    /// The pod object.
    ///
    /// There is no `fsGroup`: with one, the kubelet would change the owner of every file of the volume.
    pub fn build(&self) -> Pod {
        Pod {
            metadata: ObjectMeta {
                name: Some(self.name()),
                namespace: self.workspace.namespace(),
                labels: Some(BTreeMap::from(
                    [
                        (labels::MANAGED_BY, labels::MANAGER.to_owned()),
                        (labels::CLASS, labels::CLASS_READER.to_owned()),
                        (labels::WORKSPACE, labels::value(&self.workspace.name_any())),
                    ]
                    .map(|(key, value)| (key.to_owned(), value)),
                )),
                owner_references: self.workspace.owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec {
                containers: vec![self.reader()],
                volumes: Some(vec![Volume {
                    name: VOLUME.to_owned(),
                    persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                        claim_name: self.claim.to_owned(),
                        read_only: Some(true),
                    }),
                    ..Volume::default()
                }]),
                affinity: self.node.map(on_node),
                restart_policy: Some("Never".to_owned()),
                active_deadline_seconds: Some(self.deadline_seconds),
                // Process 1 takes no notice of being asked to end, and has nothing to finish.
                termination_grace_period_seconds: Some(1),
                automount_service_account_token: Some(false),
                enable_service_links: Some(false),
                security_context: Some(unprivileged()),
                ..PodSpec::default()
            }),
            status: None,
        }
    }

    fn reader(&self) -> Container {
        let arguments = ReadArguments {
            folder: layout::ROOT_DIRECTORY.to_owned(),
            below: self.folder.map(ToString::to_string),
            links: if self.skip_links {
                RefusedLinks::Skip
            } else {
                RefusedLinks::Fail
            },
            max_entries: self.caps.entries,
            max_file_bytes: self.caps.file_bytes,
            max_total_bytes: self.caps.total_bytes,
        };
        // The reader holds a piece of one file and the names of the folders above it.
        let (request, limit) = (quantity("32Mi"), quantity("128Mi"));
        Container {
            name: READER.to_owned(),
            image: Some(self.runner_image.reference.clone()),
            image_pull_policy: self.runner_image.pull_policy.clone(),
            command: Some(vec!["/usr/local/bin/runner".to_owned()]),
            args: Some(kubernetes_arguments(arguments.to_args())),
            // Whoever attaches first is the last one: its input ends with them.
            stdin: Some(true),
            stdin_once: Some(true),
            resources: Some(resources(&request, &limit, "10m", "1")),
            security_context: Some(locked_down()),
            volume_mounts: Some(vec![VolumeMount {
                read_only: Some(true),
                ..mount(VOLUME, layout::ROOT_DIRECTORY)
            }]),
            ..Container::default()
        }
    }
}

/// By the node's name: its labels may say something else.
fn on_node(node: &str) -> Affinity {
    let term = NodeSelectorTerm {
        match_fields: Some(vec![NodeSelectorRequirement {
            key: "metadata.name".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![node.to_owned()]),
        }]),
        match_expressions: None,
    };
    Affinity {
        node_affinity: Some(NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(NodeSelector {
                node_selector_terms: vec![term],
            }),
            ..NodeAffinity::default()
        }),
        ..Affinity::default()
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_yaml_snapshot;
    use serde_json::json;

    use super::*;

    fn workspace() -> CodeWorkspace {
        serde_json::from_value(json!({
            "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeWorkspace",
            "metadata": {"name": "tool", "namespace": "default", "uid": "uid-1"},
            "spec": {"code": {"sources": []}}
        }))
        .unwrap()
    }

    fn reader<'a>(workspace: &'a CodeWorkspace, image: &'a RunnerImage, identity: &'a str) -> ReaderPod<'a> {
        ReaderPod {
            workspace,
            claim: "files",
            folder: None,
            identity,
            node: None,
            skip_links: false,
            caps: Caps::default(),
            deadline_seconds: 600,
            runner_image: image,
        }
    }

    fn image() -> RunnerImage {
        RunnerImage {
            reference: "example/operator:1".to_owned(),
            pull_policy: None,
        }
    }

    #[test]
    fn the_pod_of_a_reader_is_locked_down_and_can_only_read_the_volume() {
        assert_yaml_snapshot!(reader(&workspace(), &image(), "identity").build());
    }

    #[test]
    fn a_folder_is_read_where_the_volume_is_in_use() {
        let (workspace, image) = (workspace(), image());
        let folder = "team/$(HOME)".parse().unwrap();
        let pod = ReaderPod {
            folder: Some(&folder),
            node: Some("node-7"),
            skip_links: true,
            ..reader(&workspace, &image, "identity")
        }
        .build();
        let spec = pod.spec.unwrap();
        let arguments = spec.containers[0].args.clone().unwrap();
        assert_eq!(
            arguments[..7],
            [
                "read",
                "--folder",
                "/codeworkspace-root",
                "--below",
                "team/$$(HOME)",
                "--links",
                "skip"
            ]
        );
        assert_eq!(spec.affinity, Some(on_node("node-7")));
    }

    #[test]
    fn each_reading_of_each_workspace_has_a_pod_of_its_own() {
        let (workspace, image) = (workspace(), image());
        let mut other = workspace.clone();
        other.metadata.uid = Some("uid-2".to_owned());
        let name = reader(&workspace, &image, "1").name();
        assert_eq!(name, reader(&workspace, &image, "1").name());
        assert_ne!(name, reader(&workspace, &image, "2").name());
        assert_ne!(name, reader(&other, &image, "1").name());
        assert!(name.len() <= 63);
    }
}
