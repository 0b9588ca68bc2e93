use serde_json::Value;

use super::{GitReference, Repository, Target};
use crate::{
    field::FieldError,
    object::{Object, Shape},
    path::{BundlePath, PathError, without_leading_dot},
};

pub(super) const SHAPE: Shape = Shape {
    fields: &["repo", "ref", "path", "as"],
    hints: &[
        (
            "url",
            "did you mean `repo`? It is `owner/name`; the host is the operator's configuration",
        ),
        ("owner", "write `repo: owner/name`"),
        ("name", "write `repo: owner/name`"),
        ("branch", "write the branch in `ref`"),
        ("tag", "write the tag in `ref`"),
        ("sha", "write the commit's full id in `ref`"),
        ("commit", "write the commit's full id in `ref`"),
        ("revision", "write it in `ref`"),
        ("token", "credentials never stand in a manifest"),
        ("glob", "only `local` sources have a glob"),
    ],
};

/// A `github` source: files of a repository at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GithubSource {
    /// Which repository.
    pub repository: Repository,
    /// Which commit.
    pub reference: GitReference,
    /// The folder or file of the repository that is taken; `None` is the whole repository.
    pub path: Option<BundlePath>,
    /// Where it lands in the bundle.
    pub target: Target,
}

pub(super) fn read(field: &str, value: &Value) -> Result<GithubSource, Vec<FieldError>> {
    let mut issues = Vec::new();
    let Some(object) = Object::read(field, value, &SHAPE, &mut issues) else {
        return Err(issues);
    };
    object.require("repo", &mut issues);
    let repository = object.parsed("repo", &mut issues);
    object.require("ref", &mut issues);
    let reference = object.parsed("ref", &mut issues);
    let path = object.string("path", &mut issues).and_then(|text| {
        parse_path(text).unwrap_or_else(|error| {
            issues.push(FieldError::new(object.place("path"), error));
            None
        })
    });
    let target = object.parsed("as", &mut issues).unwrap_or_default();
    match (repository, reference) {
        (Some(repository), Some(reference)) if issues.is_empty() => Ok(GithubSource {
            repository,
            reference,
            path,
            target,
        }),
        _ => Err(issues),
    }
}

/// A path inside the repository. A folder may end in `/`; nothing, `.` and `./` are the whole repository.
fn parse_path(text: &str) -> Result<Option<BundlePath>, PathError> {
    let place = without_leading_dot(text);
    match place
        .strip_suffix('/')
        .filter(|folder| !folder.is_empty())
        .unwrap_or(place)
    {
        "" | "." => Ok(None),
        path => path.parse().map(Some),
    }
}
