//! The only step that reads: sources, templates, the stored bundle and the last run.

use std::sync::Arc;

use codeworkspace_api::{CodeRun, CodeWorkspace, RunnerTemplate};
use codeworkspace_bundle::code::{Code, CommitId, GithubSource, InlineSource, Source, SourceEntry};
use codeworkspace_bundle::{Digest, FileTree};
use codeworkspace_source::{Access, Github, LinkPolicy};
use futures::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt as _};

use super::delivery;
use super::fault::Fault;
use super::manifest::Manifest;
use crate::controller::{Context, Error};

/// What the world outside the object looks like.
#[derive(Debug)]
pub struct World {
    /// Every source in order.
    pub sources: Vec<Looked>,
    /// The cluster's templates.
    pub templates: Vec<RunnerTemplate>,
    /// Whether the bundle that status speaks of is stored.
    pub stored: bool,
    /// The CodeRun that status speaks of.
    pub last_run: Option<CodeRun>,
}

/// One source after the look-up, before its files are fetched.
#[derive(Clone, Debug)]
pub struct Looked {
    /// Its place in the manifest.
    pub field: String,
    /// Its kind's name.
    pub kind: Option<String>,
    /// What it points at, for people.
    pub summary: String,
    /// Where it points now, or why nobody can say.
    pub target: Result<Target, Fault>,
}

/// Where a source points now.
#[derive(Clone, Debug)]
pub enum Target {
    /// One file, whose bytes are in the manifest.
    Inline(InlineSource),
    /// A repository at one commit; the fault says why the commit could not be looked up again.
    Github(Box<GithubSource>, CommitId, Option<Fault>),
}

impl Target {
    /// Equal identities have equal files.
    pub fn identity(&self) -> String {
        match self {
            Self::Inline(inline) => {
                format!("inline {} {}", inline.path, Digest::of(inline.content.as_bytes()))
            }
            Self::Github(source, commit, _) => format!("github {commit} {source:?}"),
        }
    }

    /// The commit.
    pub fn commit(&self) -> Option<&CommitId> {
        match self {
            Self::Inline(..) => None,
            Self::Github(_, commit, _) => Some(commit),
        }
    }

    /// Why the source is stale.
    pub fn stale(&self) -> Option<&Fault> {
        match self {
            Self::Inline(..) => None,
            Self::Github(_, _, fault) => fault.as_ref(),
        }
    }
}

/// The files of one source.
#[derive(Clone, Debug)]
pub struct Files {
    /// The files, placed where they stand in the bundle.
    pub tree: Arc<FileTree>,
    /// The commit that they are of.
    pub revision: Option<CommitId>,
    /// Why they are the last known ones instead of today's.
    pub stale: Option<Fault>,
    /// What will probably surprise somebody later.
    pub warnings: Vec<String>,
}

/// Reads everything that a reconcile needs, except the files of sources.
pub async fn dereference(
    context: &Context,
    workspace: &CodeWorkspace,
    manifest: &Manifest,
) -> Result<World, Error> {
    let status = workspace.status.as_ref();
    let digest = status.and_then(|status| Some(status.bundle.as_ref()?.digest.as_str()));
    let run = status.and_then(|status| Some(status.last_run.as_ref()?.name.as_str()));
    let (sources, stored, last_run) = futures::future::join3(
        look_up_all(&context.github, manifest.code.as_ref().ok()),
        stored(context, workspace, digest),
        last_run(context, workspace, run),
    )
    .await;
    Ok(World {
        sources,
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

/// All sources are tried, whatever becomes of the first.
async fn look_up_all(github: &Github, code: Option<&Code>) -> Vec<Looked> {
    join_all(
        code.iter()
            .flat_map(|code| &code.sources)
            .map(|entry| look_up(github, entry)),
    )
    .await
}

async fn look_up(github: &Github, entry: &SourceEntry) -> Looked {
    let target = match &entry.source {
        Err(wrong) => Err(Fault::invalid(wrong)),
        Ok(Source::Inline(inline)) => Ok(Target::Inline(inline.clone())),
        Ok(Source::Github(source)) => match github.resolve(source, &Access::Anonymous).await {
            Ok(found) => Ok(Target::Github(
                Box::new(source.clone()),
                found.commit,
                found
                    .stale
                    .as_ref()
                    .map(|error| Fault::source(&entry.field, error)),
            )),
            Err(error) => Err(Fault::source(&entry.field, &error)),
        },
        Ok(Source::Local(_)) => Err(Fault::not_yet_supported(&entry.field, "local")),
        Ok(Source::Ref(_)) => Err(Fault::not_yet_supported(&entry.field, "ref")),
    };
    Looked {
        field: entry.field.clone(),
        kind: entry.kind.map(|kind| kind.to_string()),
        summary: entry.summary.clone(),
        target,
    }
}

/// Fetches the files of every source that points somewhere; the others keep their fault.
pub async fn fetch_all(github: &Github, sources: &[Looked], links: LinkPolicy) -> Vec<Result<Files, Fault>> {
    join_all(sources.iter().map(|source| async move {
        match &source.target {
            Err(fault) => Err(fault.clone()),
            Ok(Target::Inline(inline)) => Ok(Files {
                tree: Arc::new(inline.tree()),
                revision: None,
                stale: None,
                warnings: Vec::new(),
            }),
            Ok(Target::Github(github_source, ..)) => github
                .materialize(github_source, links, &Access::Anonymous)
                .await
                .map(|found| Files {
                    tree: found.tree,
                    revision: Some(found.revision),
                    stale: found
                        .stale
                        .as_ref()
                        .map(|error| Fault::source(&source.field, error)),
                    warnings: found.warnings,
                })
                .map_err(|error| Fault::source(&source.field, &error)),
        }
    }))
    .await
}
