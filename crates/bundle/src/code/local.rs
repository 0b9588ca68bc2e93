//! The sources that are files of the workspace: `local`.

use std::str::FromStr;

use serde_json::Value;

use super::{
    Target,
    workspace::{WorkspacePath, read_object},
};
use crate::{field::FieldError, object::Shape, path::PathError};

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalPattern {
    /// The path, in which `*`, `?` and `[…]` may stand.
    pub path: WorkspacePath,
    /// Whether it was written with a `/` at its end, so that it has to be a folder.
    pub must_be_folder: bool,
}

impl FromStr for LocalPattern {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self {
            path: text.parse()?,
            must_be_folder: text.ends_with('/'),
        })
    }
}

/// A `local` source: files of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalSource {
    /// Which files.
    pub pattern: LocalPattern,
    /// Which files of a folder.
    pub glob: Option<String>,
    /// Where they land in the bundle.
    pub target: Target,
}

pub(super) fn read(field: &str, value: &Value) -> Result<LocalSource, Vec<FieldError>> {
    if let Value::String(text) = value {
        let pattern = text
            .parse()
            .map_err(|error: PathError| vec![FieldError::new(field, error)])?;
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
    let glob = object.string("glob", &mut issues).map(str::to_owned);
    if glob.as_deref() == Some("") {
        issues.push(FieldError::new(
            object.place("glob"),
            "is empty: it would match no file, so leave it out",
        ));
    }
    match pattern {
        Some(pattern) if issues.is_empty() => Ok(LocalSource {
            pattern,
            glob,
            target,
        }),
        _ => Err(issues),
    }
}
