//! Whether the cluster's definitions of our kinds are as new as this operator.
//!
//! The API server drops fields that a definition does not know. An operator that is newer than its definitions would then do half of
//! what a manifest asks for, in silence; so it refuses to start.

use codeworkspace_api::{GROUP, VERSION, crds};
use kube::Client;
use serde_json::Value;

/// Why the operator cannot start.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    /// The API server does not tell its schema.
    #[error(
        "the schema of {GROUP}/{VERSION} cannot be read: {0}; are the definitions installed (chart codeworkspace-crds)?"
    )]
    Unknown(#[from] kube::Error),
    /// The definitions are older than the operator.
    #[error(
        "the cluster's definitions are older than this operator and lack {}: upgrade the chart codeworkspace-crds first",
        .0.join(", ")
    )]
    Old(Vec<String>),
}

/// Compares what the API server knows of our kinds with what this operator writes and reads.
pub async fn check(client: &Client) -> Result<(), DefinitionsError> {
    let path = format!("/openapi/v3/apis/{GROUP}/{VERSION}");
    let request = http::Request::get(path)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    let document: Value = client.request(request).await?;
    let lacking = lacking(&document);
    if lacking.is_empty() {
        return Ok(());
    }
    Err(DefinitionsError::Old(lacking))
}

/// The kinds, and the fields directly below `spec` and `status`, that the document does not know.
fn lacking(document: &Value) -> Vec<String> {
    let mut lacking = Vec::new();
    for definition in crds() {
        let kind = &definition.spec.names.kind;
        let known = document["components"]["schemas"]
            .as_object()
            .and_then(|schemas| schemas.values().find(|schema| is_of_kind(schema, kind)));
        let Some(known) = known else {
            lacking.push(kind.clone());
            continue;
        };
        let ours = serde_json::to_value(&definition.spec.versions).unwrap_or_default();
        for part in ["spec", "status"] {
            let fields = ours[0]["schema"]["openAPIV3Schema"]["properties"][part]["properties"].as_object();
            let missing = fields
                .into_iter()
                .flat_map(|fields| fields.keys())
                .filter(|field| known["properties"][part]["properties"].get(field).is_none())
                .map(|field| format!("{kind}.{part}.{field}"));
            lacking.extend(missing);
        }
    }
    lacking
}

fn is_of_kind(schema: &Value, kind: &str) -> bool {
    schema["x-kubernetes-group-version-kind"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|of| of["kind"] == *kind && of["group"] == GROUP)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What the API server says when exactly our definitions are installed.
    fn document() -> Value {
        let schemas = crds().into_iter().map(|definition| {
            let kind = definition.spec.names.kind.clone();
            let versions = serde_json::to_value(&definition.spec.versions).unwrap();
            let mut schema = versions[0]["schema"]["openAPIV3Schema"].clone();
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": GROUP, "kind": kind, "version": VERSION}]);
            (format!("dev.codeworkspace.v1alpha1.{kind}"), schema)
        });
        json!({"components": {"schemas": schemas.collect::<serde_json::Map<_, _>>()}})
    }

    #[test]
    fn definitions_of_the_same_version_lack_nothing() {
        assert_eq!(lacking(&document()), Vec::<String>::new());
    }

    #[test]
    fn every_kind_and_field_that_older_definitions_lack_is_named() {
        let mut old = document();
        let schemas = old["components"]["schemas"].as_object_mut().unwrap();
        schemas.remove("dev.codeworkspace.v1alpha1.SecretInventory");
        let workspace = &mut schemas["dev.codeworkspace.v1alpha1.CodeWorkspace"]["properties"];
        workspace["spec"]["properties"]
            .as_object_mut()
            .unwrap()
            .remove("root");
        workspace["status"]["properties"]
            .as_object_mut()
            .unwrap()
            .remove("inputs");
        assert_eq!(
            lacking(&old),
            [
                "CodeWorkspace.spec.root",
                "CodeWorkspace.status.inputs",
                "SecretInventory"
            ]
        );
    }
}
