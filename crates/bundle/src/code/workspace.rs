//! Paths of the workspace, and the sources that are other workspaces: `ref`.

use std::{fmt, str::FromStr};

use serde_json::Value;

use crate::{
    field::FieldError,
    object::{Object, Shape, kind, place},
    path::{BundlePath, PathError, PathRule, without_leading_dot},
    quote::Quoted,
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
    /// The place of a path below the root; `None` for the root itself.
    pub fn of(path: Option<BundlePath>) -> Self {
        Self(path)
    }

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

/// A `ref` source: everything that another code workspace consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefSource {
    /// Which workspace.
    pub path: WorkspacePath,
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
pub(super) fn read_object<'a>(
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
