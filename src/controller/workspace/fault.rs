//! Why a source has no files, as status shows it.

use codeworkspace_api::reason;
use codeworkspace_bundle::FieldError;
use codeworkspace_source::SourceError;
use std::time::Duration;

/// Why a source has no files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// AIP-26's error class.
    pub class: &'static str,
    /// One word of a closed list.
    pub reason: &'static str,
    /// For people: what, where, and what to do.
    pub message: String,
    /// Whether it may heal without a change of the manifest.
    pub transient: bool,
    /// When the other side wants to be asked again.
    pub retry_after: Option<Duration>,
}

impl Fault {
    /// The entry itself is wrong.
    pub fn invalid(wrong: &[FieldError]) -> Self {
        Self::permanent(reason::MANIFEST_VALIDATION_ERROR, "Invalid", join(wrong))
    }

    /// The source could not be resolved.
    pub fn source(field: &str, error: &SourceError) -> Self {
        Self {
            class: error.reason.class().as_str(),
            reason: error.reason.as_str(),
            message: format!("{field}: {}", error.message),
            transient: error.is_transient(),
            retry_after: error.retry_after,
        }
    }

    /// The kind is part of the format and this version does not implement it.
    pub fn not_yet_supported(field: &str, kind: &str) -> Self {
        Self::permanent(
            reason::SOURCE_RESOLUTION_ERROR,
            reason::NOT_YET_SUPPORTED,
            format!(
                "{field}.{kind}: this version does not implement {kind} sources yet; use inline or github"
            ),
        )
    }

    fn permanent(class: &'static str, reason: &'static str, message: String) -> Self {
        Self {
            class,
            reason,
            message,
            transient: false,
            retry_after: None,
        }
    }
}

/// Every error on one line.
pub fn join(errors: &[FieldError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
