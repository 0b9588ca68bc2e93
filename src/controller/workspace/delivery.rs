//! Delivery of a bundle by an immutable ConfigMap. Pure.

use std::collections::BTreeMap;

use codeworkspace_api::{CodeWorkspace, labels};
use codeworkspace_bundle::Bundle;
use codeworkspace_protocol::layout;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};

/// Name of this delivery in status.
pub const CONFIG_MAP: &str = "ConfigMap";

/// Name of the ConfigMap of a bundle. It holds the workspace's uid, so that a workspace that was deleted and made again never
/// meets its predecessor's, and the head of the digest.
pub fn config_map_name(workspace_uid: &str, digest: &str) -> String {
    let digest = digest.split_once(':').map_or(digest, |(_, hex)| hex);
    let digest: String = digest.chars().take(16).collect();
    format!("codeworkspace-bundle-{workspace_uid}-{digest}")
}

/// Whether a ConfigMap of that name is ours and whole: the runner verifies the content itself.
pub fn holds(metadata: &ObjectMeta, workspace_uid: &str, digest: &str) -> bool {
    let annotated = metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(labels::BUNDLE_DIGEST));
    let owned = metadata
        .owner_references
        .iter()
        .flatten()
        .any(|owner| owner.uid == workspace_uid);
    annotated.is_some_and(|annotated| annotated == digest) && owned && metadata.deletion_timestamp.is_none()
}

/// The ConfigMap of a bundle, owned by its workspace.
pub fn config_map(workspace: &CodeWorkspace, bundle: &Bundle) -> ConfigMap {
    let digest = bundle.digest.to_string();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(config_map_name(&workspace.uid().unwrap_or_default(), &digest)),
            namespace: workspace.namespace(),
            labels: Some(BTreeMap::from(
                [
                    (labels::MANAGED_BY, labels::MANAGER.to_owned()),
                    (labels::WORKSPACE, labels::value(&workspace.name_any())),
                ]
                .map(|(key, value)| (key.to_owned(), value)),
            )),
            annotations: Some(BTreeMap::from([(labels::BUNDLE_DIGEST.to_owned(), digest)])),
            owner_references: workspace.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        immutable: Some(true),
        binary_data: Some(BTreeMap::from([(
            layout::BUNDLE_KEY.to_owned(),
            ByteString(bundle.compressed.to_vec()),
        )])),
        data: None,
    }
}
