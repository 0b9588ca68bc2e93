//! The sources that read the workspace: `local` and `ref`.

use std::{fmt, str::FromStr};

use serde_json::Value;

use super::Target;
use crate::{
    field::FieldError,
    object::{Object, Shape, kind, place},
    path::{BundlePath, PathError, PathRule, without_leading_dot},
    quote::Quoted,
};

pub(super) const LOCAL_SHAPE: Shape = Shape {
    fields: &["path", "as", "glob"],
    hints: &[
        ("pattern", "did you mean `glob`?"),
        ("to", "did you mean `as`?"),
        ("dest", "did you mean `as`?"),
        ("target", "did you mean `as`?"),
    ],
};

pub(super) const REF_SHAPE: Shape = Shape {
    fields: &["path"],
    hints: &[
        ("name", "write the workspace's path, as in `ref: ./name`"),
        (
            "ref",
            "a version can't be chosen: it is the referenced workspace's own matter",
        ),
        ("as", "a referenced workspace's files keep their paths"),
    ],
};

/// A path below the root of the workspace, or that root. Its rules are those of [`BundlePath`], but leading `./` and
/// one `/` at the end are dropped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(Option<BundlePath>);

impl WorkspacePath {
    /// The path below the root; `None` for the root itself.
    pub fn below_root(&self) -> Option<&BundlePath> {
        self.0.as_ref()
    }
}

impl FromStr for WorkspacePath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if matches!(text, "." | "./") {
            return Ok(Self(None));
        }
        let place = without_leading_dot(text);
        let place = place
            .strip_suffix('/')
            .filter(|folder| !folder.is_empty())
            .unwrap_or(place);
        place.parse().map(|path| Self(Some(path)))
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => write!(out, "./{path}"),
            None => out.write_str("./"),
        }
    }
}

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

/// A `ref` source: everything that another code workspace consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefSource {
    /// Which workspace.
    pub path: WorkspacePath,
}

pub(super) fn read_local(field: &str, value: &Value) -> Result<LocalSource, Vec<FieldError>> {
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
    let object = read_object(field, value, &LOCAL_SHAPE, &mut issues).ok_or_else(|| issues.clone())?;
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

pub(super) fn read_ref(field: &str, value: &Value) -> Result<RefSource, Vec<FieldError>> {
    let mut issues = Vec::new();
    let (field, text) = match value {
        Value::String(text) => (field.to_owned(), Some(text.as_str())),
        _ => match read_object(field, value, &REF_SHAPE, &mut issues) {
            None => return Err(issues),
            Some(object) => {
                object.require("path", &mut issues);
                (place(field, "path"), object.string("path", &mut issues))
            }
        },
    };
    let path = text.and_then(|text| match ref_path(text) {
        Ok(path) => Some(path),
        Err(message) => {
            issues.push(FieldError::new(field, message));
            None
        }
    });
    match path {
        Some(path) if issues.is_empty() => Ok(RefSource { path }),
        _ => Err(issues),
    }
}

/// The object form of a source that also has a string form.
fn read_object<'a>(
    field: &'a str,
    value: &'a Value,
    shape: &Shape,
    issues: &mut Vec<FieldError>,
) -> Option<Object<'a>> {
    if value.is_object() {
        return Object::read(field, value, shape, issues);
    }
    let message = format!(
        "must be a path as a string, or an object with `path`, not {}",
        kind(value)
    );
    issues.push(FieldError::new(field, message));
    None
}

fn ref_path(text: &str) -> Result<WorkspacePath, String> {
    let last = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if last.find('@').is_some_and(|at| at > 0) {
        return Err(format!(
            "{} has a version: a `ref` takes none; a commit is pinned in a `github` source",
            Quoted(text)
        ));
    }
    text.parse::<WorkspacePath>().map_err(|error| match error.rule {
        PathRule::Absolute => format!("{error}; they start at the workspace's root"),
        _ => error.to_string(),
    })
}
