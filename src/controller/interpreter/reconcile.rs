//! One look at an interpreter.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codeworkspace_api::{
    CodeInterpreter, CodeInterpreterSpec, CodeInterpreterStatus, CodeSession, CodeSessionStatus, reason,
};
use jiff::{SignedDuration, Timestamp};
use kube::api::PatchParams;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};

use super::status::{self, World};
use super::validate::{Problem, Resolved, validate};
use crate::controller::patch::apply_patch;
use crate::controller::{Context, Error, FIELD_MANAGER, Readable, Unreadable};

/// Longest time between two looks.
const RESYNC: Duration = Duration::from_mins(10);
/// Least time between two writes that only tell of other numbers: with every session some change.
const NUMBERS: SignedDuration = SignedDuration::from_secs(1);
/// An interpreter that nothing was written of for so long may be forgotten.
const MEMORY: SignedDuration = SignedDuration::from_mins(1);

/// When each interpreter's status was written last, by uid.
#[derive(Debug, Default)]
pub struct Written(Mutex<HashMap<String, Timestamp>>);

impl Written {
    /// How long numbers of this interpreter have to wait.
    fn wait(&self, uid: &str, now: Timestamp) -> Option<SignedDuration> {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.duration_since(*written.get(uid)?);
        (since < NUMBERS).then(|| NUMBERS - since)
    }

    fn now(&self, uid: String, now: Timestamp) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.retain(|_, at| now.duration_since(*at) < MEMORY);
        written.insert(uid, now);
    }
}

/// Says in status whether sessions of an interpreter can be opened, and what stands ready for them.
pub async fn reconcile(interpreter: Arc<CodeInterpreter>, context: Arc<Context>) -> Result<Action, Error> {
    if interpreter.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let resolved = validate(&interpreter, &context.templates());
    let world = dereference(&context, &interpreter, &resolved);
    tell(&context, &interpreter, &resolved, &world).await
}

/// Says in status why an interpreter that cannot be read opens no sessions.
pub async fn refuse(unreadable: Unreadable, context: Arc<Context>) -> Result<(), Error> {
    if unreadable.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let interpreter = CodeInterpreter {
        metadata: unreadable.metadata,
        spec: CodeInterpreterSpec::default(),
        status: serde_json::from_value(unreadable.status).ok(),
    };
    let problem = Err(Problem {
        reason: reason::MANIFEST_VALIDATION_ERROR,
        message: format!("the object cannot be read: {}", unreadable.error),
    });
    let world = dereference(&context, &interpreter, &problem);
    tell(&context, &interpreter, &problem, &world).await.map(|_| ())
}

/// What the watches and the pools know.
fn dereference(
    context: &Context,
    interpreter: &CodeInterpreter,
    resolved: &Result<Resolved, Problem>,
) -> World {
    let (namespace, name) = (
        interpreter.namespace().unwrap_or_default(),
        interpreter.name_any(),
    );
    let open = |session: &CodeSession| {
        session.spec.interpreter_ref.name == name
            && !session.status.as_ref().is_some_and(CodeSessionStatus::has_ended)
    };
    let sessions = context.stores.sessions.state_filter(|session| {
        session.namespace().as_ref() == Some(&namespace) && session.0.as_ref().is_ok_and(open)
    });
    let pool = match (&context.sessions, resolved) {
        (Some(sessions), Ok(resolved)) => sessions.memory.report(&namespace, &status::pool_label(resolved)),
        _ => None,
    };
    World {
        pool,
        sessions: sessions.len(),
    }
}

async fn tell(
    context: &Context,
    interpreter: &CodeInterpreter,
    resolved: &Result<Resolved, Problem>,
    world: &World,
) -> Result<Action, Error> {
    let now = context.clock.now();
    let status = status::compute(interpreter, resolved, world, now);
    if interpreter.status.as_ref() == Some(&status) {
        return Ok(Action::requeue(RESYNC));
    }
    let uid = interpreter.uid().unwrap_or_default();
    let numbers = interpreter
        .status
        .as_ref()
        .is_some_and(|former| status::differ_in_numbers_only(former, &status));
    if let Some(wait) = context.written.wait(&uid, now).filter(|_| numbers) {
        return Ok(Action::requeue(Duration::try_from(wait).unwrap_or_default()));
    }
    write(context, interpreter, &status).await?;
    context.written.now(uid, now);
    Ok(Action::requeue(RESYNC))
}

async fn write(
    context: &Context,
    interpreter: &CodeInterpreter,
    status: &CodeInterpreterStatus,
) -> Result<(), Error> {
    let namespace = interpreter.namespace().unwrap_or_default();
    let api: Api<Readable<CodeInterpreter>> = Api::namespaced(context.client.clone(), &namespace);
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let patch = apply_patch(&status::patch(interpreter, status))?;
    api.patch_status(&interpreter.name_any(), &parameters, &patch)
        .await?;
    Ok(())
}
