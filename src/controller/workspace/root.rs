//! The root of a workspace: where its `local` sources, and references to folders, read.
//!
//! A root is looked up first, which tells what its files are without fetching them where that is possible, and read only when
//! something needs a file.

mod claim;
pub mod config_maps;
mod definition;
mod flux;
mod reader;
mod repository;

use std::sync::{Arc, OnceLock};

use codeworkspace_api::{CodeWorkspace, RootStatus, reason};
use codeworkspace_bundle::code::{CacheClass, GithubSource, LocalSource, WorkspacePath};
use codeworkspace_bundle::{Digest, Entry, FileTree, SelectError, Selected, part_of_root};
use codeworkspace_source::{Access, LinkPolicy};
use tokio::sync::OnceCell;

pub use claim::Volumes;
pub use definition::{RootDefinition, define_root};
pub use flux::{dependency as flux_dependency, resource as flux_resource};

use super::lookup::Lookup;
use crate::controller::fault::{Fault, Healing};

/// A root as it is now.
#[derive(Debug)]
pub struct Root {
    /// Roots of equal identities have equal files.
    pub identity: String,
    status: RootStatus,
    /// What identifies the files, where only reading them tells.
    revision: OnceLock<String>,
    /// Why this is the last known state instead of today's.
    pub stale: Option<Fault>,
    content: Content,
    files: OnceCell<Result<Files, Fault>>,
}

/// The files of a root.
#[derive(Clone, Debug)]
pub struct Files {
    /// The files.
    pub tree: Arc<FileTree>,
    /// What identifies them, where only reading them tells.
    pub revision: Option<String>,
    /// What will probably surprise somebody later.
    pub warnings: Vec<String>,
}

/// Where the files of a root are.
#[derive(Debug)]
enum Content {
    /// In memory: looking up was reading.
    Here(Arc<FileTree>),
    /// In a repository.
    Repository(Box<GithubSource>, Access),
    /// In an artifact of Flux.
    Flux(Box<flux::Found>),
    /// In a volume.
    Volume(Box<claim::Volume>),
}

impl Root {
    fn new(identity: String, status: RootStatus, content: Content) -> Self {
        Self {
            identity,
            status,
            revision: OnceLock::new(),
            stale: None,
            content,
            files: OnceCell::new(),
        }
    }

    /// Finds out what the root of `owner` is now.
    pub async fn look_up(
        definition: &RootDefinition,
        owner: &CodeWorkspace,
        lookup: &Lookup<'_>,
    ) -> Result<Self, Fault> {
        match definition {
            RootDefinition::ConfigMaps(maps) => config_maps::look_up(maps, lookup).await,
            RootDefinition::Github(source) => repository::look_up(source, lookup).await,
            RootDefinition::Flux(source) => Box::pin(flux::look_up(source, lookup)).await,
            RootDefinition::Claim(claim) => Box::pin(claim::look_up(claim, owner, lookup)).await,
        }
    }

    /// What status shows.
    pub fn status(&self) -> RootStatus {
        let mut status = self.status.clone();
        if let Some(revision) = self.revision.get() {
            status.revision = Some(revision.clone());
        }
        status
    }

    /// Whether the root may change without anybody being told.
    pub fn is_floating(&self) -> bool {
        match &self.content {
            // Artifacts are watched, and volumes are read when somebody asks.
            Content::Here(_) | Content::Flux(_) | Content::Volume(_) => false,
            Content::Repository(source, _) => source.reference.cache_class() != CacheClass::Forever,
        }
    }

    /// The files, if they are in memory already.
    pub fn at_hand(&self) -> Option<&Arc<FileTree>> {
        match &self.content {
            Content::Here(tree) => Some(tree),
            Content::Repository(..) | Content::Flux(_) | Content::Volume(_) => None,
        }
    }

    /// The files, fetched once for all who ask.
    pub async fn files(&self, lookup: &Lookup<'_>, links: LinkPolicy) -> Result<Files, Fault> {
        let read = async {
            match &self.content {
                Content::Here(tree) => Ok(Files {
                    tree: Arc::clone(tree),
                    revision: None,
                    warnings: Vec::new(),
                }),
                Content::Repository(source, access) => {
                    let commit = self.status.revision.as_deref();
                    repository::files(source, access, commit, links, lookup).await
                }
                Content::Flux(found) => Box::pin(flux::files(found, links, lookup)).await,
                Content::Volume(volume) => {
                    Box::pin(claim::files(volume, &self.identity, links, lookup)).await
                }
            }
        };
        let files = self.files.get_or_init(|| read).await.clone()?;
        if let Some(revision) = &files.revision {
            self.revision.get_or_init(|| revision.clone());
        }
        Ok(files)
    }
}

/// A digest over all paths and contents, computed beside the reactor.
pub async fn digest(files: Arc<FileTree>, lookup: &Lookup<'_>) -> Result<String, Fault> {
    beside(lookup, move || digest_of(&files)).await
}

fn digest_of(files: &FileTree) -> String {
    let parts: Vec<_> = files
        .iter()
        .map(|(path, entry)| match entry {
            Entry::File { contents, executable } => {
                (path.as_str(), *executable, Digest::of(contents).to_string())
            }
            Entry::Link { target } => (path.as_str(), false, format!("link {target}")),
        })
        .collect();
    // Serialising strings into memory cannot fail.
    Digest::of(&serde_json::to_vec(&parts).unwrap_or_default()).to_string()
}

/// Steps that globs may take at one look at a workspace: bytes of a glob times bytes of paths. About a second of one core.
const STEPS_MAX: u64 = 1_000_000_000;

/// What a `local` source takes of a root. `base` is the folder that its paths start at.
pub async fn select(
    files: &Arc<FileTree>,
    base: &WorkspacePath,
    source: &LocalSource,
    links: LinkPolicy,
    lookup: &Lookup<'_>,
) -> Result<Selected, Fault> {
    if lookup.spend(steps(files, source)) > STEPS_MAX {
        let message = "the globs of this workspace take too long for the files of its roots: use fewer or shorter ones, or narrower folders";
        return Err(Fault::unresolved(
            reason::PATH_NOT_FOUND,
            Healing::ByEdit,
            message,
        ));
    }
    let (files, base, source) = (Arc::clone(files), base.clone(), source.clone());
    let selecting = move || codeworkspace_bundle::select(&part_of_root(&*files, &base), &source, links);
    let refused = |error: SelectError| Fault::unresolved(error.reason(), Healing::ByEdit, error.to_string());
    beside(lookup, selecting).await?.map_err(refused)
}

/// Runs heavy work beside the reactor.
async fn beside<T: Send + 'static>(
    lookup: &Lookup<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let done = lookup.context().build(work).await;
    done.map_err(|error| Fault::unresolved(reason::ROOT_NOT_READY, Healing::ByItself, error.to_string()))
}

fn steps(files: &FileTree, source: &LocalSource) -> u64 {
    let globs = [source.glob.as_ref(), source.pattern.glob.as_ref()];
    let glob: usize = globs.into_iter().flatten().map(|glob| glob.as_str().len()).sum();
    let paths: usize = files.paths().map(|path| path.as_str().len()).sum();
    (glob as u64).saturating_mul(paths as u64)
}
