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

/// Makes sure that the namespace's deny policy stands before the first pod does. A refusal of the API server is told in its own words.
pub async fn deny_network(context: &Context, namespace: &str) -> Result<Result<(), String>, Error> {
    let api: Api<NetworkPolicy> = Api::namespaced(context.client.clone(), namespace);
    let parameters = PatchParams::apply(labels::MANAGER).force();
    let applied = api
        .patch(
            NETWORK_POLICY,
            &parameters,
            &Patch::Apply(default_deny(namespace)),
        )
        .await;
    told(applied, || {
        format!("NetworkPolicy {NETWORK_POLICY} could not be applied")
    })
}

/// A refusal as the words of the API server, every other failure as an error.
pub fn told<T>(done: Result<T, kube::Error>, what: impl Fn() -> String) -> Result<Result<(), String>, Error> {
    match done {
        Ok(_) => Ok(Ok(())),
        Err(kube::Error::Api(status)) if status.is_forbidden() || status.is_invalid() => {
            Ok(Err(format!("{}: {}", what(), status.message)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes the run another owner of the bundle, so that the bundle outlives its workspace until the run has ended. The uid makes the
/// server refuse when the ConfigMap is not the one that was looked at.
pub async fn hold_bundle(
    context: &Context,
    run: &CodeRun,
    name: &str,
    uid: &str,
) -> Result<Result<(), String>, Error> {
    let api: Api<ConfigMap> = Api::namespaced(context.client.clone(), &run.namespace().unwrap_or_default());
    let Some(owner) = run.owner_ref(&()) else {
        return Ok(Ok(()));
    };
    let patch = serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "uid": uid, "ownerReferences": [owner]},
    });
    let parameters = PatchParams::apply(&holder(&owner.uid)).force();
    let held = api.patch_metadata(name, &parameters, &Patch::Apply(patch)).await;
    told(held, || {
        format!("ConfigMap {name} could not be held for this run")
    })
}

/// The field manager of one run's hold, so that runs do not take each other's away. By uid: a run's name may be longer than the
/// 128 bytes of a field manager.
fn holder(run_uid: &str) -> String {
    format!("{}/run-{run_uid}", labels::MANAGER)
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

/// Deletes a pod that did not start, unless it is no longer as it was read. Says whether it is gone or going.
pub async fn delete_pod(context: &Context, pod: &Pod) -> Result<bool, Error> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &pod.namespace().unwrap_or_default());
    let as_it_was = Preconditions {
        uid: pod.uid(),
        resource_version: pod.resource_version(),
    };
    delete(api, &pod.name_any(), as_it_was).await
}

/// Deletes a run whose time is over; its pod goes with it.
pub async fn delete_run(context: &Context, run: &CodeRun) -> Result<(), Error> {
    let api: Api<CodeRun> = Api::namespaced(context.client.clone(), &run.namespace().unwrap_or_default());
    let this_very_run = Preconditions {
        uid: run.uid(),
        resource_version: None,
    };
    delete(api, &run.name_any(), this_very_run).await?;
    Ok(())
}

/// Whether the object is gone; it stays when it does not meet the preconditions.
pub async fn delete<K>(api: Api<K>, name: &str, preconditions: Preconditions) -> Result<bool, Error>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let parameters = DeleteParams {
        preconditions: Some(preconditions),
        ..DeleteParams::background()
    };
    match api.delete(name, &parameters).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
        deleted => {
            deleted?;
            Ok(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::holder;

    #[test]
    fn the_field_manager_of_a_hold_fits_the_api_servers_limit() {
        assert!(holder("0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f").len() <= 128);
    }
}
