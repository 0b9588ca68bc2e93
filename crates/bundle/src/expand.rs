//! From a manifest with `ref` sources to the flat list of sources that have files (AIP-26, "Source variant: `ref`").
//!
//! Nothing is read here. What a `ref` leads to is looked up in a [`Catalog`]; what that lacks is told, so that the caller can load it and
//! ask again. So every cycle is found before a file or a repository is fetched.

mod catalog;
mod error;
mod walk;

use std::collections::BTreeSet;

pub use catalog::{Catalog, Lookup, NodeKey, workspace_keys};
pub use error::{LeafError, RefError};

use crate::{
    code::{GithubSource, InlineSource, LocalSource, SourceKind, WorkspacePath},
    inherit::Inherited,
    manifest::Manifest,
};

/// References that may follow each other from a manifest to a source (AIP-26 leaves the number to hosts and names 5).
pub const MAX_DEPTH: usize = 5;
/// Sources that a manifest may have after all references are replaced, the references themselves included. Each block has a limit of its
/// own, but blocks that refer to each other multiply.
pub const MAX_EXPANDED: usize = 1_024;

/// What came of an expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expansion {
    /// The catalog lacks these. Look them up and ask again.
    Wanted(BTreeSet<NodeKey>),
    /// Everything was looked up.
    Complete(Box<Expanded>),
}

/// A manifest without references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The sources in their order, and in their places the references that lead nowhere.
    pub leaves: Vec<Leaf>,
    /// The manifest's own blocks over those of everything that it refers to.
    pub inherited: Inherited,
    /// Everything that was looked up, also in vain: a change of one of these may change the result.
    pub used: BTreeSet<NodeKey>,
}

/// One source after expansion, or a reference that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The way to it: `code.sources[1] > render-utils > code.sources[0]`.
    pub path: String,
    /// Where that way begins in the manifest that was expanded: `code.sources[1]`.
    pub place: String,
    /// The name of the object whose root and connectors it uses.
    pub context: String,
    /// The folder of that root which the paths of a `local` source start at.
    pub base: WorkspacePath,
    /// Its kind, if it has exactly one.
    pub kind: Option<SourceKind>,
    /// A short text to recognise it by.
    pub summary: String,
    /// The source, or why there is none.
    pub source: Result<LeafSource, LeafError>,
    /// What the manifest that it is the first source of has to say.
    pub warnings: Vec<String>,
}

/// A source that has files of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeafSource {
    /// Content in a manifest.
    Inline(InlineSource),
    /// Files of the context's root.
    Local(LocalSource),
    /// Files of a repository.
    Github(GithubSource),
}

/// Replaces every `ref` of `top`, which is the object `top_name`, by the sources of what it refers to.
///
/// All faults are found, not only the first: a reference that leads nowhere is a leaf with an error, and the others are followed. The
/// result depends on what is in the catalog and never on the order in which it got there.
pub fn expand(top: &Manifest, top_name: &str, catalog: &Catalog) -> Expansion {
    walk::walk(top, top_name, catalog)
}

#[cfg(test)]
mod tests;
