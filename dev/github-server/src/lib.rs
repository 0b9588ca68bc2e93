//! A server for development and tests that plays GitHub's REST API over real git repositories.
//!
//! It answers what a client needs to get from a branch, tag or commit id to the files of that commit: references,
//! tag objects, repositories, and archives that `git archive` makes, behind a redirect to a second listener as on
//! GitHub. Error bodies, rate-limit headers and the commit comment in the archive are those of GitHub. Dates are
//! fixed, so that a fixture has the same commit ids on every machine.
//!
//! Private repositories open to personal access tokens ([`Token`]) and to installations of GitHub Apps ([`App`]), whose signature
//! it verifies and which get long tokens that are narrowed and end. Each credential has a rate limit of its own, answers carry
//! tags and are confirmed with 304, a redirect to a private archive carries a token in its query, and a renamed repository is
//! reached by its number. Requests are counted by credential ([`Requests::callers`]).
//!
//! Tests in the same process use [`GithubServer`]; others run the program and use the control endpoints below
//! `/_control/` (see the README beside this crate).

mod access;
mod api;
mod apps;
mod commit;
mod control;
mod download;
mod fixtures;
mod git;
mod paths;
mod rate_limit;
mod repositories;
mod requests;
mod server;
mod switches;

use std::path::{Path, PathBuf};

pub use access::{Token, TokenRefusal};
pub use apps::{App, AppKey, Installation, Issued, Revoked};
pub use commit::{Change, Commit};
pub use rate_limit::RateLimit;
pub use requests::Requests;
pub use server::{GithubServer, Repository, ServerOptions};
pub use switches::{AfterCut, Answer, Archive, Body, Cut, Redirect, RequestKind, Switches};

/// Why the server could not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A git command failed.
    #[error("git {command}: {detail}")]
    Git {
        /// The git subcommand.
        command: String,
        /// What git printed.
        detail: String,
    },
    /// A file or folder could not be read or written.
    #[error("{}: {detail}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// The system's reason.
        detail: String,
    },
    /// The named thing does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The named thing exists already.
    #[error("{0}")]
    Conflict(String),
    /// A name or value is not legal.
    #[error("{0}")]
    Invalid(String),
    /// A listener could not be opened or failed.
    #[error("cannot listen: {0}")]
    Listen(std::io::Error),
}

impl ServerError {
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            detail: error.to_string(),
        }
    }
}
