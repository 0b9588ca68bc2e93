//! Whether a run may start, and with what. Pure.

use codeworkspace_api::{
    BundleStatus, CodeRun, CodeWorkspace, Outcome, OutcomeReason, ResolvedLimits, condition, labels,
};
use codeworkspace_bundle::long_command;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

use super::dereference::World;
use super::outcome::Settled;
use crate::controller::workspace::RunKey;

/// Whether a run may start.
#[derive(Debug)]
pub enum Readiness<'a> {
    /// It may, with this.
    Ready(Start<'a>),
    /// Not yet.
    Waiting(OutcomeReason, String),
    /// It never will.
    Never(Box<Settled>),
}

/// What a run starts with: the state of its workspace.
#[derive(Debug)]
pub struct Start<'a> {
    /// The workspace.
    pub workspace: &'a CodeWorkspace,
    /// The bundle.
    pub bundle: &'a BundleStatus,
    /// The command.
    pub argv: &'a [String],
    /// What the body may use.
    pub limits: &'a ResolvedLimits,
    /// Name of the runner template.
    pub template: &'a str,
}

/// Decides. `looked_at_again` says whether the workspace and its sources were looked at since the run was made, `patience` how long a
/// run of a key that is not the workspace's (or not yet) is kept waiting.
pub fn readiness<'a>(
    run: &CodeRun,
    world: &'a World,
    looked_at_again: bool,
    now: Timestamp,
    patience: SignedDuration,
) -> Readiness<'a> {
    let name = &run.spec.workspace_ref.name;
    let Some(workspace) = &world.workspace else {
        return waiting(
            OutcomeReason::WorkspaceNotFound,
            format!("there is no CodeWorkspace {name} in this namespace"),
        );
    };
    let status = workspace.status.as_ref();
    let not_ready = |why: &str| {
        waiting(
            OutcomeReason::WorkspaceNotReady,
            format!("CodeWorkspace {name}: {why}"),
        )
    };
    let Some(status) = status.filter(|status| status.observed_generation == workspace.metadata.generation)
    else {
        return not_ready("its current state has not been looked at yet");
    };
    if workspace.spec.suspend {
        return not_ready("it is suspended");
    }
    if let Some(waits_or_never) = key_is_current(run, world, now, patience) {
        return waits_or_never;
    }
    let ready = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == condition::READY);
    match ready {
        Some(ready) if ready.status == "True" => {}
        Some(ready) => return not_ready(&format!("{}: {}", ready.reason, ready.message)),
        None => return not_ready("it is not ready"),
    }
    let made_by_hand = !run.annotations().contains_key(labels::RUN_KEY);
    if made_by_hand && !looked_at_again {
        return not_ready("its sources are looked at again first");
    }
    let (Some(command), Some(runner)) = (&status.run, &status.runner) else {
        return never(
            OutcomeReason::NothingToRun,
            format!("CodeWorkspace {name} has no run: set spec.run"),
        );
    };
    let argv = [command.argv.as_slice(), run.spec.args.as_slice()].concat();
    if let Some(message) = long_command(&argv) {
        return never(
            OutcomeReason::CommandNotStarted,
            format!("spec.args: the command with its arguments {message}"),
        );
    }
    let (Some(bundle), Some(template)) = (&status.bundle, &runner.template) else {
        return not_ready("it has no bundle yet");
    };
    if let Some(pinned) = run
        .spec
        .digest
        .as_ref()
        .filter(|pinned| **pinned != bundle.digest)
    {
        return never(
            OutcomeReason::BundleNotAvailable,
            format!(
                "spec.digest asks for {pinned}, but the bundle of CodeWorkspace {name} is {} now",
                bundle.digest
            ),
        );
    }
    // The current key may be one that the workspace has moved on from without a run of its own (`OnDemand`): what would start is then
    // not what the run stands for.
    let key = run.annotations().get(labels::RUN_KEY);
    if key.is_some() && key != RunKey::of_status(status).map(|key| key.hash()).as_ref() {
        let message = format!("CodeWorkspace {name} has moved on to another state before this run started");
        return Readiness::Never(Box::new(Settled::new(
            Outcome::Cancelled,
            OutcomeReason::Superseded,
            message,
        )));
    }
    Readiness::Ready(Start {
        workspace,
        bundle,
        argv: &command.argv,
        limits: &runner.limits,
        template,
    })
}

/// A run that the operator made stands for one key. Unless that is the workspace's current key, it waits for the status to say
/// so, or a later key has replaced it.
fn key_is_current<'a>(
    run: &CodeRun,
    world: &World,
    now: Timestamp,
    patience: SignedDuration,
) -> Option<Readiness<'a>> {
    let key = run.annotations().get(labels::RUN_KEY)?;
    let last = world
        .workspace
        .as_ref()?
        .status
        .as_ref()
        .and_then(|status| status.last_run.as_ref());
    if last.is_some_and(|last| last.key == *key) {
        return None;
    }
    let created = run.creation_timestamp().map(|created| created.0)?;
    let replaced_by = world
        .current
        .as_ref()
        .filter(|current| current.creation_timestamp().is_some_and(|at| at.0 > created));
    if let Some(later) = replaced_by {
        let message = format!("CodeRun {} replaced this run before it started", later.name_any());
        return Some(Readiness::Never(Box::new(Settled::new(
            Outcome::Cancelled,
            OutcomeReason::Superseded,
            message,
        ))));
    }
    if now.duration_since(created) > patience {
        let message = "the workspace has moved on to another state before this run started";
        return Some(Readiness::Never(Box::new(Settled::new(
            Outcome::Cancelled,
            OutcomeReason::Superseded,
            message,
        ))));
    }
    Some(waiting(
        OutcomeReason::WorkspaceNotReady,
        "this run is not yet its workspace's current one".to_owned(),
    ))
}

fn waiting<'a>(reason: OutcomeReason, message: String) -> Readiness<'a> {
    Readiness::Waiting(reason, message)
}

fn never<'a>(reason: OutcomeReason, message: String) -> Readiness<'a> {
    Readiness::Never(Box::new(Settled::new(Outcome::StartError, reason, message)))
}

#[cfg(test)]
#[path = "readiness_tests.rs"]
mod tests;
