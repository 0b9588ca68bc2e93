//! The writes of pools: pods, and the policies that stand before the first of them does.

use codeworkspace_api::labels;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams, Preconditions};

use super::member::Member;
use crate::configuration::Release;
use crate::controller::{Context, Error, run};
use crate::pod::{SESSION_NETWORK_POLICY, session_network};

/// What became of a pod that was to be made.
#[derive(Debug, PartialEq, Eq)]
pub enum Created {
    /// It exists.
    Yes,
    /// The API server refused it, in its own words.
    Refused(String),
}

/// Makes sure that the namespace's policies stand. A refusal of the API server is told in its own words.
pub async fn policies(
    context: &Context,
    namespace: &str,
    release: &Release,
) -> Result<Result<(), String>, Error> {
    // First the denial: what the other one opens must not be all that there is.
    if let Err(message) = run::deny_network(context, namespace).await? {
        return Ok(Err(message));
    }
    let api: Api<NetworkPolicy> = Api::namespaced(context.client.clone(), namespace);
    let parameters = PatchParams::apply(labels::MANAGER).force();
    let policy = session_network(namespace, release);
    let applied = api
        .patch(SESSION_NETWORK_POLICY, &parameters, &Patch::Apply(policy))
        .await;
    run::told(applied, || {
        format!("NetworkPolicy {SESSION_NETWORK_POLICY} could not be applied")
    })
}

/// Makes a pod. Its name was drawn by lot, so that one that is there already was made by an earlier try of this very call.
pub async fn create(context: &Context, pod: &Pod) -> Result<Created, Error> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &pod.namespace().unwrap_or_default());
    match api.create(&PostParams::default(), pod).await {
        Ok(_) => Ok(Created::Yes),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Created::Yes),
        Err(kube::Error::Api(status)) if status.is_forbidden() || status.is_invalid() => {
            Ok(Created::Refused(status.message.clone()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Deletes a pod that waits, unless it has changed since it was seen: it may have been claimed. Says whether it goes.
pub async fn delete_warm(context: &Context, namespace: &str, member: &Member) -> Result<bool, Error> {
    let as_it_was = Preconditions {
        uid: Some(member.uid.clone()),
        resource_version: member.resource_version.clone(),
    };
    delete(context, namespace, &member.name, as_it_was).await
}

/// Deletes this very pod, whatever its state. Says whether it goes.
pub async fn delete_pod(context: &Context, namespace: &str, name: &str, uid: &str) -> Result<bool, Error> {
    let this_very_pod = Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: None,
    };
    delete(context, namespace, name, this_very_pod).await
}

async fn delete(
    context: &Context,
    namespace: &str,
    name: &str,
    preconditions: Preconditions,
) -> Result<bool, Error> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    run::delete(api, name, preconditions).await
}
