//! One reconcile of a run: from waiting, over one pod and never a second, to a settled outcome, to the end of its time.

use std::sync::Arc;
use std::time::Duration;

use codeworkspace_api::{CodeRun, CodeRunStatus, Outcome, OutcomeReason};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::PatchParams;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};

use super::dereference::{World, current, dereference};
use super::lifetime::{Lifetime, lifetime};
use super::outcome::{Observation, Settled, observe};
use super::readiness::{Readiness, Start, readiness};
use super::{apply, status};
use crate::controller::patch::apply_patch;
use crate::controller::workspace::{config_map_name, holds};
use crate::controller::{Context, Error, FIELD_MANAGER};
use crate::pod::RunPod;

/// Least delay while another object has to move; its watch usually comes first.
const WAIT: Duration = Duration::from_secs(2);
/// Longest such delay: a run may wait for days, and must not ask the API server all the time.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// Why no pod can be made while another one bears the run's name.
const NAME_TAKEN: &str =
    "a pod of this run's name exists and was not made for it: delete it or name the run differently";
/// Ceiling of every delay.
const RESYNC: Duration = Duration::from_mins(10);

/// Brings one run a step further, and says when to look again.
pub async fn reconcile(run: Arc<CodeRun>, context: Arc<Context>) -> Result<Action, Error> {
    let Some(run) = current(&context, &run).await? else {
        return Ok(Action::await_change());
    };
    if run.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let world = dereference(&context, &run).await?;
    if run.status.as_ref().is_some_and(CodeRunStatus::is_finished) {
        return expire(&context, &run, &world).await;
    }
    match &world.pod {
        Some(pod) if apply::owns(&run, pod) => follow(&context, &run, pod).await,
        _ if run.status.as_ref().is_some_and(|status| status.pod_uid.is_some()) => {
            let message = "the pod is gone and its outcome was never seen";
            settle(
                &context,
                &run,
                Settled::new(Outcome::Lost, OutcomeReason::PodDeleted, message),
            )
            .await
        }
        Some(_) => refused(&context, &run, NAME_TAKEN.to_owned()).await,
        None => start(&context, &run, &world).await,
    }
}

/// A finished run stays for its time.
async fn expire(context: &Context, run: &CodeRun, world: &World) -> Result<Action, Error> {
    let ttl = SignedDuration::from_secs(context.configuration.runs.ttl_seconds_after_finished);
    match lifetime(run, world, ttl, context.clock.now()) {
        Lifetime::Stays => Ok(Action::requeue(RESYNC)),
        Lifetime::Until(left) => Ok(Action::requeue(
            Duration::try_from(left).unwrap_or(RESYNC).min(RESYNC),
        )),
        Lifetime::Over => {
            apply::delete_run(context, run).await?;
            Ok(Action::await_change())
        }
    }
}

/// Reads the run's pod.
async fn follow(context: &Context, run: &CodeRun, pod: &Pod) -> Result<Action, Error> {
    let now = context.clock.now();
    let budget = SignedDuration::from_secs(context.configuration.runs.start_budget_seconds);
    let known = status::with_pod(run, pod);
    match observe(pod, now, budget) {
        Observation::Starting(message) => {
            let starting = CodeRunStatus {
                reason: Some(OutcomeReason::Starting),
                message: Some(message),
                ..known
            };
            write(context, run, starting).await?;
            let created = pod.creation_timestamp().map_or(now, |created| created.0);
            let left = budget - now.duration_since(created);
            // A moment past the budget, so that the next look finds it spent.
            let delay = Duration::try_from(left).unwrap_or_default() + Duration::from_secs(1);
            Ok(Action::requeue(delay.min(RESYNC)))
        }
        Observation::Running { started_at } => {
            write(context, run, status::running(known, started_at)).await?;
            Ok(Action::requeue(RESYNC))
        }
        Observation::Settled(settled) => finish(context, run, status::finished(known, *settled, now)).await,
        Observation::GaveUp(settled) => {
            if !apply::delete_pod(context, pod).await? {
                // The pod moved on since it was read: perhaps its body has just started.
                return Ok(Action::requeue(WAIT));
            }
            finish(context, run, status::finished(known, *settled, now)).await
        }
    }
}

/// Makes the pod, once everything that it needs is there.
async fn start(context: &Context, run: &CodeRun, world: &World) -> Result<Action, Error> {
    let now = context.clock.now();
    let looked_at_again = world
        .workspace
        .as_ref()
        .is_some_and(|workspace| context.scans.is_fresh_for(run, workspace, now));
    let patience = SignedDuration::from_secs(context.configuration.runs.start_budget_seconds);
    let start = match readiness(run, world, looked_at_again, now, patience) {
        Readiness::Ready(start) => start,
        Readiness::Waiting(reason, message) => {
            write(context, run, status::waiting(run, reason, message)).await?;
            return Ok(wait(run, now));
        }
        Readiness::Never(settled) => return settle(context, run, *settled).await,
    };
    let namespace = run.namespace().unwrap_or_default();
    let Some(template) = context
        .templates()
        .into_iter()
        .find(|template| template.name_any() == start.template)
    else {
        let message = format!("RunnerTemplate {} does not exist any more", start.template);
        write(
            context,
            run,
            status::waiting(run, OutcomeReason::WorkspaceNotReady, message),
        )
        .await?;
        return Ok(wait(run, now));
    };
    let Some(config_map) = bundle(context, &start, &namespace).await? else {
        let message = format!("the bundle {} is stored again first", start.bundle.digest);
        write(
            context,
            run,
            status::waiting(run, OutcomeReason::WorkspaceNotReady, message),
        )
        .await?;
        return Ok(wait(run, now));
    };
    let volume = start.workspace.spec.volume.clone().unwrap_or_default();
    let pod = RunPod {
        run,
        bundle_config_map: &config_map.name,
        digest: &start.bundle.digest,
        volume: &volume,
        argv: start.argv,
        limits: start.limits,
        template: &template.spec,
        runner_image: &context.configuration.runner_image,
        runs: &context.configuration.runs,
    }
    .build();
    if let Err(message) = apply::deny_network(context, &namespace).await? {
        return refused(context, run, message).await;
    }
    if let Err(message) = apply::hold_bundle(context, run, &config_map.name, &config_map.uid).await? {
        return refused(context, run, message).await;
    }
    match apply::create_pod(context, run, &pod).await? {
        apply::Created::Pod(pod) => {
            let starting = CodeRunStatus {
                reason: Some(OutcomeReason::Starting),
                message: None,
                template: Some(start.template.to_owned()),
                ..status::with_pod(run, &pod)
            };
            write(context, run, starting).await?;
            Ok(Action::requeue(
                Duration::from_secs(context.configuration.runs.start_budget_seconds.unsigned_abs())
                    .min(RESYNC),
            ))
        }
        apply::Created::Rejected(message) => refused(context, run, message).await,
        apply::Created::Foreign => refused(context, run, NAME_TAKEN.to_owned()).await,
    }
}

/// The pod could not be made. Quotas free themselves, and the pod of an earlier run of this name goes with its run: until the budget is
/// spent this is only a wait.
async fn refused(context: &Context, run: &CodeRun, message: String) -> Result<Action, Error> {
    let now = context.clock.now();
    let patience = SignedDuration::from_secs(context.configuration.runs.start_budget_seconds);
    let created = run.creation_timestamp().map_or(now, |created| created.0);
    if now.duration_since(created) < patience {
        write(
            context,
            run,
            status::waiting(run, OutcomeReason::PodRejected, message),
        )
        .await?;
        return Ok(wait(run, now));
    }
    settle(
        context,
        run,
        Settled::new(Outcome::StartError, OutcomeReason::PodRejected, message),
    )
    .await
}

/// The longer a run waits already, the less it hurries.
fn wait(run: &CodeRun, now: Timestamp) -> Action {
    let created = run.creation_timestamp().map_or(now, |created| created.0);
    let waited = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    Action::requeue((waited / 10).clamp(WAIT, WAIT_MAX))
}

/// The stored bundle.
struct Stored {
    name: String,
    uid: String,
}

async fn bundle(context: &Context, start: &Start<'_>, namespace: &str) -> Result<Option<Stored>, Error> {
    let workspace_uid = start.workspace.uid().unwrap_or_default();
    let name = config_map_name(&workspace_uid, &start.bundle.digest);
    let api: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
    let found = api.get_metadata_opt(&name).await?;
    Ok(found
        .filter(|found| holds(&found.metadata, &workspace_uid, &start.bundle.digest))
        .and_then(|found| {
            Some(Stored {
                name,
                uid: found.metadata.uid?,
            })
        }))
}

async fn settle(context: &Context, run: &CodeRun, settled: Settled) -> Result<Action, Error> {
    let now = context.clock.now();
    let known = status::waiting(run, settled.reason, String::new());
    finish(context, run, status::finished(known, settled, now)).await
}

async fn finish(context: &Context, run: &CodeRun, finished: CodeRunStatus) -> Result<Action, Error> {
    if write(context, run, finished.clone()).await? {
        if let Some(outcome) = finished.outcome {
            context.metrics.run_finished(outcome.as_str());
        }
        context.events.run_finished(run, &finished).await;
    }
    // The write brings the run back through its watch; this is for the case that it gets lost.
    Ok(Action::requeue(RESYNC))
}

/// Writes the status if anything in it changed.
async fn write(context: &Context, run: &CodeRun, status: CodeRunStatus) -> Result<bool, Error> {
    if run.status.as_ref() == Some(&status) {
        return Ok(false);
    }
    let api: Api<CodeRun> = Api::namespaced(context.client.clone(), &run.namespace().unwrap_or_default());
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    api.patch_status(
        &run.name_any(),
        &parameters,
        &apply_patch(&status::patch(run, &status))?,
    )
    .await?;
    Ok(true)
}
