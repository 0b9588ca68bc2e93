//! The status of a workspace: computed without a client, written only when something real changed.

use codeworkspace_api::condition::{self, Conditions, State};
use codeworkspace_api::{
    BundleStatus, CodeRun, CodeWorkspace, CodeWorkspaceStatus, EffectiveStatus, LastRunStatus, Outcome,
    RootStatus, RunStatus, RunnerStatus, SourceState, SourceStatus, labels, reason,
};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::problem::Problem;

/// Digests that `status.history` keeps.
const HISTORY: usize = 10;
/// Sources that status lists; references may bring many more.
const SOURCES_MAX: usize = 64;
/// Bytes of the reason why an object cannot be read, which may quote from it.
const UNREADABLE_MAX: usize = 256;

/// Everything that a reconcile found and made.
#[derive(Debug)]
pub struct Found {
    /// Hash of the inputs, when everything resolved.
    pub inputs: Option<String>,
    /// Every source.
    pub sources: Vec<SourceStatus>,
    /// The bundle that runs use: a new one, or the last good one.
    pub bundle: Option<BundleStatus>,
    /// The command.
    pub run: Option<RunStatus>,
    /// The runner.
    pub runner: Option<RunnerStatus>,
    /// What the body may reach.
    pub effective: EffectiveStatus,
    /// What stands in the way.
    pub problems: Vec<Problem>,
    /// Whether the workspace has a command at all.
    pub has_run: bool,
    /// The run of the current key.
    pub last_run: Option<LastRun>,
    /// Why roots are the last known ones instead of today's.
    pub stale_roots: Vec<String>,
    /// How many sources the list leaves out.
    pub sources_omitted: Option<i64>,
    /// What stands at the root.
    pub root: Option<RootStatus>,
    /// What should be written otherwise although it works.
    pub warnings: Vec<String>,
}

/// The run of the current key.
#[derive(Debug)]
pub struct LastRun {
    /// The key.
    pub key: String,
    /// Name of its CodeRun.
    pub name: String,
    /// The CodeRun itself, if it is still there.
    pub object: Option<CodeRun>,
}

/// Computes the status. `handled` says that what somebody asked to have anew was asked anew.
pub fn compute(
    workspace: &CodeWorkspace,
    found: Found,
    handled: bool,
    now: Timestamp,
) -> CodeWorkspaceStatus {
    let former = workspace.status.clone().unwrap_or_default();
    let last_run = found
        .last_run
        .as_ref()
        .map(|last| last_run_status(last, former.last_run.as_ref()));
    let mut conditions = Conditions::new(&former.conditions, workspace.metadata.generation, now);
    set_ready(&mut conditions, &found);
    set_sources(&mut conditions, &found);
    set_runner(&mut conditions, &found);
    conditions.set(
        condition::NETWORK_ENFORCED,
        State::Unknown,
        reason::NOT_VERIFIED,
        network_message(&found.effective),
    );
    if let Some(last_run) = &last_run {
        set_last_run(&mut conditions, last_run);
    }
    CodeWorkspaceStatus {
        observed_generation: workspace.metadata.generation,
        conditions: conditions.finish(),
        history: history(&former.history, found.bundle.as_ref()),
        bundle: found.bundle,
        inputs: found.inputs,
        sources_omitted: found.sources_omitted,
        sources: found.sources.into_iter().take(SOURCES_MAX).collect(),
        root: found.root,
        warnings: found.warnings,
        last_handled_reconcile_at: if handled {
            workspace.annotations().get(labels::RECONCILE_AT).cloned()
        } else {
            former.last_handled_reconcile_at
        },
        run: found.run,
        runner: found.runner,
        effective: Some(found.effective).filter(|effective| *effective != EffectiveStatus::default()),
        last_run,
    }
}

/// How many sources there are, those included that the list leaves out.
fn count(found: &Found) -> usize {
    let omitted = found
        .sources_omitted
        .and_then(|omitted| usize::try_from(omitted).ok());
    found.sources.len().min(SOURCES_MAX) + omitted.unwrap_or_default()
}

/// How many sources the list leaves out.
pub fn omitted(sources: &[SourceStatus]) -> Option<i64> {
    let omitted = sources
        .len()
        .checked_sub(SOURCES_MAX)
        .filter(|omitted| *omitted > 0)?;
    i64::try_from(omitted).ok()
}

/// The status of a suspended workspace: what was known stays, and `Ready` says that nobody looks any more. What was not ready does
/// not become so by not being looked at.
pub fn suspended(workspace: &CodeWorkspace, now: Timestamp) -> CodeWorkspaceStatus {
    let former = workspace.status.clone().unwrap_or_default();
    let mut conditions = Conditions::new(&former.conditions, workspace.metadata.generation, now);
    let ready = former
        .conditions
        .iter()
        .find(|condition| condition.type_ == condition::READY)
        .map_or(State::Unknown, |ready| match ready.status.as_str() {
            "True" => State::True,
            "False" => State::False,
            _ => State::Unknown,
        });
    for kept in [
        condition::SOURCES_RESOLVED,
        condition::RUNNER_RESOLVED,
        condition::NETWORK_ENFORCED,
        condition::LAST_RUN_SUCCEEDED,
        condition::STALE,
    ] {
        conditions.keep(kept);
    }
    conditions.set(
        condition::READY,
        ready,
        reason::SUSPENDED,
        "spec.suspend is set: sources are not looked at and nothing is run",
    );
    CodeWorkspaceStatus {
        observed_generation: workspace.metadata.generation,
        conditions: conditions.finish(),
        ..former
    }
}

/// The status of a workspace whose spec cannot even be read: what was known of its bundle and its runs stays.
pub fn refused(workspace: &CodeWorkspace, error: &str, now: Timestamp) -> CodeWorkspaceStatus {
    let former = workspace.status.clone().unwrap_or_default();
    let mut conditions = Conditions::new(&former.conditions, workspace.metadata.generation, now);
    let error = condition::truncate(error.to_owned(), UNREADABLE_MAX);
    let message = format!("the object cannot be read: {error}");
    for (type_, state) in [
        (condition::READY, State::False),
        (condition::STALLED, State::True),
    ] {
        conditions.set(type_, state, reason::MANIFEST_VALIDATION_ERROR, message.clone());
    }
    CodeWorkspaceStatus {
        observed_generation: workspace.metadata.generation,
        conditions: conditions.finish(),
        ..former
    }
}

fn set_ready(conditions: &mut Conditions, found: &Found) {
    let Some(first) = found.problems.first() else {
        let message = found.bundle.as_ref().map(ToString::to_string).unwrap_or_default();
        conditions.set(condition::READY, State::True, reason::READY, message);
        return;
    };
    let message = found
        .problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect::<Vec<_>>()
        .join("; ");
    conditions.set(condition::READY, State::False, first.reason, message.clone());
    // kstatus: the one means "wait", the other "only a change helps".
    if found.problems.iter().all(|problem| problem.transient) {
        conditions.set(
            condition::RECONCILING,
            State::True,
            reason::PROGRESSING_WITH_RETRY,
            message,
        );
    } else {
        conditions.set(condition::STALLED, State::True, first.reason, message);
    }
}

fn set_sources(conditions: &mut Conditions, found: &Found) {
    let of_sources: Vec<_> = found
        .problems
        .iter()
        .filter(|problem| problem.condition == Some(condition::SOURCES_RESOLVED))
        .collect();
    match of_sources.first() {
        Some(first) => {
            let message = of_sources
                .iter()
                .map(|problem| problem.message.as_str())
                .collect::<Vec<_>>()
                .join("; ");
            conditions.set(condition::SOURCES_RESOLVED, State::False, first.reason, message);
        }
        None => {
            conditions.set(
                condition::SOURCES_RESOLVED,
                State::True,
                reason::RESOLVED,
                format!("{0} of {0} sources", count(found)),
            );
        }
    }
    let stale: Vec<_> = found
        .sources
        .iter()
        .filter(|source| source.state == SourceState::Stale)
        .filter_map(|source| source.error.as_ref())
        .map(|error| error.message.as_str())
        .chain(found.stale_roots.iter().map(String::as_str))
        .collect();
    if !stale.is_empty() {
        let message = format!("the last good state is used: {}", stale.join("; "));
        conditions.set(condition::STALE, State::True, reason::SOURCE_UNAVAILABLE, message);
    }
}

fn set_runner(conditions: &mut Conditions, found: &Found) {
    let problem = found
        .problems
        .iter()
        .find(|problem| problem.condition == Some(condition::RUNNER_RESOLVED));
    match (problem, &found.runner) {
        (Some(problem), _) => {
            conditions.set(
                condition::RUNNER_RESOLVED,
                State::False,
                problem.reason,
                problem.message.clone(),
            );
        }
        (None, Some(runner)) if found.run.is_some() => conditions.set(
            condition::RUNNER_RESOLVED,
            State::True,
            reason::RESOLVED,
            format!(
                "RunnerTemplate {}",
                runner.template.as_deref().unwrap_or_default()
            ),
        ),
        (None, _) if found.has_run => conditions.set(
            condition::RUNNER_RESOLVED,
            State::Unknown,
            reason::PROGRESSING,
            "run is resolved once every source is",
        ),
        (None, _) => conditions.set(
            condition::RUNNER_RESOLVED,
            State::True,
            reason::NO_RUN,
            "the workspace has no run: it is a shared bundle",
        ),
    }
}

fn network_message(effective: &EffectiveStatus) -> String {
    let denied =
        "a NetworkPolicy denies all traffic of runs; whether this cluster enforces it has not been tested";
    if effective.egress.is_empty() {
        return denied.to_owned();
    }
    format!(
        "{denied}. network.egress is recorded and not opened yet: {}",
        effective.egress.join(", ")
    )
}

fn set_last_run(conditions: &mut Conditions, last_run: &LastRunStatus) {
    let (state, reason, message) = match last_run.outcome {
        None => (
            State::Unknown,
            reason::RUNNING,
            format!("CodeRun {} has not ended", last_run.name),
        ),
        Some(outcome) => (
            State::from(outcome == Outcome::Succeeded),
            outcome.as_str(),
            format!("CodeRun {}", last_run.name),
        ),
    };
    conditions.set(condition::LAST_RUN_SUCCEEDED, state, reason, message);
}

/// What is known of a run stays known when its CodeRun is gone.
fn last_run_status(last: &LastRun, former: Option<&LastRunStatus>) -> LastRunStatus {
    let former = former.filter(|former| former.key == last.key);
    let status = last.object.as_ref().and_then(|run| run.status.as_ref());
    LastRunStatus {
        key: last.key.clone(),
        name: last.name.clone(),
        outcome: status
            .and_then(|status| status.outcome)
            .or_else(|| former?.outcome),
        exit_code: status
            .and_then(|status| status.exit_code)
            .or_else(|| former?.exit_code),
    }
}

fn history(former: &[String], bundle: Option<&BundleStatus>) -> Vec<String> {
    let Some(bundle) = bundle else {
        return former.to_vec();
    };
    std::iter::once(&bundle.digest)
        .chain(former.iter().filter(|digest| **digest != bundle.digest))
        .take(HISTORY)
        .cloned()
        .collect()
}

/// The object that carries a status to the API server, for that very object and no later one of the same name.
pub fn patch(workspace: &CodeWorkspace, status: &CodeWorkspaceStatus) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": format!("{}/{}", codeworkspace_api::GROUP, codeworkspace_api::VERSION),
        "kind": "CodeWorkspace",
        "metadata": {"name": workspace.name_any(), "uid": workspace.uid()},
        "status": status,
    })
}
