//! The root of a workspace: where its `local` sources, and references to folders, read.
//!
//! A root is looked up first, which tells what its files are without fetching them where that is possible, and read only when
//! something needs a file.

mod config_maps;
mod definition;
mod repository;

use std::sync::Arc;

use codeworkspace_api::RootStatus;
use codeworkspace_bundle::code::{CacheClass, GithubSource, LocalSource, WorkspacePath};
use codeworkspace_bundle::{Digest, Entry, FileTree, SelectError, Selected, part_of_root};
use codeworkspace_source::{Access, LinkPolicy};
use tokio::sync::OnceCell;

pub use definition::{RootDefinition, define_root};

use super::lookup::Lookup;
use crate::controller::fault::{Fault, Healing};

/// A root as it is now.
#[derive(Debug)]
pub struct Root {
    /// Roots of equal identities have equal files.
    pub identity: String,
    /// What status shows.
    pub status: RootStatus,
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
}

impl Root {
    fn new(identity: String, status: RootStatus, content: Content) -> Self {
        Self {
            identity,
            status,
            stale: None,
            content,
            files: OnceCell::new(),
        }
    }

    /// Finds out what the root is now.
    pub async fn look_up(definition: &RootDefinition, lookup: &Lookup<'_>) -> Result<Self, Fault> {
        match definition {
            RootDefinition::ConfigMaps(maps) => config_maps::look_up(maps, lookup).await,
            RootDefinition::Github(source) => repository::look_up(source, lookup).await,
            RootDefinition::Flux(_) | RootDefinition::Claim(_) => Err(Fault::unresolved(
                codeworkspace_api::reason::NOT_YET_SUPPORTED,
                Healing::ByEdit,
                "this version reads roots of configMaps and github only",
            )),
        }
    }

    /// Whether the root may change without anybody being told.
    pub fn is_floating(&self) -> bool {
        match &self.content {
            Content::Here(_) => false,
            Content::Repository(source, _) => source.reference.cache_class() != CacheClass::Forever,
        }
    }

    /// The files, if they are in memory already.
    pub fn at_hand(&self) -> Option<&Arc<FileTree>> {
        match &self.content {
            Content::Here(tree) => Some(tree),
            Content::Repository(..) => None,
        }
    }

    /// The files, fetched once for all who ask.
    pub async fn files(&self, lookup: &Lookup<'_>, links: LinkPolicy) -> Result<Files, Fault> {
        let read = async {
            match &self.content {
                Content::Here(tree) => Ok(Files {
                    tree: Arc::clone(tree),
                    warnings: Vec::new(),
                }),
                Content::Repository(source, access) => repository::files(source, access, links, lookup).await,
            }
        };
        self.files.get_or_init(|| read).await.clone()
    }
}

/// A digest over all paths and contents.
pub fn identity_of(files: &FileTree) -> String {
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

/// What a `local` source takes of a root. `base` is the folder that its paths start at.
pub fn select(
    files: &FileTree,
    base: &WorkspacePath,
    source: &LocalSource,
    links: LinkPolicy,
) -> Result<Selected, Fault> {
    let refused = |error: SelectError| Fault::unresolved(error.reason(), Healing::ByEdit, error.to_string());
    codeworkspace_bundle::select(&part_of_root(files, base), source, links).map_err(refused)
}
