//! The writes of a workspace besides its status: the bundle's ConfigMap and the run of a new key.

use std::collections::BTreeMap;

use codeworkspace_api::{
    CodeRun, CodeRunSpec, CodeRunStatus, CodeWorkspace, CodeWorkspaceStatus, OutcomeReason,
    WorkspaceReference, labels, reason,
};
use codeworkspace_bundle::Bundle;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams, Preconditions};
use kube::core::PartialObjectMeta;
use kube::{Api, Resource as _, ResourceExt as _};

use super::delivery;
use super::key::run_name;
use super::problem::Problem;
use crate::controller::{Context, Error};

/// Stores the bundle, unless it is stored already. A refusal of the API server (quota, admission) is a problem of the workspace,
/// in the server's own words.
pub async fn store(
    context: &Context,
    workspace: &CodeWorkspace,
    bundle: &Bundle,
) -> Result<Option<Problem>, Error> {
    let api: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace(workspace));
    let config_map = delivery::config_map(workspace, bundle);
    match api.create(&PostParams::default(), &config_map).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let name = config_map.name_any();
            let uid = workspace.uid().unwrap_or_default();
            let there: PartialObjectMeta<ConfigMap> = api.get_metadata(&name).await?;
            if delivery::holds(&there.metadata, &uid, &bundle.digest.to_string()) {
                return Ok(None);
            }
            Ok(Some(Problem {
                condition: None,
                reason: reason::DELIVERY_FAILED,
                message: format!("ConfigMap {name} exists and is not this workspace's bundle: delete it"),
                transient: true,
            }))
        }
        Err(kube::Error::Api(status)) if status.is_forbidden() || status.is_invalid() => Ok(Some(Problem {
            condition: None,
            reason: reason::DELIVERY_FAILED,
            message: format!("the bundle could not be stored: {}", status.message),
            transient: true,
        })),
        Err(error) => Err(error.into()),
    }
}

/// Makes the CodeRun of a key. Its name follows from the key, so that a second try, or a second operator, meets the first
/// instead of running twice; one that is there already is verified, never adopted blindly. A refusal of the API server is a problem
/// of the workspace, in the server's own words.
pub async fn start_run(
    context: &Context,
    workspace: &CodeWorkspace,
    key: &str,
    digest: &str,
) -> Result<Result<CodeRun, Problem>, Error> {
    let api: Api<CodeRun> = Api::namespaced(context.client.clone(), &namespace(workspace));
    let run = code_run(workspace, key, digest);
    let name = run.name_any();
    let refused = match api.create(&PostParams::default(), &run).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let there = api.get(&name).await?;
            let same_owner = there
                .owner_references()
                .iter()
                .any(|owner| Some(&owner.uid) == workspace.uid().as_ref());
            let same_key = there.annotations().get(labels::RUN_KEY).map(String::as_str) == Some(key);
            if !same_owner || !same_key {
                format!(
                    "CodeRun {name} exists and was not made for this workspace's current state: delete it"
                )
            } else if was_replaced(&there) {
                delete_as_it_is(&api, &name, &there.metadata).await?;
                return Ok(Ok(api.create(&PostParams::default(), &run).await?));
            } else {
                return Ok(Ok(there));
            }
        }
        Err(kube::Error::Api(status)) if status.is_forbidden() || status.is_invalid() => {
            format!("CodeRun {name} could not be made: {}", status.message)
        }
        created => return Ok(Ok(created?)),
    };
    Ok(Err(Problem {
        condition: None,
        reason: reason::RUN_NOT_CREATED,
        message: refused,
        transient: true,
    }))
}

/// Whether another state of the workspace took a run's place before it had a pod. When the workspace returns to the run's own
/// state, that has never been run.
fn was_replaced(run: &CodeRun) -> bool {
    run.status.as_ref().is_some_and(|status| {
        status.reason == Some(OutcomeReason::Superseded) && status.is_finished() && status.pod_uid.is_none()
    })
}

fn code_run(workspace: &CodeWorkspace, key: &str, digest: &str) -> CodeRun {
    let name = workspace.name_any();
    let mut run = CodeRun::new(
        &run_name(&name, key),
        CodeRunSpec {
            workspace_ref: WorkspaceReference { name: name.clone() },
            args: Vec::new(),
            timeout_seconds: None,
            ttl_seconds_after_finished: None,
            digest: Some(digest.to_owned()),
        },
    );
    run.metadata = ObjectMeta {
        namespace: workspace.namespace(),
        labels: Some(BTreeMap::from([
            (labels::MANAGED_BY.to_owned(), labels::MANAGER.to_owned()),
            (labels::WORKSPACE.to_owned(), labels::value(&name)),
        ])),
        annotations: Some(BTreeMap::from([(labels::RUN_KEY.to_owned(), key.to_owned())])),
        owner_references: workspace.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..run.metadata
    };
    run
}

/// Deletes the ConfigMaps of bundles that no run can need any more: not the current one, and none of an unfinished CodeRun.
pub async fn remove_old_bundles(
    context: &Context,
    workspace: &CodeWorkspace,
    status: &CodeWorkspaceStatus,
) -> Result<(), Error> {
    let namespace = namespace(workspace);
    let current = status.bundle.as_ref().map(|bundle| bundle.digest.as_str());
    let old: Vec<_> = status
        .history
        .iter()
        .filter(|digest| Some(digest.as_str()) != current)
        .collect();
    if old.is_empty() {
        return Ok(());
    }
    let config_maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    let uid = workspace.uid().unwrap_or_default();
    let mut stored = Vec::new();
    for digest in old {
        let name = delivery::config_map_name(&uid, digest);
        let there = config_maps.get_metadata_opt(&name).await?;
        stored.extend(
            there
                .filter(|there| delivery::holds(&there.metadata, &uid, digest))
                .map(|there| (digest, there.metadata)),
        );
    }
    if stored.is_empty() {
        return Ok(());
    }
    // After the ConfigMaps: a run that takes hold of one later changes it, and the deletion then fails.
    let runs: Api<CodeRun> = Api::namespaced(context.client.clone(), &namespace);
    let name = workspace.name_any();
    let unfinished: Vec<CodeRun> = runs
        .list(&ListParams::default())
        .await?
        .into_iter()
        .filter(|run| run.spec.workspace_ref.name == name)
        .filter(|run| !run.status.as_ref().is_some_and(CodeRunStatus::is_finished))
        .collect();
    for (digest, there) in stored {
        if unfinished.iter().any(|run| needs(run, digest, &there)) {
            continue;
        }
        let name = there.name.clone().unwrap_or_default();
        delete_as_it_is(&config_maps, &name, &there).await?;
    }
    Ok(())
}

/// Whether a run uses the bundle, or took hold of its ConfigMap to do so.
fn needs(run: &CodeRun, digest: &str, config_map: &ObjectMeta) -> bool {
    let of_status = run
        .status
        .as_ref()
        .and_then(|status| status.bundle_digest.as_deref());
    let mut owners = config_map.owner_references.iter().flatten();
    of_status.or(run.spec.digest.as_deref()) == Some(digest)
        || owners.any(|owner| Some(&owner.uid) == run.metadata.uid.as_ref())
}

/// Deletes an object unless it has changed since it was read.
async fn delete_as_it_is<K>(api: &Api<K>, name: &str, read: &ObjectMeta) -> Result<(), Error>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: read.uid.clone(),
            resource_version: read.resource_version.clone(),
        }),
        ..DeleteParams::background()
    };
    match api.delete(name, &parameters).await {
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        deleted => {
            deleted?;
            Ok(())
        }
    }
}

fn namespace(workspace: &CodeWorkspace) -> String {
    workspace.namespace().unwrap_or_default()
}
