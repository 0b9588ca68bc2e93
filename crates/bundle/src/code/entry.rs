use std::fmt;

use serde_json::{Map, Value};

use super::{GithubSource, InlineSource, LocalSource, RefSource, github, inline, local, workspace};
use crate::{
    field::FieldError,
    object::{self, MOST_FAULTS, Shape, kind, place},
    quote::Escaped,
};

const KINDS: &str = "`inline`, `local`, `github` or `ref`";
const NO_KIND: &str = "no known source";

const SHAPE: Shape = Shape {
    fields: &["inline", "local", "github", "ref"],
    hints: &[
        (
            "kind",
            "the kind of a source is its key, as in `github: {repo: …}`",
        ),
        (
            "git",
            "did you mean `github`? Repositories are read from the host that the operator is configured for",
        ),
        ("repo", "it belongs into a `github` source"),
        ("content", "it belongs into an `inline` source"),
        ("path", "it belongs into a source, as in `local: {path: …}`"),
    ],
};

/// One entry of `code.sources`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceEntry {
    /// Where it stands: `code.sources[1]`, or `code` when the block is a string.
    pub field: String,
    /// Its kind, if it has exactly one.
    pub kind: Option<SourceKind>,
    /// A short text to recognise it by: `github octo/tools@main:src`. Never holds content.
    pub summary: String,
    /// The source, or everything that is wrong with it.
    pub source: Result<Source, Vec<FieldError>>,
}

/// The four kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// Content in the manifest.
    Inline,
    /// Files of the workspace.
    Local,
    /// Files of a repository.
    Github,
    /// Another code workspace.
    Ref,
}

impl SourceKind {
    const ALL: [Self; 4] = [Self::Inline, Self::Local, Self::Github, Self::Ref];

    /// The kind as it is written in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Local => "local",
            Self::Github => "github",
            Self::Ref => "ref",
        }
    }

    fn shape(self) -> &'static Shape {
        match self {
            Self::Inline => &inline::SHAPE,
            Self::Local => &local::SHAPE,
            Self::Github => &github::SHAPE,
            Self::Ref => &workspace::REF_SHAPE,
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A source that was found to be well-formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Content in the manifest.
    Inline(InlineSource),
    /// Files of the workspace.
    Local(LocalSource),
    /// Files of a repository.
    Github(GithubSource),
    /// Another code workspace.
    Ref(RefSource),
}

impl SourceEntry {
    /// Reads an entry of the list.
    pub(super) fn read(field: String, entry: &Value) -> Self {
        let Value::Object(map) = entry else {
            let message = format!("must be an object with {KINDS}, not {}", kind(entry));
            let errors = vec![FieldError::new(&field, message)];
            return Self {
                field,
                kind: None,
                summary: NO_KIND.to_owned(),
                source: Err(errors),
            };
        };
        let kinds: Vec<SourceKind> = SourceKind::ALL
            .into_iter()
            .filter(|kind| map.contains_key(kind.as_str()))
            .collect();
        let mut errors = Vec::new();
        if kinds.len() > 1 {
            let names: Vec<_> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
            let hint = match kinds.iter().find(|kind| map[kind.as_str()].is_null()) {
                Some(kind) => format!("there is nothing below `{kind}`: indent its fields one step more"),
                None => "each source is an entry of its own".to_owned(),
            };
            let message = format!("has {}: {hint}", names.join(" and "));
            errors.push(FieldError::new(&field, message));
        }
        if map.is_empty() {
            errors.push(FieldError::new(
                &field,
                format!("is empty: it needs exactly one of {KINDS}"),
            ));
        }
        errors.extend(unknown_keys(&field, map, kinds.first().copied()));
        let mut source = None;
        for kind in &kinds {
            match read_kind(*kind, &place(&field, kind.as_str()), &map[kind.as_str()]) {
                Ok(read) => source = Some(read),
                Err(more) => errors.extend(more),
            }
        }
        let (kind, summary) = match kinds[..] {
            [kind] => (Some(kind), summary(kind, &map[kind.as_str()])),
            _ => (None, NO_KIND.to_owned()),
        };
        Self {
            field,
            kind,
            summary,
            source: source.filter(|_| errors.is_empty()).ok_or(errors),
        }
    }

    /// Reads a block that is short for one `ref`.
    pub(super) fn read_ref(field: &str, block: &Value) -> Self {
        let kind = SourceKind::Ref;
        Self {
            field: field.to_owned(),
            kind: Some(kind),
            summary: summary(kind, block),
            source: read_kind(kind, field, block),
        }
    }
}

/// Keys beside the kind. The usual reason is a body that is not indented below it.
fn unknown_keys(field: &str, map: &Map<String, Value>, kind: Option<SourceKind>) -> Vec<FieldError> {
    let message = |key: &str| match kind {
        Some(kind) if kind.shape().fields.contains(&key) => {
            format!("belongs into `{kind}`: indent it one step more")
        }
        _ => object::unknown(key, &SHAPE),
    };
    map.keys()
        .filter(|key| !SHAPE.fields.contains(&key.as_str()))
        .take(MOST_FAULTS)
        .map(|key| FieldError::new(place(field, key), message(key)))
        .collect()
}

fn read_kind(kind: SourceKind, field: &str, value: &Value) -> Result<Source, Vec<FieldError>> {
    match kind {
        SourceKind::Inline => inline::read(field, value).map(Source::Inline),
        SourceKind::Local => local::read(field, value).map(Source::Local),
        SourceKind::Github => github::read(field, value).map(Source::Github),
        SourceKind::Ref => workspace::read_ref(field, value).map(Source::Ref),
    }
}

/// From the texts as they are written, so that a source can be recognised however wrong it is.
fn summary(kind: SourceKind, value: &Value) -> String {
    let text = |before: &str, key: &str| {
        value[key]
            .as_str()
            .map(|text| format!("{before}{}", Escaped(text)))
    };
    let details = match (kind, value) {
        (SourceKind::Github, _) => [text(" ", "repo"), text("@", "ref"), text(":", "path")],
        (_, Value::String(path)) => [Some(format!(" {}", Escaped(path))), None, None],
        _ => [text(" ", "path"), None, None],
    };
    details
        .into_iter()
        .flatten()
        .fold(kind.to_string(), |summary, detail| summary + &detail)
}
