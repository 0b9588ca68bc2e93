//! `spec.pod` and `spec.volume.delivery`: how the pod of a workspace differs from the others.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where and as what the pod of a workspace runs, as far as its template allows.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct Pod {
    /// Name of a RuntimeClass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub runtime_class_name: Option<String>,
    /// Labels that the node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pod tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub tolerations: Vec<Toleration>,
    /// Further labels of the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub labels: BTreeMap<String, String>,
    /// Further annotations of the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub annotations: BTreeMap<String, String>,
    /// Name of a service account; its token is never mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// How a bundle reaches its pod.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeDelivery {
    /// By what suits its size.
    #[default]
    Auto,
    /// As an immutable ConfigMap.
    ConfigMap,
    /// Fetched from the operator.
    Fetch,
    /// On a PersistentVolume.
    PersistentVolume,
}

impl VolumeDelivery {
    /// The spelling of the manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "Auto",
            Self::ConfigMap => "ConfigMap",
            Self::Fetch => "Fetch",
            Self::PersistentVolume => "PersistentVolume",
        }
    }
}
