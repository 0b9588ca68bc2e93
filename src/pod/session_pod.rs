use std::collections::BTreeMap;

use codeworkspace_api::{ImagePullPolicy, RunnerTemplateSpec, labels};
use codeworkspace_bundle::Digest;
use codeworkspace_protocol::session::{PORT, REGISTRATION_AUDIENCE};
use codeworkspace_protocol::{RegisterArguments, ServeArguments, layout};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EmptyDirVolumeSource, Pod, PodSpec, Probe, ProjectedVolumeSource,
    ServiceAccountTokenProjection, TCPSocketAction, Volume, VolumeMount, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::parts::{
    empty_dir, kubernetes_arguments, locked_down, millicores, mount, quantity, resources,
    unprivileged_with_volumes,
};
use super::run_pod::PREPARE;
use crate::configuration::RunnerImage;

/// Name of the container that serves the session.
pub const SESSION: &str = "session";
/// How the names of all sessions' pods begin.
pub const SESSION_PREFIX: &str = "codeworkspace-session-";

/// Seconds that a token lives; the API server gives none for less.
const TOKEN_SECONDS: i64 = 600;
/// Seconds that the kubelet waits for a pod to end: the runner stops kernels and writes its record. A session's deadline takes them on
/// top.
const TERMINATION_GRACE_SECONDS: i64 = 5;
/// What the runner takes beyond what kernels and commands may.
const WRAPPER_MEMORY_MIB: i64 = 32;
/// Hex digits of a pool's hash.
const HASH_DIGITS: usize = 16;

/// What a session's pod is made of. It belongs to nobody while it waits, and to no interpreter ever: several share the pods of one
/// template.
#[derive(Debug)]
pub struct SessionPod<'a> {
    /// Where its sessions are.
    pub namespace: &'a str,
    /// Name of the template.
    pub template_name: &'a str,
    /// Image, kernels and limits.
    pub template: &'a RunnerTemplateSpec,
    /// Address of the registration endpoint, `host:port`: pods of sessions have no DNS.
    pub operator: &'a str,
    /// The internal authority's certificate, as one word.
    pub authority: &'a str,
    /// Seconds that kernels may take to be ready.
    pub start_seconds: i64,
    /// The image that brings the runner.
    pub runner_image: &'a RunnerImage,
}

impl SessionPod<'_> {
    /// Hash of everything that a pod is made of besides its name: a pod with another one is outdated.
    pub fn hash(&self) -> String {
        // A value of JSON keeps its keys in order, so that equal pods are equal texts.
        let spec = serde_json::to_value(self.spec()).unwrap_or_default();
        let text = format!("{} {} {spec}", self.namespace, self.template_name);
        let digest = Digest::of(text.as_bytes()).to_string();
        digest.chars().skip("sha256:".len()).take(HASH_DIGITS).collect()
    }

    /// The pod object. `unique` tells it from every other pod: letters and digits.
    pub fn build(&self, unique: &str) -> Pod {
        Pod {
            metadata: ObjectMeta {
                name: Some(format!("{SESSION_PREFIX}{unique}")),
                namespace: Some(self.namespace.to_owned()),
                labels: Some(BTreeMap::from(
                    [
                        (labels::MANAGED_BY, labels::MANAGER.to_owned()),
                        (labels::CLASS, labels::CLASS_SESSION.to_owned()),
                        (labels::TEMPLATE, labels::value(self.template_name)),
                        (labels::POOL, self.hash()),
                        (labels::STATE, labels::STATE_WARM.to_owned()),
                    ]
                    .map(|(key, value)| (key.to_owned(), value)),
                )),
                annotations: Some(BTreeMap::from([(
                    "kubectl.kubernetes.io/default-container".to_owned(),
                    SESSION.to_owned(),
                )])),
                ..ObjectMeta::default()
            },
            spec: Some(self.spec()),
            status: None,
        }
    }

    fn spec(&self) -> PodSpec {
        PodSpec {
            init_containers: Some(vec![self.prepare()]),
            containers: vec![self.session()],
            volumes: Some(self.volumes()),
            restart_policy: Some("Never".to_owned()),
            // No deadline while it waits: the claim sets one.
            termination_grace_period_seconds: Some(TERMINATION_GRACE_SECONDS),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            image_pull_secrets: Some(self.template.image_pull_secrets.clone())
                .filter(|secrets| !secrets.is_empty()),
            security_context: Some(unprivileged_with_volumes()),
            ..PodSpec::default()
        }
    }

    fn prepare(&self) -> Container {
        let arguments = RegisterArguments {
            operator: self.operator.to_owned(),
            authority: self.authority.to_owned(),
            token: format!("{}/{}", layout::TOKEN_DIRECTORY, layout::TOKEN_FILE),
            identity: layout::IDENTITY_DIRECTORY.to_owned(),
            install: layout::TOOLS_DIRECTORY.to_owned(),
            termination_log: layout::TERMINATION_LOG.to_owned(),
        };
        let (request, limit) = (quantity("32Mi"), quantity("64Mi"));
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
                    ..mount("token", layout::TOKEN_DIRECTORY)
                },
                mount("identity", layout::IDENTITY_DIRECTORY),
                mount("tools", layout::TOOLS_DIRECTORY),
            ]),
            ..Container::default()
        }
    }

    fn session(&self) -> Container {
        let arguments = ServeArguments {
            identity: layout::IDENTITY_DIRECTORY.to_owned(),
            authority: self.authority.to_owned(),
            root: layout::DEFAULT_MOUNT.to_owned(),
            kernels: self.template.kernels.clone(),
            port: PORT,
            termination_log: layout::TERMINATION_LOG.to_owned(),
        };
        let limits = self.template.session_limits.clone().unwrap_or_default();
        let memory = quantity(&format!(
            "{}Mi",
            limits.memory_mb.saturating_add(WRAPPER_MEMORY_MIB)
        ));
        Container {
            name: SESSION.to_owned(),
            image: Some(self.template.image.clone()),
            image_pull_policy: self
                .template
                .image_pull_policy
                .map(ImagePullPolicy::as_str)
                .map(str::to_owned),
            command: Some(vec![layout::RUNNER.to_owned()]),
            args: Some(kubernetes_arguments(arguments.to_args())),
            working_dir: Some(layout::DEFAULT_MOUNT.to_owned()),
            ports: Some(vec![ContainerPort {
                name: Some("session".to_owned()),
                container_port: i32::from(PORT),
                protocol: Some("TCP".to_owned()),
                ..ContainerPort::default()
            }]),
            // The port opens when all kernels are ready. There is no other probe: a session that is busy is not broken.
            startup_probe: Some(Probe {
                tcp_socket: Some(TCPSocketAction {
                    port: IntOrString::Int(i32::from(PORT)),
                    host: None,
                }),
                period_seconds: Some(1),
                failure_threshold: Some(i32::try_from(self.start_seconds.max(1)).unwrap_or(i32::MAX)),
                ..Probe::default()
            }),
            resources: Some(resources(&memory, &memory, "10m", &millicores(limits.vcpus))),
            security_context: Some(locked_down()),
            volume_mounts: Some(vec![
                VolumeMount {
                    read_only: Some(true),
                    ..mount("tools", layout::TOOLS_DIRECTORY)
                },
                // Writable: the key is removed once it is loaded.
                mount("identity", layout::IDENTITY_DIRECTORY),
                mount("workspace", layout::DEFAULT_MOUNT),
                mount("tmp", layout::TEMPORARY_DIRECTORY),
                mount("home", layout::HOME),
            ]),
            ..Container::default()
        }
    }

    fn volumes(&self) -> Vec<Volume> {
        let limits = self.template.session_limits.clone().unwrap_or_default();
        let size = format!("{}Mi", limits.ephemeral_storage_mb);
        vec![
            Volume {
                name: "token".to_owned(),
                projected: Some(ProjectedVolumeSource {
                    sources: Some(vec![VolumeProjection {
                        service_account_token: Some(ServiceAccountTokenProjection {
                            audience: Some(REGISTRATION_AUDIENCE.to_owned()),
                            expiration_seconds: Some(TOKEN_SECONDS),
                            path: layout::TOKEN_FILE.to_owned(),
                        }),
                        ..VolumeProjection::default()
                    }]),
                    default_mode: None,
                }),
                ..Volume::default()
            },
            Volume {
                empty_dir: Some(EmptyDirVolumeSource {
                    medium: Some("Memory".to_owned()),
                    size_limit: Some(quantity("1Mi")),
                }),
                ..empty_dir("identity", "1Mi")
            },
            empty_dir("tools", "16Mi"),
            empty_dir("workspace", &size),
            empty_dir("tmp", &size),
            empty_dir("home", &size),
        ]
    }
}

#[cfg(test)]
mod tests {
    use codeworkspace_api::{RunnerLanguage, SessionLimits};
    use insta::assert_yaml_snapshot;

    use super::*;

    fn template() -> RunnerTemplateSpec {
        RunnerTemplateSpec {
            image: "example/interpreter:1".to_owned(),
            image_pull_policy: Some(ImagePullPolicy::IfNotPresent),
            image_pull_secrets: Vec::new(),
            languages: vec![RunnerLanguage::Python],
            native: Vec::new(),
            tools: Vec::new(),
            kernels: vec!["python3".to_owned(), "javascript".to_owned()],
            session_limits: None,
            weight: 100,
        }
    }

    fn image() -> RunnerImage {
        RunnerImage {
            reference: "example/operator:1".to_owned(),
            pull_policy: None,
        }
    }

    fn pod<'a>(template: &'a RunnerTemplateSpec, runner_image: &'a RunnerImage) -> SessionPod<'a> {
        SessionPod {
            namespace: "default",
            template_name: "interpreter",
            template,
            operator: "10.96.0.7:8443",
            authority: "UEVN",
            start_seconds: 120,
            runner_image,
        }
    }

    #[test]
    fn the_pod_of_a_session_is_locked_down_and_only_its_preparation_has_a_token() {
        assert_yaml_snapshot!(pod(&template(), &image()).build("0abc"));
    }

    #[test]
    fn a_template_says_what_a_session_may_use() {
        let template = RunnerTemplateSpec {
            session_limits: Some(SessionLimits {
                memory_mb: 200,
                vcpus: 0.25,
                ephemeral_storage_mb: 77,
            }),
            ..template()
        };
        let spec = pod(&template, &image()).build("0").spec.unwrap();
        let limits = spec.containers[0].resources.clone().unwrap().limits.unwrap();
        assert_eq!(
            (&limits["memory"], &limits["cpu"]),
            (&quantity("232Mi"), &quantity("250m"))
        );
        let sizes: Vec<_> = spec
            .volumes
            .iter()
            .flatten()
            .filter_map(|volume| volume.empty_dir.as_ref()?.size_limit.clone())
            .map(|size| size.0)
            .collect();
        assert_eq!(sizes, ["1Mi", "16Mi", "77Mi", "77Mi", "77Mi"]);
    }

    #[test]
    fn pods_of_one_pool_have_one_hash_and_everything_that_matters_changes_it() {
        let (template, image) = (template(), image());
        let hash = pod(&template, &image).hash();
        assert_eq!(hash, pod(&template, &image).hash());
        assert_eq!(hash.len(), HASH_DIGITS);
        let label = pod(&template, &image).build("1").metadata.labels.unwrap()[labels::POOL].clone();
        assert_eq!(label, hash);
        let mut changed = vec![
            SessionPod {
                operator: "10.96.0.8:8443",
                ..pod(&template, &image)
            }
            .hash(),
            SessionPod {
                authority: "UEVO",
                ..pod(&template, &image)
            }
            .hash(),
        ];
        let newer = RunnerTemplateSpec {
            image: "example/interpreter:2".to_owned(),
            ..template.clone()
        };
        changed.push(pod(&newer, &image).hash());
        let fewer = RunnerTemplateSpec {
            kernels: vec!["python3".to_owned()],
            ..template.clone()
        };
        changed.push(pod(&fewer, &image).hash());
        let upgraded = RunnerImage {
            reference: "example/operator:2".to_owned(),
            pull_policy: None,
        };
        changed.push(pod(&template, &upgraded).hash());
        assert!(changed.iter().all(|other| *other != hash), "{changed:?}");
        // What only picks templates for runs does not.
        let heavier = RunnerTemplateSpec {
            weight: 7,
            ..template
        };
        assert_eq!(pod(&heavier, &image).hash(), hash);
    }
}
