//! The writes of a session besides its status.

use codeworkspace_api::CodeSession;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Preconditions;
use kube::{Api, ResourceExt as _};

use crate::controller::{Context, Error, pool, run};

/// Deletes the session's pod, that very one.
pub async fn delete_pod(context: &Context, pod: &Pod) -> Result<(), Error> {
    let uid = pod.uid().unwrap_or_default();
    let namespace = pod.namespace().unwrap_or_default();
    pool::delete_pod(context, &namespace, &pod.name_any(), &uid).await?;
    Ok(())
}

/// Deletes a session whose record is no longer kept.
pub async fn forget(context: &Context, session: &CodeSession) -> Result<(), Error> {
    let namespace = session.namespace().unwrap_or_default();
    let api: Api<CodeSession> = Api::namespaced(context.client.clone(), &namespace);
    let this_very_session = Preconditions {
        uid: session.uid(),
        resource_version: None,
    };
    run::delete(api, &session.name_any(), this_very_session).await?;
    Ok(())
}
