//! The only step that reads: references, sources, templates, the stored bundle and the last run.

use std::sync::Arc;

use codeworkspace_api::{CodeRun, CodeWorkspace, RunnerTemplate, reason};
use codeworkspace_bundle::code::{
    CacheClass, CommitId, GithubSource, InlineSource, LocalSource, WorkspacePath,
};
use codeworkspace_bundle::expand::{Leaf, LeafError, LeafSource, RefError};
use codeworkspace_bundle::{Caps, Digest, Expanded, FileTree, Inherited, NodeKey, Origin, source_warnings};
use codeworkspace_source::{Access, LinkPolicy};
use futures::future::{join, join_all, join3};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt as _};

use super::lookup::{Known, Lookup};
use super::manifest::Manifest;
use super::root::{self, Root};
use super::{delivery, graph};
use crate::controller::fault::{Fault, Healing};
use crate::controller::{Context, Error};

/// What the world outside the object looks like.
#[derive(Debug)]
pub struct World {
    /// Every source in order, references replaced by what they lead to.
    pub sources: Vec<Looked>,
    /// The workspace's blocks over those of everything that it refers to.
    pub inherited: Inherited,
    /// Whether it refers to anything.
    pub refers: bool,
    /// What stands at the workspace's root.
    pub root: Option<Arc<Root>>,
    /// Every root that was looked up, also those that only hold manifests.
    pub roots: Vec<Arc<Root>>,
    /// The cluster's templates.
    pub templates: Vec<RunnerTemplate>,
    /// Whether the bundle that status speaks of is stored.
    pub stored: bool,
    /// The CodeRun that status speaks of.
    pub last_run: Option<CodeRun>,
}

impl World {
    /// Whether anything can change that nobody is told of, so that it has to be looked up from time to time.
    pub fn is_floating(&self) -> bool {
        self.sources
            .iter()
            .filter_map(|source| source.target.as_ref().ok())
            .any(Target::is_floating)
            || self.roots.iter().any(|root| root.is_floating())
    }

    /// Why roots are not read as they are today.
    pub fn stale_roots(&self) -> impl Iterator<Item = &Fault> {
        self.roots.iter().filter_map(|root| root.stale.as_ref())
    }
}

/// One source after the look-up, before its files are fetched.
#[derive(Clone, Debug)]
pub struct Looked {
    /// The way to it: `code.sources[1] > render-utils > code.sources[0]`.
    pub field: String,
    /// Its kind's name.
    pub kind: Option<String>,
    /// What it points at, for people.
    pub summary: String,
    /// Where it points now, or why nobody can say.
    pub target: Result<Target, Fault>,
    /// What will probably surprise somebody later.
    pub warnings: Vec<String>,
}

/// Where a source points now.
#[derive(Clone, Debug)]
pub enum Target {
    /// One file, whose bytes are in the manifest.
    Inline(InlineSource),
    /// A repository at one commit; the fault says why the commit could not be looked up again.
    Github {
        /// What is taken of it.
        source: Box<GithubSource>,
        /// By what right.
        access: Access,
        /// What becomes of links.
        links: LinkPolicy,
        /// The commit.
        commit: CommitId,
        /// Why the commit is the last known one.
        stale: Option<Fault>,
    },
    /// Files of a root.
    Local {
        /// What is taken of it.
        source: Box<LocalSource>,
        /// The folder of the root that its paths start at.
        base: WorkspacePath,
        /// What becomes of links.
        links: LinkPolicy,
        /// The root.
        root: Arc<Root>,
        /// Equal identities have equal files.
        identity: String,
    },
}

impl Target {
    /// Equal identities have equal files. What becomes of links stands in it when it is not what is `usual` for the workspace.
    ///
    /// Status holds a hash of them: what is written here for a kind of source stays as it is, or every bundle is built again.
    pub fn identity(&self, usual: LinkPolicy) -> String {
        let (identity, links) = match self {
            Self::Inline(inline) => {
                let content = Digest::of(inline.content.as_bytes());
                (format!("inline {} {content}", inline.path), usual)
            }
            Self::Github {
                source,
                commit,
                links,
                ..
            } => (format!("github {commit} {source:?}"), *links),
            Self::Local { identity, links, .. } => (identity.clone(), *links),
        };
        if links == usual {
            return identity;
        }
        format!("{identity} {links:?}")
    }

    /// What identifies the files, for people.
    pub fn revision(&self) -> Option<String> {
        match self {
            Self::Inline(_) => None,
            Self::Github { commit, .. } => Some(commit.to_string()),
            Self::Local { root, .. } => root.status().revision,
        }
    }

    /// Why the source is stale.
    pub fn stale(&self) -> Option<&Fault> {
        match self {
            Self::Inline(_) => None,
            Self::Github { stale, .. } => stale.as_ref(),
            Self::Local { root, .. } => root.stale.as_ref(),
        }
    }

    /// The version tag that the source names, if it names one: the only kind of reference that is not expected to move.
    pub fn version_tag(&self) -> Option<&GithubSource> {
        match self {
            Self::Github { source, .. } if source.reference.cache_class() == CacheClass::Day => Some(source),
            _ => None,
        }
    }

    fn is_floating(&self) -> bool {
        match self {
            Self::Inline(_) => false,
            Self::Github { source, .. } => source.reference.cache_class() != CacheClass::Forever,
            Self::Local { root, .. } => root.is_floating(),
        }
    }
}

/// The files of one source.
#[derive(Clone, Debug)]
pub struct Files {
    /// The files, placed where they stand in the bundle.
    pub tree: Arc<FileTree>,
    /// What identifies them, for people.
    pub revision: Option<String>,
    /// Why they are the last known ones instead of today's.
    pub stale: Option<Fault>,
    /// What will probably surprise somebody later.
    pub warnings: Vec<String>,
}

/// Reads everything that a reconcile needs, except the files of sources.
pub async fn dereference(
    context: &Context,
    lookup: &Lookup<'_>,
    workspace: &CodeWorkspace,
    manifest: &Manifest,
) -> Result<World, Error> {
    let status = workspace.status.as_ref();
    let digest = status.and_then(|status| Some(status.bundle.as_ref()?.digest.as_str()));
    let run = status.and_then(|status| Some(status.last_run.as_ref()?.name.as_str()));
    let sources = async {
        let expanded = graph::follow(lookup, workspace, manifest).await;
        let (sources, root) = join(
            join_all(expanded.leaves.iter().map(|leaf| look_up(lookup, leaf))),
            graph::root(lookup, workspace),
        )
        .await;
        (expanded, sources, root)
    };
    let ((expanded, sources, root), stored, last_run) = join3(
        sources,
        stored(context, workspace, digest),
        last_run(context, workspace, run),
    )
    .await;
    let Expanded { inherited, used, .. } = expanded;
    Ok(World {
        sources,
        inherited,
        refers: !used.is_empty(),
        roots: lookup.looked_up_roots(),
        // Sources that need it tell why it cannot be read.
        root: root.ok().flatten(),
        templates: context.templates(),
        stored: stored?,
        last_run: last_run?,
    })
}

async fn stored(context: &Context, workspace: &CodeWorkspace, digest: Option<&str>) -> Result<bool, Error> {
    let (Some(digest), Some(uid)) = (digest, workspace.uid()) else {
        return Ok(false);
    };
    let api: Api<PartialObjectMeta<ConfigMap>> =
        Api::namespaced(context.client.clone(), &workspace.namespace().unwrap_or_default());
    let found = api.get_opt(&delivery::config_map_name(&uid, digest)).await?;
    Ok(found.is_some_and(|found| delivery::holds(&found.metadata, &uid, digest)))
}

async fn last_run(
    context: &Context,
    workspace: &CodeWorkspace,
    name: Option<&str>,
) -> Result<Option<CodeRun>, Error> {
    let Some(name) = name else { return Ok(None) };
    let api: Api<CodeRun> =
        Api::namespaced(context.client.clone(), &workspace.namespace().unwrap_or_default());
    Ok(api.get_opt(name).await?)
}

/// Each source is tried, whatever becomes of the others.
async fn look_up(lookup: &Lookup<'_>, leaf: &Leaf) -> Looked {
    let target = match &leaf.source {
        Err(error) => Err(unresolved(lookup, leaf, error)),
        Ok(LeafSource::Inline(inline)) => Ok(Target::Inline(inline.clone())),
        Ok(LeafSource::Github(source)) => look_up_github(lookup, leaf, source).await,
        Ok(LeafSource::Local(source)) => look_up_local(lookup, leaf, source).await,
    };
    Looked {
        field: leaf.path.clone(),
        kind: leaf.kind.map(|kind| kind.to_string()),
        summary: leaf.summary.clone(),
        target,
        warnings: leaf.warnings.clone(),
    }
}

fn unresolved(lookup: &Lookup<'_>, leaf: &Leaf, error: &LeafError) -> Fault {
    match error {
        LeafError::Invalid(wrong) => Fault::invalid(wrong),
        LeafError::Ref(error) => {
            if let RefError::Waiting { path, .. } | RefError::Unreadable { path, .. } = error {
                let key = NodeKey {
                    context: leaf.context.clone(),
                    path: path.clone(),
                };
                if let Some(fault) = lookup.unread(&key) {
                    return fault.at(&leaf.path);
                }
            }
            let healing = if error.is_waiting() {
                Healing::ByOthers
            } else {
                Healing::ByEdit
            };
            Fault::unresolved(reason_of(error), healing, format!("{}: {error}", leaf.path))
        }
    }
}

fn reason_of(error: &RefError) -> &'static str {
    match error {
        RefError::Missing { .. } | RefError::Waiting { .. } => reason::WAITING,
        RefError::Unreadable { .. } => reason::REFERENCE_REFUSED,
        RefError::Manifest(codeworkspace_bundle::ManifestError::Kind { .. }) => reason::KIND_ERROR,
        RefError::Manifest(_) => reason::REFERENCE_INVALID,
        RefError::Cycle(_) => reason::CYCLE,
        RefError::TooDeep(_) | RefError::TooMany => reason::TOO_DEEP,
    }
}

async fn look_up_github(lookup: &Lookup<'_>, leaf: &Leaf, source: &GithubSource) -> Result<Target, Fault> {
    let access = lookup.access().await.map_err(|fault| fault.at(&leaf.path))?;
    let found = lookup.resolve(&leaf.path, source, &access).await?;
    Ok(Target::Github {
        source: Box::new(source.clone()),
        access,
        links: lookup.links(&leaf.context),
        commit: found.commit,
        stale: found.stale.as_ref().map(|error| Fault::source(&leaf.path, error)),
    })
}

async fn look_up_local(lookup: &Lookup<'_>, leaf: &Leaf, source: &LocalSource) -> Result<Target, Fault> {
    let context = lookup.workspace(&leaf.context);
    let root = match context.as_ref().and_then(Known::read) {
        Some(workspace) => graph::root(lookup, workspace)
            .await
            .map_err(|fault| fault.at(&leaf.path))?,
        None => None,
    };
    let Some(root) = root else {
        let message = format!(
            "{}: CodeWorkspace {} has no `root`, and files of a workspace are read there: set spec.root, for example to a ConfigMap",
            leaf.path, leaf.context
        );
        return Err(Fault::unresolved(reason::ROOT_MISSING, Healing::ByEdit, message));
    };
    let links = lookup.links(&leaf.context);
    let identity = match root.at_hand() {
        Some(files) => {
            let selected = root::select(files, &leaf.base, source, links, lookup).await;
            let selected = selected.map_err(|fault| fault.at(&leaf.path))?;
            let digest = root::digest(Arc::new(selected.tree), lookup).await;
            format!("files {}", digest.map_err(|fault| fault.at(&leaf.path))?)
        }
        None => format!("local {} {} {source:?}", root.identity, leaf.base),
    };
    Ok(Target::Local {
        source: Box::new(source.clone()),
        base: leaf.base.clone(),
        links,
        root,
        identity,
    })
}

/// Sources that are fetched at the same time for one workspace.
const FETCHES: usize = 4;
/// How many times the limits of a bundle all sources together may pass before they are laid over each other. References may bring the
/// same files many times over.
const BEFORE_OVERLAY: u64 = 4;

/// Fetches the files of every source that points somewhere; the others keep their fault. What could never become a bundle within
/// `caps` is given up before it is held in memory.
pub async fn fetch_all(lookup: &Lookup<'_>, sources: &[Looked], caps: &Caps) -> Vec<Result<Files, Fault>> {
    let (mut entries, mut bytes) = (0_u64, 0_u64);
    let most = (caps.entries * BEFORE_OVERLAY, caps.total_bytes * BEFORE_OVERLAY);
    let mut fetched = Vec::with_capacity(sources.len());
    // In groups, so that nothing more is fetched once there is too much.
    for group in sources.chunks(FETCHES) {
        if entries > most.0 || bytes > most.1 {
            fetched.extend(
                group
                    .iter()
                    .map(|source| Err(too_much(source, entries, bytes, most))),
            );
            continue;
        }
        let files = join_all(group.iter().map(|source| fetch_one(lookup, source))).await;
        for files in files {
            if let Ok(files) = &files {
                entries += files.tree.len() as u64;
                bytes += files.tree.content_bytes();
            }
            fetched.push(files);
        }
    }
    fetched
}

fn too_much(source: &Looked, entries: u64, bytes: u64, (most_entries, most_bytes): (u64, u64)) -> Fault {
    let message = format!(
        "{}: the sources before it have {entries} files with {bytes} bytes already, and all sources together may have at most \
         {most_entries} files and {most_bytes} bytes before they are laid over each other: take narrower parts",
        source.field
    );
    Fault {
        class: reason::BUNDLE_SIZE_ERROR,
        ..Fault::unresolved("TooLarge", Healing::ByEdit, message)
    }
}

async fn fetch_one(lookup: &Lookup<'_>, source: &Looked) -> Result<Files, Fault> {
    let target = source.target.as_ref().map_err(Clone::clone)?;
    let mut files = fetch(lookup, &source.field, target).await?;
    files.warnings.splice(0..0, source.warnings.iter().cloned());
    Ok(files)
}

async fn fetch(lookup: &Lookup<'_>, field: &str, target: &Target) -> Result<Files, Fault> {
    match target {
        Target::Inline(inline) => {
            let tree = inline.tree();
            Ok(Files {
                revision: None,
                stale: None,
                warnings: source_warnings(&tree, Origin::Workspace),
                tree: Arc::new(tree),
            })
        }
        Target::Github {
            source,
            access,
            links,
            ..
        } => {
            let found = lookup.github().materialize(source, *links, access).await;
            let found = found.map_err(|error| Fault::source(field, &error))?;
            Ok(Files {
                tree: found.tree,
                revision: Some(found.revision.to_string()),
                stale: found.stale.as_ref().map(|error| Fault::source(field, error)),
                warnings: found.warnings,
            })
        }
        Target::Local {
            source,
            base,
            links,
            root,
            ..
        } => {
            let files = root
                .files(lookup, *links)
                .await
                .map_err(|fault| fault.at(field))?;
            let selected = root::select(&files.tree, base, source, *links, lookup).await;
            let selected = selected.map_err(|fault| fault.at(field))?;
            Ok(Files {
                tree: Arc::new(selected.tree),
                revision: root.status().revision,
                stale: root.stale.clone().map(|fault| fault.at(field)),
                warnings: [files.warnings, selected.warnings].concat(),
            })
        }
    }
}
