//! One look at a session.

use std::sync::Arc;
use std::time::Duration;

use codeworkspace_api::{CodeSession, CodeSessionStatus};
use jiff::{SignedDuration, Timestamp};
use kube::api::PatchParams;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};

use super::decide::{Limits, Step, decide};
use super::dereference::{World, ask, dereference};
use super::ending::Ending;
use super::{apply, status};
use crate::controller::patch::apply_patch;
use crate::controller::{Context, Error, FIELD_MANAGER};

/// Longest time between two looks.
const RESYNC: Duration = Duration::from_mins(5);
/// Delay when the object was written to since it was seen; its watch usually comes first.
const SOON: Duration = Duration::from_millis(500);

/// Brings one session a step further, and says when to look again.
pub async fn reconcile(session: Arc<CodeSession>, context: Arc<Context>) -> Result<Action, Error> {
    let Some(sessions) = &context.sessions else {
        return Ok(Action::await_change());
    };
    if session.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let now = context.clock.now();
    let limits = Limits {
        start_budget: SignedDuration::from_secs(sessions.configuration.start_budget_seconds),
        record: SignedDuration::from_secs(sessions.configuration.record_seconds),
    };
    let mut world = dereference(&context, &session);
    let mut step = decide(&session, &world, limits, now);
    if step == Step::Ask {
        world.asked = Some(ask(&context, &session).await?);
        step = decide(&session, &world, limits, now);
    }
    match step {
        Step::Wait { told, until } => {
            let written = match told {
                Some(message) => write(&context, &session, status::waiting(&session, message)).await?,
                None => true,
            };
            Ok(if written {
                at(until, now)
            } else {
                Action::requeue(SOON)
            })
        }
        Step::Live { pod_uid, expires_at } => {
            remove_strays(&context, &world, Some(&pod_uid)).await?;
            if !write(&context, &session, status::live(&session, pod_uid, expires_at)).await? {
                return Ok(Action::requeue(SOON));
            }
            // A while after its time, in case that its node does not end it.
            let overdue = expires_at.and_then(|at| at.saturating_add(SignedDuration::from_secs(61)).ok());
            Ok(overdue.map_or(Action::requeue(RESYNC), |overdue| at(overdue, now)))
        }
        Step::End(ending) => end(&context, &session, &world, &ending, now).await,
        Step::Keep(until) => {
            remove_strays(&context, &world, None).await?;
            Ok(at(until, now))
        }
        Step::Forget => {
            remove_strays(&context, &world, None).await?;
            apply::forget(&context, &session).await?;
            Ok(Action::await_change())
        }
        // It was asked above.
        Step::Ask => Ok(Action::requeue(SOON)),
    }
}

async fn end(
    context: &Context,
    session: &CodeSession,
    world: &World,
    ending: &Ending,
    now: Timestamp,
) -> Result<Action, Error> {
    if session.spec.stop {
        // Before anything else: what was stopped must not go on while its record waits.
        remove_strays(context, world, None).await?;
    }
    if !write(context, session, status::ended(session, ending, now)).await? {
        return Ok(Action::requeue(SOON));
    }
    context.metrics.session_ended(ending.reason.as_str());
    context
        .events
        .session_ended(session, ending.reason, &ending.message)
        .await;
    if !session.spec.stop {
        remove_strays(context, world, None).await?;
    }
    // The write brings the session back through its watch; this is for the case that it gets lost.
    Ok(Action::requeue(RESYNC))
}

/// Deletes the pods that bear the session's label, except the one that it has.
async fn remove_strays(context: &Context, world: &World, except: Option<&str>) -> Result<(), Error> {
    for pod in &world.claimed {
        if pod.metadata.deletion_timestamp.is_some() || pod.metadata.uid.as_deref() == except {
            continue;
        }
        if except.is_some() {
            // Nobody claims a pod for a session that has another one, but a session may have had a namesake.
            context.metrics.leaked();
        }
        apply::delete_pod(context, pod).await?;
    }
    Ok(())
}

/// At that time, but not later than the next look that is due anyway.
fn at(time: Timestamp, now: Timestamp) -> Action {
    let delay = Duration::try_from(time.duration_since(now)).unwrap_or_default();
    Action::requeue(delay.clamp(SOON, RESYNC))
}

/// Writes the status if anything in it changed. Says whether it stands: it does not when the object has changed since it was seen.
async fn write(context: &Context, session: &CodeSession, status: CodeSessionStatus) -> Result<bool, Error> {
    if session.status.as_ref() == Some(&status) {
        return Ok(true);
    }
    let namespace = session.namespace().unwrap_or_default();
    let api: Api<CodeSession> = Api::namespaced(context.client.clone(), &namespace);
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let patch = apply_patch(&status::patch(session, &status))?;
    match api.patch_status(&session.name_any(), &parameters, &patch).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
        Err(error) => Err(error.into()),
    }
}
