//! What is remembered: which commit a branch or tag led to, and the trees of commits.

mod etags;
mod lookups;
mod names;
mod proofs;
mod refusals;
mod trees;

use codeworkspace_bundle::code::{CommitId, GitReference, Repository};

use crate::credential::Asker;

pub(crate) use etags::{Etags, Remembered};
pub(crate) use lookups::{Lookups, Resolved};
pub(crate) use names::Names;
pub(crate) use proofs::{ProofKey, Proofs};
pub(crate) use refusals::Refusals;
pub(crate) use trees::Trees;

/// A branch or tag of a repository on one host, as one asker sees it: where GitHub tells a credential that a branch leads
/// says nothing to those who have none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReferenceKey {
    pub(crate) host: String,
    pub(crate) repository: Repository,
    pub(crate) reference: GitReference,
    pub(crate) asker: Asker,
}

/// A commit of a repository on one host. Not the commit alone: whoever knows a commit id need not have access to the
/// repository that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CommitKey {
    pub(crate) host: String,
    pub(crate) repository: Repository,
    pub(crate) commit: CommitId,
}
