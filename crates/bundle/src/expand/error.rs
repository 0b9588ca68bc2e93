use super::{MAX_DEPTH, MAX_EXPANDED};
use crate::{code::WorkspacePath, field::FieldError, manifest::ManifestError, quote::Quoted};

/// Why a leaf has no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeafError {
    /// The entry itself is wrong.
    #[error("{}", joined(.0))]
    Invalid(Vec<FieldError>),
    /// It is a reference that can't be followed.
    #[error(transparent)]
    Ref(#[from] RefError),
}

/// Why a reference can't be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefError {
    /// There is nothing at its path.
    #[error("{}", missing(.path, *.has_root, .near.as_deref()))]
    Missing {
        /// Where it points.
        path: WorkspacePath,
        /// Whether there is a root to look into.
        has_root: bool,
        /// A path that may have been meant.
        near: Option<String>,
    },
    /// What is there can't be read yet.
    #[error("`{path}` can't be read yet: {reason}")]
    Waiting {
        /// Where it points.
        path: WorkspacePath,
        /// Why.
        reason: String,
    },
    /// What is there can't be read at all.
    #[error("`{path}` can't be read: {reason}")]
    Unreadable {
        /// Where it points.
        path: WorkspacePath,
        /// Why.
        reason: String,
    },
    /// What is there can't be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// It leads back to where it comes from.
    #[error("is a cycle: {}", .0.join(" > "))]
    Cycle(Vec<String>),
    /// Too many references follow each other.
    #[error("is one reference too many in a row, of which there may be {MAX_DEPTH}: {}", .0.join(" > "))]
    TooDeep(Vec<String>),
    /// There is more behind it than can be gone through.
    #[error("expands to more than {MAX_EXPANDED} sources, which is the most that one bundle may be made of")]
    TooMany,
}

impl RefError {
    /// The error in one word, for status and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "RefNotFound",
            Self::Waiting { .. } => "RefNotReady",
            Self::Unreadable { .. } => "RefUnreadable",
            Self::Manifest(ManifestError::Kind { .. }) => "KindError",
            Self::Manifest(ManifestError::Invalid(_)) => "ManifestInvalid",
            Self::Cycle(_) => "RefCycle",
            Self::TooDeep(_) => "RefTooDeep",
            Self::TooMany => "TooManySources",
        }
    }

    /// Whether it heals by itself once somebody makes or mends what it points at, so that it is worth waiting.
    pub fn is_waiting(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Waiting { .. })
    }
}

fn joined(errors: &[FieldError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

fn missing(path: &WorkspacePath, has_root: bool, near: Option<&str>) -> String {
    let hint = near
        .map(|near| format!("; did you mean {}?", Quoted(near)))
        .unwrap_or_default();
    let root = if has_root {
        "the root has no `manifest.yaml` or `CODE.md` in that folder"
    } else {
        "there is no `root` to look into"
    };
    format!("nothing is at `{path}`: no CodeWorkspace of this namespace has that `path`, and {root}{hint}")
}
