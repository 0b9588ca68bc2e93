//! The forms in which a block may be given: its fields directly, below `inline`, or elsewhere through `ref` or `file` (AIP-17,
//! "Composition pattern").

use crate::{
    code::WorkspacePath,
    field::FieldError,
    object::{Object, Shape},
    path::PathError,
    quote::Quoted,
};

/// The forms that stand alone.
const FORMS: [(&str, Form); 3] = [("inline", Form::Inline), ("ref", Form::Ref), ("file", Form::File)];

/// How a block was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its fields, directly.
    Direct,
    /// Its fields, below `inline`.
    Inline,
    /// Something that stands for the block by name.
    Ref,
    /// A file that holds the block.
    File,
}

impl Form {
    /// The form of a block; none, with an issue, if there are several at once.
    pub(crate) fn of(
        field: &str,
        object: &Object<'_>,
        shape: &Shape,
        issues: &mut Vec<FieldError>,
    ) -> Option<Self> {
        let is_form = |key: &&str| FORMS.iter().any(|(name, _)| name == key);
        let given: Vec<_> = FORMS
            .into_iter()
            .filter(|(name, _)| object.get(name).is_some())
            .collect();
        let direct = shape
            .fields
            .iter()
            .find(|key| !is_form(key) && object.get(key).is_some());
        match (&given[..], direct) {
            ([], _) => Some(Self::Direct),
            ([(_, form)], None) => Some(*form),
            ([(name, _), ..], _) => {
                let other = given
                    .get(1)
                    .map(|(name, _)| name)
                    .or(direct)
                    .copied()
                    .unwrap_or_default();
                let message = format!("has `{name}` and `{other}`: `{name}` stands alone");
                issues.push(FieldError::new(field, message));
                None
            }
        }
    }
}

/// What the text of a block's `ref` stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reference<'a> {
    /// A file, as in `./RUNNER.md`.
    File(&'a str),
    /// A name of a registry, as in `@owner/name`. There is none here.
    Registry,
    /// A file outside, as in `../shared/RUNNER.md`.
    Outside,
    /// Any other name.
    Name(&'a str),
}

impl<'a> Reference<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        if text.starts_with('@') || text.contains("://") {
            Self::Registry
        } else if text.split('/').any(|segment| segment == "..") {
            Self::Outside
        } else if text.contains('/') || is_block_file(text) {
            Self::File(text)
        } else {
            Self::Name(text)
        }
    }
}

/// Reads the path of a file that holds a block.
pub(crate) fn block_file(field: &str, text: &str, issues: &mut Vec<FieldError>) -> Option<WorkspacePath> {
    let wrong = match Reference::of(text) {
        Reference::Registry => {
            "there is no registry of blocks here: write the path of a file, as in `./RUNNER.md`"
        }
        Reference::Outside => "it has to stand below the manifest's own folder, as in `./RUNNER.md`",
        Reference::File(_) | Reference::Name(_) => match text.parse() {
            Ok(path) => return Some(path),
            Err(error) => {
                let error: PathError = error;
                issues.push(FieldError::new(field, error));
                return None;
            }
        },
    };
    issues.push(FieldError::new(
        field,
        format!("{} can't be read: {wrong}", Quoted(text)),
    ));
    None
}

/// Whether a name has an extension that files with blocks have.
fn is_block_file(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| {
        ["md", "yaml", "yml"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    })
}
