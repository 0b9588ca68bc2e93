//! The `runner` block (AIP-17): the process boundary that a body runs behind.

mod block;
mod handle;
mod limits;
mod needs;

use serde_json::Value;

pub use block::{Engine, RunnerBlock};
pub use handle::{DEFAULT_MEMORY_MB, DEFAULT_TIMEOUT_MS, ResolvedLimits, ResolvedNeeds, RunnerHandle};
pub use limits::Limits;
pub use needs::Needs;

use crate::{
    code::WorkspacePath,
    field::FieldError,
    language::Language,
    object::{Object, PASTED, Shape},
    quote::Quoted,
};

const FIELD: &str = "runner";
const INLINE_FIELD: &str = "runner.inline";

/// The composition forms, which stand alone, beside the direct fields.
const FORMS: [&str; 3] = ["inline", "ref", "file"];

const SHAPE: Shape = Shape {
    fields: &["engine", "image", "needs", "limits", "inline", "ref", "file"],
    hints: &[
        ("kind", PASTED),
        ("name", PASTED),
        ("mode", "did you mean `engine`?"),
        ("language", "it belongs into `needs`"),
        ("native", "it belongs into `needs`"),
        ("npm", "it belongs into `needs`"),
        ("pip", "it belongs into `needs`"),
        ("memory_mb", "it belongs into `limits`"),
        ("timeout_ms", "it belongs into `limits`"),
        ("cpu_ms", "it belongs into `limits`"),
        ("network", "it stands beside `runner`, not in it"),
        ("secrets", "they stand beside `runner`, not in it"),
        (
            "env",
            "a body's environment comes from `secrets`, beside `runner`",
        ),
    ],
};

/// A `runner` block in one of its forms (AIP-17, "Composition pattern").
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerDefinition {
    /// The fields, whether directly or below `inline`.
    Block(RunnerBlock),
    /// The name of a `RunnerTemplate`.
    Ref(String),
    /// A file of the workspace that holds the block.
    File(WorkspacePath),
}

/// No block at all: engine `subprocess` and the default limits.
impl Default for RunnerDefinition {
    fn default() -> Self {
        Self::Block(RunnerBlock::default())
    }
}

impl RunnerDefinition {
    /// Fills in every default, and refuses what does not fit together. `run_language` is that of the `run` field;
    /// without a `run`, [`Language::Multi`].
    ///
    /// A block that stands elsewhere has to be read first: `ref` and `file` are an error here.
    pub fn resolve(&self, run_language: Language) -> Result<RunnerHandle, Vec<FieldError>> {
        let elsewhere = |form: &str| {
            let message = "stands for a block that has to be read before it can be used";
            vec![FieldError::new(format!("{FIELD}.{form}"), message)]
        };
        match self {
            Self::Block(block) => block.resolve(run_language),
            Self::Ref(_) => Err(elsewhere("ref")),
            Self::File(_) => Err(elsewhere("file")),
        }
    }
}

/// Reads a `runner` block, and finds every fault in it.
pub fn define_runner(block: &Value) -> Result<RunnerDefinition, Vec<FieldError>> {
    let mut issues = Vec::new();
    let Some(object) = Object::read(FIELD, block, &SHAPE, &mut issues) else {
        return Err(issues);
    };
    let forms: Vec<&str> = FORMS
        .into_iter()
        .filter(|form| object.get(form).is_some())
        .collect();
    let direct = SHAPE
        .fields
        .iter()
        .find(|field| !FORMS.contains(field) && object.get(field).is_some());
    let definition = match (&forms[..], direct) {
        ([], _) => Some(RunnerDefinition::Block(RunnerBlock::read(
            &object,
            FIELD,
            &mut issues,
        ))),
        (["inline"], None) => read_inline(&object, &mut issues),
        (["ref"], None) => object.string("ref", &mut issues).and_then(|text| {
            let name = template_name(text);
            name.map_err(|message| issues.push(FieldError::new(object.place("ref"), message)))
                .ok()
        }),
        (["file"], None) => object.parsed("file", &mut issues).map(RunnerDefinition::File),
        ([form, ..], _) => {
            let other = forms.get(1).or(direct).copied().unwrap_or_default();
            let message = format!("has `{form}` and `{other}`: `{form}` stands alone");
            issues.push(FieldError::new(FIELD, message));
            None
        }
    };
    match definition {
        Some(definition) if issues.is_empty() => Ok(definition),
        _ => Err(issues),
    }
}

fn read_inline(outer: &Object<'_>, issues: &mut Vec<FieldError>) -> Option<RunnerDefinition> {
    let object = Object::read(INLINE_FIELD, outer.get("inline")?, &block::SHAPE, issues)?;
    Some(RunnerDefinition::Block(RunnerBlock::read(
        &object,
        INLINE_FIELD,
        issues,
    )))
}

fn template_name(text: &str) -> Result<RunnerDefinition, String> {
    let is_name = (1..=253).contains(&text.len())
        && text.split('.').all(|label| {
            let bytes = label.as_bytes();
            let ends_well = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            bytes
                .iter()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
                && ends_well(bytes.first())
                && ends_well(bytes.last())
        });
    if is_name {
        return Ok(RunnerDefinition::Ref(text.to_owned()));
    }
    let hint = if text.starts_with('@') {
        "there is no registry of runners here: use the name of a RunnerTemplate, or write the block itself"
    } else if text.contains('/') {
        "a file of the workspace is given as `file`, as in `{file: ./RUNNER.md}`"
    } else {
        "a name has lower-case letters, digits, `-` and `.`"
    };
    Err(format!(
        "{} is not the name of a RunnerTemplate: {hint}",
        Quoted(text)
    ))
}

#[cfg(test)]
mod tests;
