//! What Flux fetched as a root.
//!
//! The object's status says which artifact it is. Tenants may write that status, so that it is checked before anything is
//! fetched: see [`Artifacts`](codeworkspace_source::Artifacts).

use codeworkspace_api::{FluxKind, RootStatus, reason};
use codeworkspace_source::{Artifact, Artifacts, LinkPolicy, SourceError};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde::Deserialize;
use serde_json::Value;

use super::definition::FluxDefinition;
use super::{Content, Files, Root};
use crate::controller::Dependency;
use crate::controller::fault::{Fault, Healing};
use crate::controller::workspace::lookup::Lookup;

const FIELD: &str = "root.fluxSource";
const GROUP: &str = "source.toolkit.fluxcd.io";
const VERSION: &str = "v1";
/// How much of what Flux says of a source is shown.
const TOLD_CHARACTERS: usize = 300;

/// An artifact that may be fetched.
#[derive(Debug)]
pub struct Found {
    definition: FluxDefinition,
    artifact: Artifact,
}

/// The kind as the API server knows it.
pub fn resource(kind: FluxKind) -> ApiResource {
    let kind_of_group = GroupVersionKind::gvk(GROUP, VERSION, kind.as_str());
    ApiResource::from_gvk_with_plural(&kind_of_group, kind.plural())
}

/// What a workspace depends on that reads a source.
pub fn dependency(kind: FluxKind, name: &str) -> Dependency {
    Dependency::FluxSource(format!("{}/{name}", kind.as_str()))
}

/// Finds out which artifact the source has now.
pub async fn look_up(definition: &FluxDefinition, lookup: &Lookup<'_>) -> Result<Root, Fault> {
    let Some(artifacts) = &lookup.context().artifacts else {
        let message = format!(
            "{FIELD}: this operator does not read Flux's sources; its administrator can set `flux.enabled` in its configuration"
        );
        return Err(Fault::unresolved(
            reason::ROOT_NOT_SUPPORTED,
            Healing::ByEdit,
            message,
        ));
    };
    lookup.depends_on(dependency(definition.kind, &definition.name));
    let api: Api<DynamicObject> =
        Api::namespaced_with(lookup.client(), lookup.namespace(), &resource(definition.kind));
    let object = match api.get(&definition.name).await {
        Ok(object) => object,
        Err(error) => return Err(unreadable(definition, &error)),
    };
    let found = of_status(definition, lookup.namespace(), &object.data, artifacts)?;
    Ok(found)
}

fn unreadable(definition: &FluxDefinition, error: &kube::Error) -> Fault {
    let FluxDefinition { kind, name, .. } = definition;
    let kind = kind.as_str();
    match error {
        // The answer for a missing object names it. Of a kind that is not served the API server only says 404.
        kube::Error::Api(status) if status.code == 404 => {
            let is_object = status
                .details
                .as_ref()
                .is_some_and(|details| details.name == *name);
            if is_object {
                let message = format!(
                    "{FIELD}: there is no {kind} {name} in this namespace; it is read as soon as it is made"
                );
                return Fault::unresolved(reason::ROOT_NOT_FOUND, Healing::ByOthers, message);
            }
            let message = format!(
                "{FIELD}: this cluster has no {kind} of {GROUP}/{VERSION}; install Flux's source-controller (2.6 or later)"
            );
            Fault::unresolved(reason::ROOT_NOT_SUPPORTED, Healing::ByOthers, message).again_soon()
        }
        error => {
            let message = format!("{FIELD}: {kind} {name} cannot be read: {error}");
            Fault::unresolved(reason::ROOT_NOT_READY, Healing::ByItself, message)
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    artifact: Option<StatusArtifact>,
    conditions: Vec<StatusCondition>,
}

#[derive(Debug, Deserialize)]
struct StatusArtifact {
    url: String,
    digest: String,
    revision: String,
}

#[derive(Debug, Deserialize)]
struct StatusCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    #[serde(default)]
    message: String,
}

/// The root that an object's status speaks of. An older artifact stays one while Flux cannot fetch a newer one.
fn of_status(
    definition: &FluxDefinition,
    namespace: &str,
    data: &Value,
    artifacts: &Artifacts,
) -> Result<Root, Fault> {
    let FluxDefinition { kind, name, path } = definition;
    let kind = kind.as_str();
    let status: Status = match data.get("status") {
        None | Some(Value::Null) => Status::default(),
        Some(status) => serde_json::from_value(status.clone()).map_err(|error| {
            let message = format!("{FIELD}: the status of {kind} {name} is not understood: {error}");
            Fault::unresolved(reason::ROOT_REFUSED, Healing::ByOthers, message)
        })?,
    };
    let Some(artifact) = status.artifact else {
        let ready = status
            .conditions
            .iter()
            .find(|condition| condition.type_ == "Ready");
        let told = match ready {
            Some(ready) if ready.status == "False" => format!(": {}", told(&ready.message)),
            _ => String::new(),
        };
        let message =
            format!("{FIELD}: {kind} {name} has no artifact yet; it is read as soon as it has one{told}");
        return Err(Fault::unresolved(
            reason::ROOT_NOT_READY,
            Healing::ByOthers,
            message,
        ));
    };
    let owner = format!("{}/{namespace}/{name}", kind.to_lowercase());
    let checked = artifacts
        .check(&artifact.url, &artifact.digest, &owner)
        .map_err(|error| refused(kind, name, &error))?;
    let folder = path.as_ref().map_or_else(String::new, |path| format!(":{path}"));
    let root_status = RootStatus {
        kind: "fluxSource".to_owned(),
        summary: format!("{kind} {name}{folder}"),
        revision: Some(shown(&artifact.revision)),
    };
    let identity = format!("flux {}{folder}", checked.digest());
    let found = Found {
        definition: definition.clone(),
        artifact: checked,
    };
    Ok(Root::new(identity, root_status, Content::Flux(Box::new(found))))
}

/// Fetches the artifact's files.
pub async fn files(found: &Found, links: LinkPolicy, lookup: &Lookup<'_>) -> Result<Files, Fault> {
    let FluxDefinition { kind, name, path } = &found.definition;
    let Some(artifacts) = &lookup.context().artifacts else {
        let message = format!("{FIELD}: this operator does not read Flux's sources");
        return Err(Fault::unresolved(
            reason::ROOT_NOT_SUPPORTED,
            Healing::ByEdit,
            message,
        ));
    };
    let fetched = artifacts.fetch(&found.artifact, path.as_ref(), links).await;
    let (tree, warnings) = fetched.map_err(|error| refused(kind.as_str(), name, &error))?;
    Ok(Files {
        tree,
        revision: None,
        warnings,
    })
}

/// What is wrong with an artifact is mended by whoever makes another one, of which we are told.
fn refused(kind: &str, name: &str, error: &SourceError) -> Fault {
    let at = format!("{FIELD}: {kind} {name}");
    let fault = Fault::source(&at, error);
    if error.is_transient() {
        return fault;
    }
    let healing = Healing::ByOthers;
    Fault { healing, ..fault }
}

/// Foreign text without what could be an address with a token in it, and not too long.
fn told(message: &str) -> String {
    let words: Vec<&str> = message
        .split_whitespace()
        .map(|word| {
            if word.contains("://") {
                "(an address)"
            } else {
                word
            }
        })
        .collect();
    shown(&words.join(" "))
}

fn shown(text: &str) -> String {
    let mut characters = text.chars().filter(|character| !character.is_control());
    let mut shown: String = characters.by_ref().take(TOLD_CHARACTERS).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
#[path = "flux_tests.rs"]
mod tests;
