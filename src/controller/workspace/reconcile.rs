//! One reconcile of a workspace: the five steps in order.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use codeworkspace_api::{
    BundleStatus, CodeWorkspace, CodeWorkspaceSpec, CodeWorkspaceStatus, EffectiveStatus, LastRunStatus,
    RunPolicy, SourceStatus, condition,
};
use codeworkspace_bundle::{Bundle, Caps};
use codeworkspace_source::LinkPolicy;
use jiff::SignedDuration;
use kube::api::PatchParams;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};

use super::build::{self, Built, Plan, Runner};
use super::dereference::{Files, Looked, Target, World, dereference, fetch_all};
use super::key::{Inputs, RunKey};
use super::lookup::Lookup;
use super::manifest::Manifest;
use super::problem::{self, Problem};
use super::status::{self, Found, LastRun};
use super::{apply, graph, schedule, staleness};
use crate::controller::fault::Fault;
use crate::controller::patch::apply_patch;
use crate::controller::{Context, Error, FIELD_MANAGER, Readable};

/// A moment after the floor, so that the next look finds it over.
const AFTER_FLOOR: Duration = Duration::from_secs(1);

/// Brings one workspace to what its spec asks for, and says when to look again.
pub async fn reconcile(workspace: Arc<CodeWorkspace>, context: Arc<Context>) -> Result<Action, Error> {
    if workspace.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let now = context.clock.now();
    if workspace.spec.suspend {
        write(&context, &workspace, &status::suspended(&workspace, now)).await?;
        return Ok(Action::await_change());
    }
    let lookup = Lookup::new(&context, &workspace);
    let manifest = graph::read(&lookup, &workspace).await;
    let world = dereference(&context, &lookup, &workspace, &manifest).await?;
    let runner = build::runner(&manifest, &world.inherited, &world.templates);
    let made = make(&lookup, &workspace, &manifest, &world, runner).await?;
    lookup.finish();
    let mut faults = made.faults.clone();
    faults.extend(manifest.unread.clone());
    faults.extend(world.stale_roots().cloned());
    let floating = world.is_floating();
    let moved = moved_tags(&workspace, &world.sources);
    let (found, stored) = deliver(&context, &workspace, &manifest, world, made).await?;
    let delay = schedule::next(
        manifest.scan_interval,
        floating,
        &faults,
        found
            .problems
            .iter()
            .any(|problem| problem.transient && problem.condition.is_none()),
        &context.configuration.scan,
        spread(&workspace),
    );
    let postponed = lookup.postponed();
    let delay = postponed.map_or(delay, |wait| delay.min(wait + AFTER_FLOOR));
    let handled = postponed.is_none();
    let status = status::compute(&workspace, found, handled, now);
    let digest_changed = stored && digest(workspace.status.as_ref()) != digest(Some(&status));
    write(&context, &workspace, &status).await?;
    let told: Vec<String> = moved
        .into_iter()
        .filter(|moved| {
            status
                .sources
                .iter()
                .any(|source| source.revision.as_ref() == Some(&moved.now))
        })
        .map(|moved| moved.note)
        .collect();
    context.events.tags_moved(&workspace, &told).await;
    context.scans.record(&workspace, now);
    if digest_changed {
        apply::remove_old_bundles(&context, &workspace, &status).await?;
    }
    Ok(Action::requeue(delay))
}

fn digest(status: Option<&CodeWorkspaceStatus>) -> Option<&str> {
    Some(status?.bundle.as_ref()?.digest.as_str())
}

/// Why sources have no files, or not today's.
fn faults(files: &[Result<Files, Fault>]) -> Vec<Fault> {
    files
        .iter()
        .filter_map(|files| match files {
            Ok(files) => files.stale.clone(),
            Err(fault) => Some(fault.clone()),
        })
        .collect()
}

fn spread(workspace: &CodeWorkspace) -> u64 {
    let mut hasher = DefaultHasher::new();
    workspace.uid().hash(&mut hasher);
    hasher.finish()
}

/// What was made of the sources, or what stands from before.
struct Made {
    inputs: Option<String>,
    sources: Vec<SourceStatus>,
    sources_omitted: Option<i64>,
    bundle: MadeBundle,
    run: Option<codeworkspace_api::RunStatus>,
    runner: Option<codeworkspace_api::RunnerStatus>,
    problems: Vec<Problem>,
    faults: Vec<Fault>,
}

enum MadeBundle {
    /// Built in this reconcile, with what could surprise somebody about it.
    New(Box<Bundle>, Vec<String>),
    /// The one of the former status, if there was one.
    Former(Option<BundleStatus>),
}

async fn make(
    lookup: &Lookup<'_>,
    workspace: &CodeWorkspace,
    manifest: &Manifest,
    world: &World,
    runner: Result<Option<Runner>, Problem>,
) -> Result<Made, Error> {
    let context = lookup.context();
    let former = workspace.status.clone().unwrap_or_default();
    let inputs = runner
        .as_ref()
        .ok()
        .and_then(|runner| inputs(workspace, manifest, world, runner.as_ref()));
    if inputs.is_some() && inputs == former.inputs && (world.stored || workspace.spec.run.is_none()) {
        return Ok(Made {
            inputs,
            sources: former.sources,
            sources_omitted: former.sources_omitted,
            bundle: MadeBundle::Former(former.bundle),
            run: former.run,
            runner: runner.ok().flatten().map(|runner| runner.status()),
            problems: Vec::new(),
            faults: Vec::new(),
        });
    }
    let now = context.clock.now();
    let limit = SignedDuration::from_secs(context.configuration.scan.stale_limit_seconds);
    let files = staleness::within(
        limit,
        fetch_all(lookup, &world.sources, &Caps::from(context.configuration.bundle)).await,
        &world.sources,
        &former,
        now,
    );
    let faults = faults(&files);
    // A branch may move between look-up and download: then these are not the files that the hash stands for.
    let inputs = inputs.filter(|_| world.sources.iter().zip(&files).all(is_what_was_looked_up));
    let plan = plan(
        context,
        manifest,
        runner.as_ref().ok().and_then(Option::as_ref),
        &former,
    );
    let mut problems = problem::of_manifest(manifest, &world.inherited);
    problems.extend(stale_roots(world, &former, limit, now));
    if let Some(kept) = staleness::kept(workspace, &former, &world.sources, &files, now) {
        problems.extend(runner.err());
        return Ok(Made {
            inputs: None,
            sources: kept,
            sources_omitted: former.sources_omitted,
            bundle: MadeBundle::Former(former.bundle),
            run: former.run,
            runner: former.runner,
            problems,
            faults,
        });
    }
    let looked = world.sources.clone();
    let Built {
        sources,
        bundle,
        warnings,
        run,
        problems: of_bundle,
    } = context.build(move || build::build(&looked, files, &plan)).await?;
    problems.extend(of_bundle);
    let runner = match runner {
        Ok(runner) => runner.map(|runner| runner.status()),
        Err(problem) => {
            // The command may have been refused against the bundle too, where more is known.
            if !problems
                .iter()
                .any(|other| (other.condition, other.reason) == (problem.condition, problem.reason))
            {
                problems.push(problem);
            }
            None
        }
    };
    let ready = problems.is_empty();
    Ok(Made {
        inputs: inputs.filter(|_| ready),
        sources_omitted: status::omitted(&sources),
        sources,
        bundle: match bundle {
            Some(bundle) if ready => MadeBundle::New(Box::new(bundle), warnings),
            _ => MadeBundle::Former(former.bundle),
        },
        run,
        runner,
        problems,
        faults,
    })
}

/// The hash of everything that is built from, when every source points somewhere certain.
fn inputs(
    workspace: &CodeWorkspace,
    manifest: &Manifest,
    world: &World,
    runner: Option<&Runner>,
) -> Option<String> {
    if !problem::of_manifest(manifest, &world.inherited).is_empty() || world.stale_roots().next().is_some() {
        return None;
    }
    let targets: Option<Vec<&Target>> = world
        .sources
        .iter()
        .map(|looked| {
            looked
                .target
                .as_ref()
                .ok()
                .filter(|target| target.stale().is_none())
        })
        .collect();
    let usual = manifest.links;
    let sources: Vec<String> = targets?
        .into_iter()
        .map(|target| target.identity(usual))
        .collect();
    let template = runner.map(|runner| &runner.picked.template);
    let (name, uid) = (
        template.map(kube::ResourceExt::name_any),
        template.and_then(kube::ResourceExt::uid),
    );
    let inputs = Inputs {
        sources: &sources,
        run: workspace.spec.run.as_ref(),
        runner: workspace.spec.runner.as_ref(),
        template: template.map(|template| {
            let generation = template.metadata.generation.unwrap_or_default();
            (
                name.as_deref().unwrap_or_default(),
                uid.as_deref().unwrap_or_default(),
                generation,
            )
        }),
        volume: &manifest.volume,
        skip_links: matches!(manifest.links, LinkPolicy::Skip),
        handle: runner
            .filter(|_| world.refers || has_other_blocks(&workspace.spec))
            .map(Runner::status),
    };
    Some(inputs.hash())
}

/// Blocks besides `runner` that say how the body is run.
fn has_other_blocks(spec: &CodeWorkspaceSpec) -> bool {
    spec.runtime.is_some() || spec.sandbox.is_some()
}

/// A version tag that leads elsewhere than before.
struct Moved {
    now: String,
    note: String,
}

/// Roots that hold only manifests grow stale like sources.
fn stale_roots(
    world: &World,
    former: &CodeWorkspaceStatus,
    limit: SignedDuration,
    now: jiff::Timestamp,
) -> Option<Problem> {
    let fault = world.stale_roots().next()?;
    let since = former
        .conditions
        .iter()
        .find(|condition| condition.type_ == condition::STALE && condition.status == "True")?;
    if now.duration_since(since.last_transition_time.0) <= limit {
        return None;
    }
    let fault = staleness::too_long(limit, fault);
    Some(Problem {
        condition: Some(condition::SOURCES_RESOLVED),
        reason: fault.reason,
        message: fault.message,
        transient: true,
    })
}

/// Version tags that lead elsewhere than at the last look: what they lead to, before and now.
fn moved_tags(workspace: &CodeWorkspace, sources: &[Looked]) -> Vec<Moved> {
    let former = workspace.status.iter().flat_map(|status| &status.sources);
    let former: Vec<&SourceStatus> = former.collect();
    let moved = sources.iter().filter_map(|looked| {
        let target = looked.target.as_ref().ok()?;
        let source = target.version_tag()?;
        let now = target.revision()?;
        let former = former
            .iter()
            .find(|former| former.path == looked.field && former.summary == looked.summary)?;
        let before = former.revision.as_ref().filter(|before| **before != now)?;
        let note = format!(
            "{}: tag {} of {} moved from commit {before} to {now}",
            looked.field, source.reference, source.repository
        );
        Some(Moved { now, note })
    });
    moved.collect()
}

fn is_what_was_looked_up((looked, files): (&Looked, &Result<Files, Fault>)) -> bool {
    match (&looked.target, files) {
        (Ok(target), Ok(files)) => files.stale.is_none() && target.revision() == files.revision,
        _ => false,
    }
}

fn plan(
    context: &Context,
    manifest: &Manifest,
    runner: Option<&Runner>,
    former: &CodeWorkspaceStatus,
) -> Plan {
    let configuration = &context.configuration;
    let mut volume = manifest.volume.clone();
    volume
        .size_limit
        .get_or_insert_with(|| configuration.runs.volume_size_limit.clone());
    Plan {
        caps: Caps::from(configuration.bundle),
        config_map_bytes: configuration.delivery.config_map_bytes,
        run: manifest.run().and_then(|run| run.as_ref().ok()).cloned(),
        template: runner.map(|runner| {
            let template = &runner.picked.template;
            (template.name_any(), template.spec.languages.clone())
        }),
        tools: runner.map_or_else(BTreeSet::new, |runner| {
            runner.picked.template.spec.tools.iter().cloned().collect()
        }),
        volume,
        former: former.sources.clone(),
        now: context.clock.now(),
    }
}

/// Applies what was made: the bundle's ConfigMap, then the run of a new key.
async fn deliver(
    context: &Context,
    workspace: &CodeWorkspace,
    manifest: &Manifest,
    world: World,
    made: Made,
) -> Result<(Found, bool), Error> {
    let Made {
        inputs,
        sources,
        sources_omitted,
        bundle,
        run,
        runner,
        mut problems,
        faults: _,
    } = made;
    let mut stored = false;
    let former = workspace.status.as_ref();
    let bundle = match bundle {
        MadeBundle::Former(bundle) => bundle,
        MadeBundle::New(bundle, warnings) => {
            let problem = match run {
                Some(_) => apply::store(context, workspace, &bundle).await?,
                None => None,
            };
            stored = problem.is_none();
            problems.extend(problem);
            let made = build::bundle_status(&bundle, warnings);
            if stored {
                Some(made)
            } else {
                former.and_then(|former| former.bundle.clone())
            }
        }
    };
    let mut last_run = former
        .and_then(|former| former.last_run.clone())
        .map(|former: LastRunStatus| LastRun {
            key: former.key,
            name: former.name,
            object: world.last_run.clone(),
        });
    if let (true, Some(bundle), Some(run), Some(runner)) = (problems.is_empty(), &bundle, &run, &runner)
        && manifest.policy == RunPolicy::OnChange
    {
        let key = RunKey::new(bundle, run, runner, &world.inherited.network.egress).hash();
        if last_run.as_ref().is_none_or(|last| last.key != key) {
            match apply::start_run(context, workspace, &key, &bundle.digest).await? {
                Ok(object) => {
                    last_run = Some(LastRun {
                        key,
                        name: object.name_any(),
                        object: Some(object),
                    });
                }
                Err(problem) => problems.push(problem),
            }
        }
    }
    let effective = EffectiveStatus {
        egress: world.inherited.network.egress.clone(),
        secrets: world.inherited.secrets.bindings.keys().cloned().collect(),
        native: runner
            .as_ref()
            .map(|runner| runner.needs.native.clone())
            .unwrap_or_default(),
    };
    let inputs = inputs.filter(|_| problems.is_empty());
    let has_run = workspace.spec.run.is_some();
    Ok((
        Found {
            inputs,
            sources,
            bundle,
            run,
            runner,
            effective,
            problems,
            has_run,
            last_run,
            stale_roots: world.stale_roots().map(|fault| fault.message.clone()).collect(),
            sources_omitted,
            root: world.root.as_ref().map(|root| root.status()),
            warnings: manifest.blocks.warnings.clone(),
        },
        stored,
    ))
}

/// Writes the status if anything in it changed, and tells people about what they would want to notice.
pub async fn write(
    context: &Context,
    workspace: &CodeWorkspace,
    status: &CodeWorkspaceStatus,
) -> Result<(), Error> {
    if workspace.status.as_ref() == Some(status) {
        return Ok(());
    }
    // The answer holds the whole object, which may have become unreadable meanwhile.
    let api: Api<Readable<CodeWorkspace>> =
        Api::namespaced(context.client.clone(), &workspace.namespace().unwrap_or_default());
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    api.patch_status(
        &workspace.name_any(),
        &parameters,
        &apply_patch(&status::patch(workspace, status))?,
    )
    .await?;
    context.events.workspace_changed(workspace, status).await;
    Ok(())
}
