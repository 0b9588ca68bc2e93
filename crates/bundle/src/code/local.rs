//! The sources that are files of the workspace: `local`.

use std::str::FromStr;

use serde_json::Value;

use super::{
    Target,
    workspace::{WorkspacePath, read_object},
};
use crate::{
    field::FieldError,
    glob::{Glob, GlobError},
    object::Shape,
    path::PathError,
};

pub(super) const SHAPE: Shape = Shape {
    fields: &["path", "as", "glob"],
    hints: &[
        ("pattern", "did you mean `glob`?"),
        ("to", "did you mean `as`?"),
        ("dest", "did you mean `as`?"),
        ("target", "did you mean `as`?"),
    ],
};

/// What a `local` source takes: a file, a folder or everything that matches a pattern.
///
/// Names may have the characters of patterns in them: `pages/[id].tsx` is common. So a path that is there as it is
/// written is that file or folder, and only otherwise a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalPattern {
    /// The path as it is written.
    pub path: WorkspacePath,
    /// Whether it was written with a `/` at its end, so that it has to be a folder.
    pub must_be_folder: bool,
    /// The path as a pattern, if it has `*`, `?` or `[` in it and need not be a folder: patterns take files.
    pub glob: Option<Glob>,
}

/// Why a text is no [`LocalPattern`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocalPatternError {
    /// It is no path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// It has characters of patterns and is no pattern.
    #[error(transparent)]
    Glob(#[from] GlobError),
}

impl FromStr for LocalPattern {
    type Err = LocalPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let must_be_folder = text.ends_with('/');
        let path = text.parse()?;
        let glob = (!must_be_folder && Glob::is_pattern(text)).then(|| text.parse());
        Ok(Self {
            path,
            must_be_folder,
            glob: glob.transpose()?,
        })
    }
}

/// A `local` source: files of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalSource {
    /// Which files.
    pub pattern: LocalPattern,
    /// Which files of a folder.
    pub glob: Option<Glob>,
    /// Where they land in the bundle.
    pub target: Target,
}

pub(super) fn read(field: &str, value: &Value) -> Result<LocalSource, Vec<FieldError>> {
    if let Value::String(text) = value {
        let pattern = text
            .parse()
            .map_err(|error: LocalPatternError| vec![FieldError::new(field, error)])?;
        return Ok(LocalSource {
            pattern,
            glob: None,
            target: Target::default(),
        });
    }
    let mut issues = Vec::new();
    let object = read_object(field, value, &SHAPE, &mut issues).ok_or_else(|| issues.clone())?;
    object.require("path", &mut issues);
    let pattern = object.parsed("path", &mut issues);
    let target = object.parsed("as", &mut issues).unwrap_or_default();
    let glob = object.parsed("glob", &mut issues);
    match pattern {
        Some(pattern) if issues.is_empty() => Ok(LocalSource {
            pattern,
            glob,
            target,
        }),
        _ => Err(issues),
    }
}
