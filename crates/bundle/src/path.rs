//! Paths inside a bundle, parsed once.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::quote::Quoted;

/// Longest path in bytes.
pub const MAX_PATH_BYTES: usize = 1_024;
/// Longest single segment in bytes: what common file systems can store (`NAME_MAX`).
pub const MAX_SEGMENT_BYTES: usize = 255;

/// The path of an entry inside a bundle: relative, with `/` between segments, and only one spelling per place.
///
/// Never empty, absolute or ending in `/`; without `.`, `..` and empty segments, backslashes, NUL and other control
/// characters; at most [`MAX_PATH_BYTES`] in all and [`MAX_SEGMENT_BYTES`] a segment. So two different values never
/// mean the same file, and joining one to a folder never leaves that folder. Values order by their bytes, which is
/// the order of entries in a bundle.
///
/// Cloning is cheap: cached trees, overlays and bundles share one allocation per path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BundlePath(Arc<str>);

impl BundlePath {
    /// Parses a path as people write it in a manifest: like [`FromStr`], but leading `./` are dropped, since `./tool.py`
    /// and `tool.py` are both common.
    pub fn from_manifest(text: &str) -> Result<Self, PathError> {
        without_leading_dot(text).parse()
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The segments from the root down.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The last segment.
    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.as_str(), |(_, name)| name)
    }

    /// The folder that holds this entry; `None` for an entry in the root.
    pub fn folder(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(folder, _)| folder)
    }

    /// What follows the last dot of the file name; `None` without a dot, and for names like `.env`.
    pub fn extension(&self) -> Option<&str> {
        match self.file_name().rsplit_once('.') {
            Some(("", _)) | None => None,
            Some((_, extension)) => Some(extension),
        }
    }

    /// Every folder above this entry, from the root down: `a/b/c` gives `a`, `a/b`.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(at, _)| &self.0[..at])
    }

    /// This path as a folder, and `below` in it. Fails only when the whole is too long.
    pub fn join(&self, below: &BundlePath) -> Result<Self, PathError> {
        format!("{self}/{below}").parse()
    }

    /// The path relative to `folder`; `None` when this entry is not below it.
    pub fn below(&self, folder: &BundlePath) -> Option<Self> {
        let rest = self.0.strip_prefix(folder.as_str())?.strip_prefix('/')?;
        Some(Self(rest.into()))
    }
}

/// Drops every `./` at the start.
pub(crate) fn without_leading_dot(mut text: &str) -> &str {
    while let Some(rest) = text.strip_prefix("./") {
        text = rest;
    }
    text
}

impl FromStr for BundlePath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match broken_rule(text) {
            None => Ok(Self(text.into())),
            Some(rule) => Err(PathError {
                path: text.to_owned(),
                rule,
            }),
        }
    }
}

fn broken_rule(text: &str) -> Option<PathRule> {
    if text.is_empty() {
        return Some(PathRule::Empty);
    }
    if text.len() > MAX_PATH_BYTES {
        return Some(PathRule::TooLong { bytes: text.len() });
    }
    for character in text.chars() {
        match character {
            '\0' => return Some(PathRule::Nul),
            '\\' => return Some(PathRule::Backslash),
            other if other.is_control() => return Some(PathRule::Control),
            _ => {}
        }
    }
    if text.starts_with('/') || has_drive_letter(text) {
        return Some(PathRule::Absolute);
    }
    text.split('/').find_map(|segment| match segment {
        "" if text.ends_with('/') && !text.contains("//") => Some(PathRule::TrailingSlash),
        "" => Some(PathRule::EmptySegment),
        "." => Some(PathRule::DotSegment),
        ".." => Some(PathRule::ParentSegment),
        long if long.len() > MAX_SEGMENT_BYTES => Some(PathRule::SegmentTooLong { bytes: long.len() }),
        _ => None,
    })
}

fn has_drive_letter(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    matches!(first.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic())
}

impl TryFrom<String> for BundlePath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl TryFrom<&str> for BundlePath {
    type Error = PathError;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<BundlePath> for String {
    fn from(path: BundlePath) -> Self {
        path.as_str().to_owned()
    }
}

impl AsRef<str> for BundlePath {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

/// Lets maps keyed by paths be asked for a `&str`.
impl Borrow<str> for BundlePath {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for BundlePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for BundlePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), out)
    }
}

/// Text that is no path of a bundle, and the rule that it breaks. The message never shows raw control characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {rule}", Quoted(path))]
pub struct PathError {
    /// The text as it was given.
    pub path: String,
    /// The first rule it breaks.
    pub rule: PathRule,
}

/// The rules of [`BundlePath`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathRule {
    /// A path has at least one character.
    #[error("is empty: a path needs at least one character")]
    Empty,
    /// Paths are relative to the bundle's root.
    #[error("is absolute: paths are relative, so leave out the leading `/` or drive letter")]
    Absolute,
    /// Paths end in a file name.
    #[error("ends in `/`: a file's path ends in its name")]
    TrailingSlash,
    /// `a//b` would be a second spelling of `a/b`.
    #[error("has an empty segment (`//`)")]
    EmptySegment,
    /// `a/./b` would be a second spelling of `a/b`.
    #[error("has a `.` segment")]
    DotSegment,
    /// `..` could leave the root.
    #[error("has a `..` segment, which could leave its root")]
    ParentSegment,
    /// Some systems would take it for a separator.
    #[error("has a backslash: write `/` between folders")]
    Backslash,
    /// No file system stores NUL in a name.
    #[error("has a NUL character")]
    Nul,
    /// Control characters, line breaks among them, would forge lines in logs and lists.
    #[error("has a control character")]
    Control,
    /// See [`MAX_SEGMENT_BYTES`].
    #[error("has a segment of {bytes} bytes; at most {MAX_SEGMENT_BYTES} are allowed")]
    SegmentTooLong {
        /// Its length.
        bytes: usize,
    },
    /// See [`MAX_PATH_BYTES`].
    #[error("is {bytes} bytes long; at most {MAX_PATH_BYTES} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

#[cfg(test)]
mod tests;
