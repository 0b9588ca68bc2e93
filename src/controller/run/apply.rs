//! The writes of a run besides its status.

use codeworkspace_api::{CodeRun, labels};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource as _, ResourceExt as _};

use crate::controller::{Context, Error};
use crate::pod::{NETWORK_POLICY, default_deny};

/// What became of the pod.
#[derive(Debug)]
pub enum Created {
    /// It exists, made now or by an earlier try.
    Pod(Box<Pod>),
    /// The API server refused it, in its own words.
    Rejected(String),
    /// A pod of that name belongs to somebody else.
    Foreign,
}

/// Makes sure that the namespace's deny policy stands before the first pod does.
pub async fn deny_network(context: &Context, namespace: &str) -> Result<(), Error> {
    let api: Api<NetworkPolicy> = Api::namespaced(context.client.clone(), namespace);
    let parameters = PatchParams::apply(labels::MANAGER).force();
    api.patch(
        NETWORK_POLICY,
        &parameters,
        &Patch::Apply(default_deny(namespace)),
    )
    .await?;
    Ok(())
}

/// Makes the run another owner of the bundle, so that the bundle outlives its workspace until the run has ended. The uid makes the
/// server refuse when the ConfigMap is not the one that was looked at.
pub async fn hold_bundle(context: &Context, run: &CodeRun, name: &str, uid: &str) -> Result<(), Error> {
    let api: Api<ConfigMap> = Api::namespaced(context.client.clone(), &run.namespace().unwrap_or_default());
    let Some(owner) = run.owner_ref(&()) else {
        return Ok(());
    };
    let patch = serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "uid": uid, "ownerReferences": [owner]},
    });
    let parameters = PatchParams::apply(&format!("{}/run-{}", labels::MANAGER, run.name_any())).force();
    api.patch_metadata(name, &parameters, &Patch::Apply(patch))
        .await?;
    Ok(())
}

/// Creates the pod. A pod that is there already is verified by its owner, never adopted.
pub async fn create_pod(context: &Context, run: &CodeRun, pod: &Pod) -> Result<Created, Error> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &run.namespace().unwrap_or_default());
    match api.create(&PostParams::default(), pod).await {
        Ok(pod) => Ok(Created::Pod(Box::new(pod))),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let there = api.get(&run.name_any()).await?;
            let ours = owns(run, &there);
            Ok(if ours {
                Created::Pod(Box::new(there))
            } else {
                Created::Foreign
            })
        }
        Err(kube::Error::Api(status)) if status.is_forbidden() || status.is_invalid() => {
            Ok(Created::Rejected(status.message.clone()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a pod was made for this very run.
pub fn owns(run: &CodeRun, pod: &Pod) -> bool {
    pod.owner_references()
        .iter()
        .any(|owner| Some(&owner.uid) == run.meta().uid.as_ref())
}

/// Deletes a pod that did not start.
pub async fn delete_pod(context: &Context, pod: &Pod) -> Result<(), Error> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &pod.namespace().unwrap_or_default());
    delete(api, &pod.name_any(), pod.uid()).await
}

/// Deletes a run whose time is over; its pod goes with it.
pub async fn delete_run(context: &Context, run: &CodeRun) -> Result<(), Error> {
    let api: Api<CodeRun> = Api::namespaced(context.client.clone(), &run.namespace().unwrap_or_default());
    delete(api, &run.name_any(), run.uid()).await
}

async fn delete<K>(api: Api<K>, name: &str, uid: Option<String>) -> Result<(), Error>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid,
            resource_version: None,
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
