//! From what was read to what shall be: files to a bundle, `run` to an argument list, `runner` to a template. Pure, and heavy
//! enough (tar, gzip, sha256) to be called off the async reactor.

use std::collections::BTreeSet;

use codeworkspace_api::{
    BundleStatus, ResolvedLimits, ResolvedNeeds, RunStatus, RunnerLanguage, RunnerStatus, SourceFailure,
    SourceState, SourceStatus, Volume, condition, reason,
};
use codeworkspace_bundle::runner::{Engine, RunnerHandle};
use codeworkspace_bundle::sandbox::READ_ONLY;
use codeworkspace_bundle::{Bundle, Caps, FileTree, Inherited, Layer, Run, overlay, twins_between};
use codeworkspace_protocol::layout;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use super::dereference::{Files, Looked, Target};
use super::manifest::Manifest;
use super::problem::{self, Problem};
use super::template::{self, Picked};
use super::{delivery, quantity};
use crate::controller::fault::{Fault, Healing, join};

/// Longest message of one source in status.
const SOURCE_MESSAGE_MAX: usize = 1024;

/// The resolved runner and its template.
#[derive(Clone, Debug)]
pub struct Runner {
    /// The handle with every field filled in.
    pub handle: RunnerHandle,
    /// The template.
    pub picked: Picked,
}

/// Resolves the runner of a workspace with a command; `None` for a shared bundle.
pub fn runner(
    manifest: &Manifest,
    inherited: &Inherited,
    templates: &[codeworkspace_api::RunnerTemplate],
) -> Result<Option<Runner>, Problem> {
    let invalid =
        |reason, message: String| Problem::permanent(Some(condition::RUNNER_RESOLVED), reason, message);
    if let Some(fault) = &manifest.unread {
        return Err(problem::unread(fault));
    }
    if let Err(wrong) = &manifest.blocks.runner {
        return Err(invalid(reason::RUNNER_INVALID, join(wrong)));
    }
    let Some(run) = manifest.run() else {
        return Ok(None);
    };
    let run = run
        .as_ref()
        .map_err(|wrong| invalid(reason::RUN_INVALID, join(wrong)))?;
    let language = run
        .language()
        .map_err(|error| invalid(reason::RUN_INVALID, format!("run: {error}")))?;
    if manifest
        .blocks
        .sandbox
        .as_ref()
        .is_some_and(|sandbox| sandbox.read_only)
    {
        let message =
            format!("sandbox.read_only: {READ_ONLY}: no command runs in this sandbox, so leave `run` out");
        return Err(invalid(reason::RUNNER_INVALID, message));
    }
    let handle = inherited
        .resolve_runner(language)
        .map_err(|wrong| invalid(reason::RUNNER_INVALID, join(&wrong)))?;
    match template::pick(&handle, templates) {
        Ok(picked) => Ok(Some(Runner { handle, picked })),
        Err(none) => Err(invalid(none.reason, none.message)),
    }
}

impl Runner {
    /// The handle as status shows it.
    pub fn status(&self) -> RunnerStatus {
        let RunnerHandle {
            engine,
            image: _,
            needs,
            limits,
            downgraded,
        } = &self.handle;
        let template = self.picked.template.name_any();
        let sandbox = *engine == Engine::Sandbox;
        RunnerStatus {
            engine: engine.to_string(),
            image: sandbox.then(|| template.clone()),
            template: Some(template),
            auto_picked: self.picked.auto_picked,
            downgraded: *downgraded,
            needs: ResolvedNeeds {
                language: needs.language.as_str().to_owned(),
                native: needs.native.clone(),
                npm: needs.npm.clone(),
                pip: needs.pip.clone(),
            },
            limits: ResolvedLimits {
                memory_mb: signed(limits.memory_mb),
                timeout_ms: signed(limits.timeout_ms),
                cpu_ms: limits.cpu_ms.map(signed),
                vcpus: limits.milli_vcpus.map(cores),
                ephemeral_storage_mb: limits.ephemeral_storage_mb.map(signed),
            },
            unenforced_limits: limits.cpu_ms.map(|_| "cpu_ms".to_owned()).into_iter().collect(),
        }
    }
}

fn cores(milli: u64) -> f64 {
    // Far fewer than 2^53 of them, so nothing is lost.
    #[expect(clippy::cast_precision_loss, reason = "a count of thousandths of cores")]
    let cores = milli as f64 / 1000.0;
    cores
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What was made of the sources.
#[derive(Debug, Default)]
pub struct Built {
    /// Every source as status shows it.
    pub sources: Vec<SourceStatus>,
    /// The bundle, when every source has files that fit together.
    pub bundle: Option<Bundle>,
    /// What could surprise somebody about the bundle.
    pub warnings: Vec<String>,
    /// The command, when it fits the bundle.
    pub run: Option<RunStatus>,
    /// Everything that stands in the way.
    pub problems: Vec<Problem>,
}

/// What [`build`] needs besides the files.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Limits of the bundle.
    pub caps: Caps,
    /// Most compressed bytes that a ConfigMap takes.
    pub config_map_bytes: u64,
    /// The command, when it could be parsed.
    pub run: Option<Run>,
    /// Commands that the template brings.
    pub tools: BTreeSet<String>,
    /// The template's name and languages.
    pub template: Option<(String, Vec<RunnerLanguage>)>,
    /// The volume, with the operator's size limit filled in.
    pub volume: Volume,
    /// Sources of the former status, for the time since which one fails.
    pub former: Vec<SourceStatus>,
    /// Now.
    pub now: Timestamp,
}

/// Overlays the files, builds the bundle and resolves the command against it.
pub fn build(looked: &[Looked], files: Vec<Result<Files, Fault>>, plan: &Plan) -> Built {
    let mut built = Built {
        sources: looked
            .iter()
            .zip(&files)
            .map(|(looked, files)| source_status(looked, files, plan))
            .collect(),
        ..Built::default()
    };
    built.problems.extend(failed_sources(looked, &files));
    let Ok(trees) = files
        .into_iter()
        .map(|files| files.map(|files| files.tree))
        .collect::<Result<Vec<_>, _>>()
    else {
        return built;
    };
    let names: Vec<_> = looked
        .iter()
        .map(|looked| format!("{} ({})", looked.field, looked.summary))
        .collect();
    let layers: Vec<_> = names
        .iter()
        .zip(&trees)
        .map(|(name, tree)| Layer {
            name,
            tree: tree.as_ref(),
        })
        .collect();
    let sources = |reason, message| Problem::permanent(Some(condition::SOURCES_RESOLVED), reason, message);
    let tree = match overlay(&layers) {
        Ok(tree) => tree,
        Err(error) => {
            built
                .problems
                .push(sources(reason::SOURCE_RESOLUTION_ERROR, error.to_string()));
            return built;
        }
    };
    built.warnings = twins_between(&layers);
    match Bundle::build(&tree, &plan.caps) {
        Ok(bundle) => {
            built.problems.extend(undeliverable(&bundle, plan));
            built.bundle = Some(bundle);
        }
        Err(error) => built
            .problems
            .push(sources(reason::BUNDLE_SIZE_ERROR, error.to_string())),
    }
    match plan.run.as_ref().map(|run| resolve_run(run, &tree, plan)) {
        Some(Ok(run)) => built.run = Some(run),
        Some(Err(problem)) => built.problems.push(problem),
        None => {}
    }
    built
}

fn resolve_run(run: &Run, tree: &FileTree, plan: &Plan) -> Result<RunStatus, Problem> {
    let mount = plan.volume.mount_path.as_deref().unwrap_or(layout::DEFAULT_MOUNT);
    match run.resolve(tree, mount, &plan.tools) {
        Ok(mut resolved) => {
            resolved
                .warnings
                .extend(interpreter_of_another_template(&resolved.argv, plan));
            Ok(RunStatus {
                form: resolved.form.to_string(),
                argv: resolved.argv,
                warnings: resolved.warnings,
            })
        }
        Err(error) => Err(Problem::permanent(
            Some(condition::RUNNER_RESOLVED),
            reason::RUN_INVALID,
            format!("run: {error}"),
        )),
    }
}

/// Argument lists get a template for `multi`, which need not have the interpreter that the list begins with.
fn interpreter_of_another_template(argv: &[String], plan: &Plan) -> Option<String> {
    let (template, languages) = plan.template.as_ref()?;
    let program = argv.first()?;
    let language = match program.rsplit('/').next()? {
        "python" | "python3" | "pip" => RunnerLanguage::Python,
        "node" | "npm" | "npx" | "tsx" | "tsc" => RunnerLanguage::Node,
        _ => return None,
    };
    (!languages.contains(&language)).then(|| {
        format!(
            "RunnerTemplate {template} probably has no `{program}`: set runner.needs.language: {}",
            language.as_str()
        )
    })
}

/// One problem for all sources that have no files, with the class of the first.
fn failed_sources(looked: &[Looked], files: &[Result<Files, Fault>]) -> Option<Problem> {
    let faults: Vec<_> = files.iter().filter_map(|files| files.as_ref().err()).collect();
    let first = faults.first()?;
    let messages: Vec<_> = faults.iter().map(|fault| fault.message.as_str()).collect();
    Some(Problem {
        condition: Some(condition::SOURCES_RESOLVED),
        reason: first.class,
        message: format!(
            "{} of {} sources failed: {}",
            faults.len(),
            looked.len(),
            messages.join("; ")
        ),
        transient: faults.iter().all(|fault| fault.may_pass()),
    })
}

/// The bundle is known, but there is no way to bring it into a pod.
fn undeliverable(bundle: &Bundle, plan: &Plan) -> Option<Problem> {
    let compressed = bundle.compressed.len() as u64;
    if compressed > plan.config_map_bytes {
        return Some(Problem::permanent(
            None,
            reason::DELIVERY_NOT_SUPPORTED,
            format!(
                "the bundle has {compressed} bytes compressed; delivery by ConfigMap takes at most {} bytes: leave files out with \
                 a narrower `path`",
                plan.config_map_bytes
            ),
        ));
    }
    let limit = plan.volume.size_limit.as_deref()?;
    let available = quantity::bytes(limit)?;
    (signed(bundle.size_bytes) > available).then(|| {
        Problem::permanent(
            None,
            reason::VOLUME_TOO_SMALL,
            format!(
                "the bundle has {} bytes and volume.sizeLimit is {limit} ({available} bytes): raise it or leave files out",
                bundle.size_bytes
            ),
        )
    })
}

fn source_status(looked: &Looked, files: &Result<Files, Fault>, plan: &Plan) -> SourceStatus {
    let (state, fault) = match files {
        Ok(Files {
            stale: Some(fault), ..
        }) => (SourceState::Stale, Some(fault)),
        Ok(_) => (SourceState::Resolved, None),
        Err(fault) => (SourceState::Failed, Some(fault)),
    };
    let files = files.as_ref().ok();
    // A commit may be known although its files are not: the path in it is missing, or its archive was refused.
    let looked_up = looked.target.as_ref().ok().and_then(Target::revision);
    SourceStatus {
        path: looked.field.clone(),
        kind: looked.kind.clone(),
        summary: looked.summary.clone(),
        state,
        revision: files.and_then(|files| files.revision.clone()).or(looked_up),
        files: files.map(|files| signed(files.tree.len() as u64)),
        size_bytes: files.map(|files| signed(files.tree.content_bytes())),
        error: fault.map(|fault| failure(fault, &looked.field, plan)),
        warnings: files.map(|files| files.warnings.clone()).unwrap_or_default(),
    }
}

fn failure(fault: &Fault, field: &str, plan: &Plan) -> SourceFailure {
    source_failure(
        fault,
        plan.former.iter().find(|former| former.path == field),
        plan.now,
    )
}

/// The fault as status shows it; the time since which it lasts stays while its reason does.
pub fn source_failure(fault: &Fault, former: Option<&SourceStatus>, now: Timestamp) -> SourceFailure {
    let former = former.and_then(|former| Some((former.state, former.error.as_ref()?)));
    let same = former.filter(|(_, error)| error.reason == fault.reason);
    // During an outage each try may fail in other words, with other times in them. The first ones stay.
    let message = same
        .filter(|_| fault.healing == Healing::ByItself)
        .map_or_else(|| fault.message.clone(), |(_, error)| error.message.clone());
    // One outage has many faces: what was stale and still is has been so since the first of them.
    let outage =
        former.filter(|(state, _)| *state == SourceState::Stale && fault.healing == Healing::ByItself);
    SourceFailure {
        class: fault.class.to_owned(),
        reason: fault.reason.to_owned(),
        message: condition::truncate(message, SOURCE_MESSAGE_MAX),
        since: same
            .or(outage)
            .map_or(Time(now), |(_, error)| error.since.clone()),
    }
}

/// The bundle as status shows it.
pub fn bundle_status(bundle: &Bundle, warnings: Vec<String>) -> BundleStatus {
    BundleStatus {
        digest: bundle.digest.to_string(),
        files: signed(bundle.files),
        size_bytes: signed(bundle.size_bytes),
        compressed_bytes: signed(bundle.compressed.len() as u64),
        delivery: delivery::CONFIG_MAP.to_owned(),
        warnings,
    }
}
