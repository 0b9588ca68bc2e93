//! Why a source could not be resolved.

use std::fmt::{self, Write as _};
use std::time::Duration;

use codeworkspace_bundle::shortened;

/// Longest message in bytes. A status lists many sources, and one oversize message would lose all of it.
pub const MAXIMUM_MESSAGE_BYTES: usize = 1024;
/// How much of a foreign name or link target a message shows, in characters.
const MAXIMUM_QUOTE_CHARACTERS: usize = 96;

/// A source that could not be resolved: what is wrong, where, and what to do.
///
/// The message is safe to show: it never holds a file's content or the query of a URL, control characters are
/// escaped, and it has at most [`MAXIMUM_MESSAGE_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    /// The class of fault, from a closed list.
    pub reason: SourceErrorReason,
    /// One or two sentences for the manifest's author.
    pub message: String,
    /// How long the other side asked to be left alone.
    pub retry_after: Option<Duration>,
}

impl SourceError {
    pub(crate) fn new(reason: SourceErrorReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: shortened(message.into(), MAXIMUM_MESSAGE_BYTES),
            retry_after: None,
        }
    }

    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Puts the source's name in front of the message.
    pub(crate) fn about(mut self, subject: &impl fmt::Display) -> Self {
        self.message = shortened(format!("{subject}: {}", self.message), MAXIMUM_MESSAGE_BYTES);
        self
    }

    /// Whether trying again later may help although nobody changed anything.
    pub fn is_transient(&self) -> bool {
        self.reason.is_transient()
    }
}

/// AIP-26's classes of errors that this crate can report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// A source could not be found, reached or accepted.
    SourceResolutionError,
    /// A source is over a size limit.
    BundleSizeError,
}

impl ErrorClass {
    /// The class as AIP-26 writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SourceResolutionError => "SourceResolutionError",
            Self::BundleSizeError => "BundleSizeError",
        }
    }
}

/// The closed list of faults. Each says who must act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceErrorReason {
    /// The repository, branch, tag or commit does not exist, or the repository is private: GitHub answers alike.
    RepoOrRefNotFound,
    /// A branch and a tag have the name that was asked for.
    AmbiguousRef,
    /// A part of a commit id, or one in upper case, where only a full one in lower case is unambiguous.
    ShortCommitId,
    /// The tag leads to a tree or a file, or through too many other tags.
    RefNotACommit,
    /// The host allows no more requests for now.
    RateLimited,
    /// The host wants a credential, or refuses the one it got.
    AuthFailed,
    /// The organisation wants the credential to be approved for single sign-on.
    SsoRequired,
    /// The host refuses for another reason.
    Forbidden,
    /// The host has blocked the repository.
    Blocked,
    /// The host does not serve the repository for legal reasons.
    LegallyBlocked,
    /// The operator's configuration forbids requests without a credential, and there is none.
    CredentialRequired,
    /// The host could not be reached, broke off, was too slow, or gave an answer that makes no sense.
    FetchFailed,
    /// The repository was renamed, and another one has its old name now.
    RepositoryReplaced,
    /// The repository has no commits.
    EmptyRepository,
    /// The archive is not what `git archive` makes of the commit that was asked for.
    ArchiveRefused,
    /// The archive ended early.
    ArchiveTruncated,
    /// The repository has nothing at `path`.
    PathNotFound,
    /// A symbolic link leads out of the source, or nowhere.
    LinkRefused,
    /// A size limit is passed.
    TooLarge,
    /// A redirect leads where the configuration does not allow, or nowhere.
    RedirectRefused,
}

impl SourceErrorReason {
    /// The reason as it stands in status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RepoOrRefNotFound => "RepoOrRefNotFound",
            Self::AmbiguousRef => "AmbiguousRef",
            Self::ShortCommitId => "ShortCommitId",
            Self::RefNotACommit => "RefNotACommit",
            Self::RateLimited => "RateLimited",
            Self::AuthFailed => "AuthFailed",
            Self::SsoRequired => "SsoRequired",
            Self::Forbidden => "Forbidden",
            Self::Blocked => "Blocked",
            Self::LegallyBlocked => "LegallyBlocked",
            Self::CredentialRequired => "CredentialRequired",
            Self::FetchFailed => "FetchFailed",
            Self::RepositoryReplaced => "RepositoryReplaced",
            Self::EmptyRepository => "EmptyRepository",
            Self::ArchiveRefused => "ArchiveRefused",
            Self::ArchiveTruncated => "ArchiveTruncated",
            Self::PathNotFound => "PathNotFound",
            Self::LinkRefused => "LinkRefused",
            Self::TooLarge => "TooLarge",
            Self::RedirectRefused => "RedirectRefused",
        }
    }

    /// Whether trying again later may help although nobody changed anything.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::FetchFailed | Self::ArchiveTruncated
        )
    }

    /// The class that AIP-26 has for it.
    pub fn class(self) -> ErrorClass {
        match self {
            Self::TooLarge => ErrorClass::BundleSizeError,
            _ => ErrorClass::SourceResolutionError,
        }
    }
}

impl fmt::Display for SourceErrorReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Shows foreign bytes in a message: between backticks, control characters escaped, the end cut off.
pub(crate) fn quoted(text: impl AsRef<[u8]>) -> String {
    let text = String::from_utf8_lossy(text.as_ref());
    let mut shown = String::from("`");
    let mut characters = text.chars();
    for character in characters.by_ref().take(MAXIMUM_QUOTE_CHARACTERS) {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    shown.push('`');
    shown
}

/// Joins names to `a, b and 3 more`.
pub(crate) fn listed(names: &[String], shown: usize) -> String {
    let mut text = names
        .iter()
        .take(shown)
        .map(quoted)
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more) = names.len().checked_sub(shown).filter(|more| *more > 0) {
        // Writing to a string cannot fail.
        let _ = write!(text, " and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_on_a_character_boundary() {
        let error = SourceError::new(SourceErrorReason::FetchFailed, "ü".repeat(MAXIMUM_MESSAGE_BYTES));
        // 1,024 bytes less the three of the ellipsis leave room for 510 characters of two bytes.
        assert_eq!(error.message, format!("{}…", "ü".repeat(510)));
        let exact = "x".repeat(MAXIMUM_MESSAGE_BYTES);
        assert_eq!(
            SourceError::new(SourceErrorReason::FetchFailed, exact.clone()).message,
            exact
        );
    }

    #[test]
    fn foreign_names_are_escaped_and_cut() {
        assert_eq!(quoted(b"a\nb\0\xff"), "`a\\nb\\u{0}\u{fffd}`");
        assert_eq!(
            quoted("é".repeat(500)),
            format!("`{}…`", "é".repeat(MAXIMUM_QUOTE_CHARACTERS))
        );
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&names, 2), "`a`, `b` and 1 more");
        assert_eq!(listed(&names, 3), "`a`, `b`, `c`");
    }
}
