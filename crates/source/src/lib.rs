//! Resolves sources that live outside the cluster: from a manifest's `github` entry to files.
//!
//! Everything that comes over the network is foreign. So hosts come from the operator's [`GithubConfiguration`] and never
//! from an object, redirects are followed by hand to configured hosts only, archives are read entry by entry by a strict
//! reader and never unpacked, every size and wait has a limit, and messages show no content.
//!
//! Requests are few: look-ups and downloads of the same thing are shared among all who ask, answers to look-ups are
//! reused for a while, and trees are kept by commit. With a folder for it, this outlives the process.

mod archive;
mod artifacts;
mod cache;
mod clock;
mod configuration;
mod credential;
mod error;
mod flights;
mod github;
mod narrow;
mod recent;
mod store;

pub use artifacts::{Artifact, Artifacts};
pub use clock::{Clock, ManualClock, SystemClock};
pub use codeworkspace_bundle::LinkPolicy;
pub use configuration::{ConfigurationError, GithubConfiguration};
pub use credential::{Access, Credential, CredentialError, CredentialProblem};
pub use error::{ErrorClass, MAXIMUM_MESSAGE_BYTES, SourceError, SourceErrorReason};
pub use github::{Github, Materialized, RateLimit, Resolution, Statistics};
pub use recent::RecentTrees;
#[cfg(feature = "fuzzing")]
pub use store::fuzzing;
