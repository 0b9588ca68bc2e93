//! The `code` block (AIP-26): which sources make up a bundle.

mod entry;
mod github;
mod inline;
mod local;
mod pin;
mod reference;
mod repository;
mod target;
mod workspace;

use serde_json::Value;

pub use entry::{Source, SourceEntry, SourceKind};
pub use github::GithubSource;
pub use inline::InlineSource;
pub use local::{LocalPattern, LocalPatternError, LocalSource};
pub use reference::{CacheClass, CommitId, CommitIdError, GitReference, GitReferenceError};
pub use repository::{Repository, RepositoryError};
pub use target::{Misplaced, Target};
pub use workspace::{RefSource, WorkspacePath};

use crate::{
    field::FieldError,
    object::{Object, PASTED, Shape, kind},
};

/// Sources that one block may have.
pub const MAX_SOURCES: usize = 64;
/// Bytes that the contents of all `inline` sources may have together. They are stored in the object itself.
pub const MAX_INLINE_BYTES: usize = 512 * 1_024;

const SHAPE: Shape = Shape {
    fields: &["sources"],
    hints: &[
        ("kind", PASTED),
        ("name", PASTED),
        ("code", "the block's contents stand directly below `code`"),
        ("inline", "a source is an entry of the list `sources`"),
        ("local", "a source is an entry of the list `sources`"),
        ("github", "a source is an entry of the list `sources`"),
        ("ref", "a source is an entry of the list `sources`"),
    ],
};

/// A `code` block in which at least the list of sources could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The sources in their order, also those that are wrong: so that the others can still be tried.
    pub sources: Vec<SourceEntry>,
    /// What is wrong with the block as a whole and with no source in particular.
    pub errors: Vec<FieldError>,
}

impl Code {
    /// Everything that is wrong, in the block and in its sources.
    pub fn all_errors(&self) -> impl Iterator<Item = &FieldError> {
        self.errors.iter().chain(
            self.sources
                .iter()
                .filter_map(|entry| entry.source.as_ref().err())
                .flatten(),
        )
    }
}

/// Reads a `code` block. A string is short for one `ref` source.
///
/// Finds every fault, not only the first. Those of one source are in its entry, those of the whole block in
/// [`Code::errors`]; the result is an error only when there is no list of sources to go through at all.
pub fn define_code(block: &Value) -> Result<Code, Vec<FieldError>> {
    const FIELD: &str = "code";
    let mut errors = Vec::new();
    match block {
        Value::Object(_) => {}
        Value::String(_) => {
            return Ok(Code {
                sources: vec![SourceEntry::read_ref(FIELD, block)],
                errors,
            });
        }
        other => {
            let message = format!(
                "must be an object with `sources`, or the path of another code workspace as a string, not {}",
                kind(other)
            );
            return Err(vec![FieldError::new(FIELD, message)]);
        }
    }
    let Some(object) = Object::read(FIELD, block, &SHAPE, &mut errors) else {
        return Err(errors);
    };
    object.require("sources", &mut errors);
    match object.get("sources") {
        Some(entries) => read_list(&object.place("sources"), entries, errors),
        None => Err(errors),
    }
}

/// Reads the `source` of a lean module (AIP-26, "CODE.md — lean composable form"): one source, or a list of them.
pub(crate) fn define_source(block: &Value) -> Result<Code, Vec<FieldError>> {
    const FIELD: &str = "source";
    match block {
        Value::Array(_) => read_list(FIELD, block, Vec::new()),
        Value::Object(map) if map.contains_key("origin") => {
            let message = "belongs to a manifest with `kind: code-workspace`; in a lean module `source` is what its files are, as in \
                           `{local: ./search.py}`";
            Err(vec![FieldError::new("source.origin", message)])
        }
        _ => Ok(Code {
            sources: vec![SourceEntry::read(FIELD.to_owned(), block)],
            errors: Vec::new(),
        }),
    }
}

fn read_list(field: &str, entries: &Value, mut errors: Vec<FieldError>) -> Result<Code, Vec<FieldError>> {
    let entries = match entries {
        Value::Array(entries) if !entries.is_empty() => entries,
        other => {
            let found = if other.is_array() {
                "an empty one"
            } else {
                kind(other)
            };
            let message = format!("must be a list of at least one source, not {found}");
            errors.push(FieldError::new(field, message));
            return Err(errors);
        }
    };
    errors.extend(over_limits(entries).map(|message| FieldError::new(field, message)));
    let sources = entries
        .iter()
        .take(MAX_SOURCES)
        .enumerate()
        .map(|(index, entry)| SourceEntry::read(format!("{field}[{index}]"), entry))
        .collect();
    Ok(Code { sources, errors })
}

/// The limits that no source breaks alone.
fn over_limits(entries: &[Value]) -> impl Iterator<Item = String> {
    let inline_bytes: usize = entries
        .iter()
        .filter_map(|entry| entry["inline"]["content"].as_str())
        .map(str::len)
        .sum();
    let too_many = (entries.len() > MAX_SOURCES)
        .then(|| format!("has {} sources; at most {MAX_SOURCES} are allowed", entries.len()));
    let too_large = (inline_bytes > MAX_INLINE_BYTES).then(|| {
        format!(
            "has {inline_bytes} bytes of inline content; at most {MAX_INLINE_BYTES} are allowed, since the API server \
             refuses objects of about 1.5 MiB. Take large files from a `github` or `local` source; above 256 KiB \
             `kubectl apply` also needs `--server-side`"
        )
    });
    too_many.into_iter().chain(too_large)
}

#[cfg(test)]
mod tests;
