//! The `code` block (AIP-26): which sources make up a bundle.

mod reference;
mod repository;
mod target;

pub use reference::{CacheClass, CommitId, CommitIdError, GitReference, GitReferenceError};
pub use repository::{Repository, RepositoryError};
pub use target::Target;

use crate::path::BundlePath;

/// A `github` source: files of a repository at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GithubSource {
    /// Which repository.
    pub repository: Repository,
    /// Which commit.
    pub reference: GitReference,
    /// The folder or file of the repository that is taken; `None` is the whole repository.
    pub path: Option<BundlePath>,
    /// Where it lands in the bundle.
    pub target: Target,
}
