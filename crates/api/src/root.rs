//! `spec.root`: where `local` sources, and `ref` to a folder, read their files.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where `local` sources, and `ref` to a folder, read: exactly one of `configMaps`, `persistentVolumeClaim`, `github` and
/// `fluxSource`. Objects are those of the workspace's own namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct Root {
    /// ConfigMaps whose keys are files. Two that give the same path are an error that names both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub config_maps: Option<Vec<ConfigMapRoot>>,
    /// A volume, read by a short pod when a source asks for it, and not at each scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimRoot>,
    /// A repository, or a folder of it, as the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub github: Option<GithubRoot>,
    /// What Flux fetched: the artifact of a GitRepository or OCIRepository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flux_source: Option<FluxSourceRoot>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

impl Root {
    /// The kinds of root, as they are written, in the order in which messages list them.
    pub const KINDS: [&str; 4] = ["configMaps", "persistentVolumeClaim", "github", "fluxSource"];

    /// The kinds that are there; exactly one may be.
    pub fn kinds(&self) -> Vec<&'static str> {
        let there = [
            self.config_maps.is_some(),
            self.persistent_volume_claim.is_some(),
            self.github.is_some(),
            self.flux_source.is_some(),
        ];
        Self::KINDS
            .into_iter()
            .zip(there)
            .filter_map(|(kind, there)| there.then_some(kind))
            .collect()
    }

    /// Every key that this version does not know, with its path below `root`.
    pub fn unknown_keys(&self) -> Vec<String> {
        let mut found: Vec<String> = self.unknown.keys().cloned().collect();
        let mut below = |field: &str, unknown: &BTreeMap<String, Value>| {
            found.extend(unknown.keys().map(|key| format!("{field}.{key}")));
        };
        for (index, config_map) in self.config_maps.iter().flatten().enumerate() {
            below(&format!("configMaps[{index}]"), &config_map.unknown);
            for (item, entry) in config_map.items.iter().flatten().enumerate() {
                below(&format!("configMaps[{index}].items[{item}]"), &entry.unknown);
            }
        }
        if let Some(claim) = &self.persistent_volume_claim {
            below("persistentVolumeClaim", &claim.unknown);
        }
        if let Some(github) = &self.github {
            below("github", &github.unknown);
        }
        if let Some(flux) = &self.flux_source {
            below("fluxSource", &flux.unknown);
        }
        found
    }
}

/// One ConfigMap of the workspace's namespace; `data` and `binaryData` are both read.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct ConfigMapRoot {
    /// Name of the ConfigMap.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Keys that stand at another path than their own name. All other keys keep theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub items: Option<Vec<ConfigMapItem>>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// One key as a file.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct ConfigMapItem {
    /// Key of the ConfigMap. One that is not there is an error.
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$"))]
    pub key: String,
    /// Path in the root; unlike a key it may have folders.
    #[schemars(length(min = 1, max = 1024))]
    pub path: String,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// A PersistentVolumeClaim of the workspace's namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct ClaimRoot {
    /// Name of the claim. A ReadWriteOnce claim that a pod on another node uses is an error that says so.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub claim_name: String,
    /// Folder of the volume that is the root; the whole volume when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// A repository as the workspace. The host is the operator's configuration.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct GithubRoot {
    /// `owner/name`.
    #[schemars(
        length(min = 1, max = 140),
        regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9_-]*/[A-Za-z0-9._-]+$")
    )]
    pub repo: String,
    /// A whole commit id (never looked up again), a tag, a branch, or `refs/tags/…`, `refs/heads/…`.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 255))]
    pub reference: String,
    /// Folder of the repository that is the root; the whole repository when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// The artifact of a Flux source of the workspace's namespace.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct FluxSourceRoot {
    /// `GitRepository` or `OCIRepository`.
    pub kind: FluxKind,
    /// Name of the source.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Folder of the artifact that is the root; the whole artifact when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// The kinds of Flux sources whose artifacts are trees of files.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FluxKind {
    /// A git repository at the revision that Flux fetched.
    GitRepository,
    /// An OCI artifact.
    OCIRepository,
}

impl FluxKind {
    /// The kind's own spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GitRepository => "GitRepository",
            Self::OCIRepository => "OCIRepository",
        }
    }

    /// Its plural in URLs and permissions.
    pub fn plural(self) -> &'static str {
        match self {
            Self::GitRepository => "gitrepositories",
            Self::OCIRepository => "ocirepositories",
        }
    }
}

/// What the operator found at `spec.root`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootStatus {
    /// The kind as it is written, for example `configMaps`.
    pub kind: String,
    /// What it points at, for people.
    pub summary: String,
    /// What identifies its files: a whole commit id, Flux's revision, or a digest of the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}
