//! `RunnerTemplate`: the registry of images that runs may use (AIP-17, "Image registry").

use k8s_openapi::api::core::v1::LocalObjectReference;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An image that runs may use, and what it holds. A workspace names a template by `runner.image`, or one is picked by
/// `runner.needs`: templates that satisfy the language and hold every native package, by `weight` (lightest first), then
/// by name.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "codeworkspace.dev",
    version = "v1alpha1",
    doc = "An image that runs may use, and what it holds.",
    kind = "RunnerTemplate",
    plural = "runnertemplates",
    shortname = "rtpl",
    category = "code",
    printcolumn(name = "Image", json_path = ".spec.image", type_ = "string"),
    printcolumn(name = "Languages", json_path = ".spec.languages", type_ = "string"),
    printcolumn(name = "Weight", json_path = ".spec.weight", type_ = "integer"),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
pub struct RunnerTemplateSpec {
    /// Image reference as in a pod, for example `registry.example/python:3.13@sha256:…`. A digest keeps runs reproducible.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// When the kubelet pulls the image; the cluster's own default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Names of pull secrets in the run's namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Languages that the image runs. `multi` stands for shell commands and arbitrary argument lists.
    #[schemars(length(min = 1, max = 3))]
    pub languages: Vec<RunnerLanguage>,
    /// Native packages (Debian names) that are baked into the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512))]
    pub native: Vec<String>,
    /// Commands that the image brings beyond its languages' own, for example `tsx`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub tools: Vec<String>,
    /// Jupyter kernels that the image brings, by the names of their kernelspecs, for example `python3`. A template with
    /// kernels can be that of a CodeInterpreter: each of its sessions starts all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 8),
        inner(length(min = 1, max = 63), regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$"))
    )]
    pub kernels: Vec<String>,
    /// What each session of a CodeInterpreter may use. Runs say that themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_limits: Option<SessionLimits>,
    /// Lighter templates are picked first.
    #[serde(default = "default_weight")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub weight: i32,
}

/// What a session may use.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionLimits {
    /// Mebibytes of memory for everything in the session: kernels, commands and their children.
    #[serde(default = "default_memory_mb")]
    #[schemars(range(min = 64, max = 1_048_576))]
    pub memory_mb: i64,
    /// Cores, which may be a fraction.
    #[serde(default = "default_vcpus")]
    #[schemars(range(min = 0.01, max = 1024.0))]
    pub vcpus: f64,
    /// Mebibytes of each of the session's volumes: its files, `/tmp` and the home.
    #[serde(default = "default_ephemeral_storage_mb")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub ephemeral_storage_mb: i64,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            memory_mb: default_memory_mb(),
            vcpus: default_vcpus(),
            ephemeral_storage_mb: default_ephemeral_storage_mb(),
        }
    }
}

fn default_memory_mb() -> i64 {
    1024
}

fn default_vcpus() -> f64 {
    1.0
}

fn default_ephemeral_storage_mb() -> i64 {
    1024
}

fn default_weight() -> i32 {
    100
}

/// A language as AIP-17 spells it.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunnerLanguage {
    /// JavaScript and TypeScript.
    Node,
    /// Python.
    Python,
    /// Shell commands and arbitrary argument lists.
    Multi,
}

impl RunnerLanguage {
    /// The AIP's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Python => "python",
            Self::Multi => "multi",
        }
    }
}

/// When the kubelet pulls an image.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImagePullPolicy {
    /// At every start.
    Always,
    /// Only when the node lacks it.
    IfNotPresent,
    /// Never; the node must have it.
    Never,
}

impl ImagePullPolicy {
    /// The spelling of the Kubernetes API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}
