//! Why a source has no files, as status shows it.

use std::time::Duration;

use codeworkspace_api::reason;
use codeworkspace_bundle::FieldError;
use codeworkspace_source::{SourceError, SourceErrorReason};
use jiff::SignedDuration;

/// Delay after which a credential that does not work is read again: half a minute less the spread of delays, and some time to act.
pub const CREDENTIAL_RETRY: SignedDuration = SignedDuration::from_secs(24);

/// Delay after which a repository that a credential may not read is asked for again.
const PERMISSION_RETRY: SignedDuration = SignedDuration::from_mins(5);

/// Who can make a source whole again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Healing {
    /// Whoever edits the manifest or the repository.
    ByEdit,
    /// Whoever makes, mends or frees another object; the workspace waits for that and is looked at again when it happens. Until then
    /// nothing new is started, since what the manifest asks for is known to be missing.
    ByOthers,
    /// Time: the other side is out of order or wants to be left alone, or it does not accept a credential any more. What was known
    /// of it stays in use.
    ByItself,
}

/// Why a source has no files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// AIP-26's error class.
    pub class: &'static str,
    /// One word of a closed list.
    pub reason: &'static str,
    /// For people: what, where, and what to do.
    pub message: String,
    /// Who can make the source whole again.
    pub healing: Healing,
    /// When the other side wants to be asked again.
    pub retry_after: Option<Duration>,
}

impl Fault {
    /// The entry itself is wrong.
    pub fn invalid(wrong: &[FieldError]) -> Self {
        Self {
            class: reason::MANIFEST_VALIDATION_ERROR,
            ..Self::unresolved("Invalid", Healing::ByEdit, join(wrong))
        }
    }

    /// The source could not be resolved.
    pub fn source(field: &str, error: &SourceError) -> Self {
        let again = match error.reason {
            // The resolver does not show a refused credential again; this is about reading the Secret.
            SourceErrorReason::AuthFailed => Some(CREDENTIAL_RETRY),
            SourceErrorReason::SsoRequired | SourceErrorReason::Forbidden => Some(PERMISSION_RETRY),
            _ => None,
        };
        Self {
            class: error.reason.class().as_str(),
            reason: error.reason.as_str(),
            message: format!("{field}: {}", error.message),
            healing: if again.is_some() || error.is_transient() {
                Healing::ByItself
            } else {
                Healing::ByEdit
            },
            retry_after: error.retry_after.or(again.map(SignedDuration::unsigned_abs)),
        }
    }

    /// Something that a source needs is not there, or not as it has to be.
    pub fn unresolved(reason: &'static str, healing: Healing, message: impl Into<String>) -> Self {
        Self {
            class: reason::SOURCE_RESOLUTION_ERROR,
            reason,
            message: message.into(),
            healing,
            retry_after: None,
        }
    }

    /// The kind is part of the format and this version does not implement it.
    pub fn not_yet_supported(field: &str, kind: &str) -> Self {
        Self::unresolved(
            reason::NOT_YET_SUPPORTED,
            Healing::ByEdit,
            format!(
                "{field}.{kind}: this version does not implement {kind} sources yet; use inline or github"
            ),
        )
    }

    /// The same fault, looked at again as soon as a credential that does not work is.
    #[must_use]
    pub fn again_soon(self) -> Self {
        Self {
            retry_after: Some(CREDENTIAL_RETRY.unsigned_abs()),
            ..self
        }
    }

    /// The same fault with its place in front.
    #[must_use]
    pub fn at(mut self, field: &str) -> Self {
        self.message = format!("{field}: {}", self.message);
        self
    }

    /// Whether it may pass without a change of the manifest.
    pub fn may_pass(&self) -> bool {
        self.healing != Healing::ByEdit
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
