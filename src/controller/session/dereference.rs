//! The only step that reads: the session's pod and interpreter, as the watches know them.

use std::sync::Arc;

use codeworkspace_api::{CodeSession, labels};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt as _};

use crate::controller::interpreter::{pool_label, validate};
use crate::controller::{Context, Error};

/// What the world outside the object looks like.
#[derive(Debug)]
pub struct World {
    /// The pod that stands in the session, whoever has it.
    pub pod: Option<Arc<Pod>>,
    /// Every pod that bears the session's label.
    pub claimed: Vec<Arc<Pod>>,
    /// Whether the API server has the pod that the session had, if it was asked.
    pub asked: Option<bool>,
    /// Why the interpreter opens no sessions.
    pub unavailable: Option<String>,
    /// Why pods of its pool do not start.
    pub pool_error: Option<String>,
}

/// Reads.
pub fn dereference(context: &Context, session: &CodeSession) -> World {
    let (namespace, name) = (session.namespace().unwrap_or_default(), session.name_any());
    let pods = &context.stores.session_pods;
    let pod = session
        .spec
        .pod_name
        .as_ref()
        .and_then(|pod| pods.get(&ObjectRef::new(pod).within(&namespace)));
    let claimed = pods.state_filter(|pod| {
        pod.labels().get(labels::SESSION) == Some(&name) && pod.namespace().as_ref() == Some(&namespace)
    });
    let interpreter = &session.spec.interpreter_ref.name;
    let (unavailable, pool_error) = match interpreter_of(context, &namespace, interpreter) {
        Ok(error) => (None, error),
        Err(why) => (Some(why), None),
    };
    World {
        pod,
        claimed,
        asked: None,
        unavailable,
        pool_error,
    }
}

/// Why pods do not start, or why no session is opened.
fn interpreter_of(context: &Context, namespace: &str, name: &str) -> Result<Option<String>, String> {
    let interpreter = context
        .stores
        .interpreters
        .get(&ObjectRef::new(name).within(namespace))
        .ok_or_else(|| format!("CodeInterpreter {name} does not exist"))?;
    let interpreter = interpreter
        .0
        .as_ref()
        .map_err(|unreadable| format!("CodeInterpreter {name} cannot be read: {}", unreadable.error))?;
    let resolved = validate(interpreter, &context.templates())
        .map_err(|problem| format!("CodeInterpreter {name}: {}", problem.message))?;
    let sessions = context.sessions.as_ref();
    Ok(sessions
        .and_then(|sessions| sessions.memory.report(namespace, &pool_label(&resolved)))
        .and_then(|report| report.last_error))
}

/// Asks the API server itself whether the pod that the session had is there.
pub async fn ask(context: &Context, session: &CodeSession) -> Result<bool, Error> {
    let Some(name) = &session.spec.pod_name else {
        return Ok(false);
    };
    let namespace = session.namespace().unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let had = session.status.as_ref().and_then(|status| status.pod_uid.as_ref());
    let there = pods.get_metadata_opt(name).await?;
    Ok(there.is_some_and(|pod| pod.metadata.uid.as_ref() == had))
}
