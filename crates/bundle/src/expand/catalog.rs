use std::{
    collections::{BTreeMap, btree_map},
    fmt,
    sync::Arc,
};

use crate::{
    code::WorkspacePath,
    manifest::{Manifest, ManifestError},
};

/// Folders that shared workspaces stand in by convention (AIP-26, "Convention: workspace folder layout"); the last is how the guide's
/// examples write the first.
const CONVENTIONS: [&str; 3] = [".code-workspaces", ".code", "code-workspaces"];

/// A path as an object means it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey {
    /// The name of the object whose root is looked into first.
    pub context: String,
    /// The path that a `ref` gives.
    pub path: WorkspacePath,
}

impl fmt::Display for NodeKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} of {}", self.path, self.context)
    }
}

/// What was found at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// A manifest in the root of the context.
    InRoot(Arc<Manifest>),
    /// An object of the namespace, which makes a context of its own.
    Object {
        /// Its name.
        name: String,
        /// Its blocks.
        manifest: Arc<Manifest>,
    },
    /// Nothing yet: an object with this path may still be made.
    Missing {
        /// Whether the context has a root at all.
        has_root: bool,
        /// A path that may have been meant.
        near: Option<String>,
    },
    /// What is there can't be read yet, for this reason.
    Waiting(String),
    /// What is there can't be read at all, for this reason.
    Unreadable(String),
    /// What is there is no manifest that can be used.
    Wrong(ManifestError),
}

/// What the paths of references lead to, as far as it was looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog(BTreeMap<NodeKey, Lookup>);

impl Catalog {
    /// Nothing was looked up yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what was found.
    pub fn insert(&mut self, key: NodeKey, found: Lookup) {
        self.0.insert(key, found);
    }

    /// What was found, if it was looked up.
    pub fn get(&self, key: &NodeKey) -> Option<&Lookup> {
        self.0.get(key)
    }

    /// Everything that was looked up.
    pub fn iter(&self) -> btree_map::Iter<'_, NodeKey, Lookup> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Catalog {
    type Item = (&'a NodeKey, &'a Lookup);
    type IntoIter = btree_map::Iter<'a, NodeKey, Lookup>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The values of an object's `path` that answer to a reference, the most specific first: the path itself, and for
/// `.code-workspaces/<name>`, `.code/<name>` and `code-workspaces/<name>` also `./<name>`, which is the default of the object `<name>`.
pub fn workspace_keys(path: &WorkspacePath) -> Vec<WorkspacePath> {
    let short = path.below_root().and_then(|path| {
        let (folder, name) = path.as_str().split_once('/')?;
        (CONVENTIONS.contains(&folder) && !name.contains('/')).then(|| name.parse().ok())?
    });
    std::iter::once(path.clone()).chain(short).collect()
}
