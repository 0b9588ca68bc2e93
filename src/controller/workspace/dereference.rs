//! The only step that reads: references, sources, templates, the stored bundle and the last run.

use std::sync::Arc;

use codeworkspace_api::{CodeRun, CodeWorkspace, RunnerTemplate, reason};
use codeworkspace_bundle::code::{
    CacheClass, CommitId, GithubSource, InlineSource, LocalSource, WorkspacePath,
};
use codeworkspace_bundle::expand::{Leaf, LeafError, LeafSource, RefError};
use codeworkspace_bundle::{Digest, Expanded, FileTree, Inherited, Origin, source_warnings};
use codeworkspace_source::{Access, LinkPolicy};
use futures::future::{join, join_all, join3};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt as _};

use super::lookup::Lookup;
use super::manifest::{Manifest, links};
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
        Err(error) => Err(unresolved(&leaf.path, error)),
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

fn unresolved(field: &str, error: &LeafError) -> Fault {
    match error {
        LeafError::Invalid(wrong) => Fault::invalid(wrong),
        LeafError::Ref(error) => {
            let healing = if error.is_waiting() {
                Healing::ByOthers
            } else {
                Healing::ByEdit
            };
            Fault::unresolved(reason_of(error), healing, format!("{field}: {error}"))
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
        links: links_of(lookup, leaf),
        commit: found.commit,
        stale: found.stale.as_ref().map(|error| Fault::source(&leaf.path, error)),
    })
}

async fn look_up_local(lookup: &Lookup<'_>, leaf: &Leaf, source: &LocalSource) -> Result<Target, Fault> {
    let context = lookup.workspace(&leaf.context);
    let root = match &context {
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
    let links = links_of(lookup, leaf);
    let identity = match root.at_hand() {
        Some(files) => {
            let selected =
                root::select(files, &leaf.base, source, links).map_err(|fault| fault.at(&leaf.path))?;
            format!("files {}", root::identity_of(&selected.tree))
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

/// What becomes of links is said by the object that the source stands in.
fn links_of(lookup: &Lookup<'_>, leaf: &Leaf) -> LinkPolicy {
    lookup
        .workspace(&leaf.context)
        .map_or(LinkPolicy::Keep, |workspace| links(&workspace.spec))
}

/// Fetches the files of every source that points somewhere; the others keep their fault.
pub async fn fetch_all(lookup: &Lookup<'_>, sources: &[Looked]) -> Vec<Result<Files, Fault>> {
    join_all(sources.iter().map(|source| async move {
        let mut files = match &source.target {
            Err(fault) => Err(fault.clone()),
            Ok(target) => fetch(lookup, &source.field, target).await,
        };
        if let Ok(files) = &mut files {
            files.warnings.splice(0..0, source.warnings.iter().cloned());
        }
        files
    }))
    .await
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
            let selected =
                root::select(&files.tree, base, source, *links).map_err(|fault| fault.at(field))?;
            Ok(Files {
                tree: Arc::new(selected.tree),
                revision: root.status().revision,
                stale: root.stale.clone().map(|fault| fault.at(field)),
                warnings: [files.warnings, selected.warnings].concat(),
            })
        }
    }
}
