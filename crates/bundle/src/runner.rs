//! The `runner` block (AIP-17): the process boundary that a body runs behind.

mod block;
mod handle;
mod limits;
mod merge;
mod needs;

use serde_json::Value;

pub(crate) use block::SHAPE as BLOCK_SHAPE;
pub use block::{Engine, RunnerBlock};
pub use handle::{DEFAULT_MEMORY_MB, DEFAULT_TIMEOUT_MS, ResolvedLimits, ResolvedNeeds, RunnerHandle};
pub use limits::Limits;
pub use needs::Needs;

use crate::{
    code::WorkspacePath,
    field::FieldError,
    form::{Form, Reference, block_file},
    language::Language,
    object::{Object, PASTED, Shape},
    path::PathError,
    quote::Quoted,
};

pub(crate) const FIELD: &str = "runner";
const INLINE_FIELD: &str = "runner.inline";

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
    /// The name of a `RunnerTemplate`: short for engine `sandbox` with that `image`, which is what templates are.
    Ref(String),
    /// A file that holds the block, relative to the folder of the manifest that names it.
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
    /// A block in a file has to be read first: `file` is an error here.
    pub fn resolve(&self, run_language: Language) -> Result<RunnerHandle, Vec<FieldError>> {
        match self {
            Self::Block(block) => block.resolve(run_language),
            Self::Ref(name) => RunnerBlock::of_template(name).resolve(run_language),
            Self::File(_) => {
                let message = "stands for a block that has to be read before it can be used";
                Err(vec![FieldError::new(format!("{FIELD}.file"), message)])
            }
        }
    }
}

/// Reads a `runner` block, and finds every fault in it.
pub fn define_runner(block: &Value) -> Result<RunnerDefinition, Vec<FieldError>> {
    let mut issues = Vec::new();
    let Some(object) = Object::read(FIELD, block, &SHAPE, &mut issues) else {
        return Err(issues);
    };
    let definition = match Form::of(FIELD, &object, &SHAPE, &mut issues) {
        Some(Form::Direct) => Some(RunnerDefinition::Block(RunnerBlock::read(
            &object,
            FIELD,
            &mut issues,
        ))),
        Some(Form::Inline) => read_inline(&object, &mut issues),
        Some(Form::Ref) => object.string("ref", &mut issues).and_then(|text| {
            let name = read_ref(text);
            name.map_err(|message| issues.push(FieldError::new(object.place("ref"), message)))
                .ok()
        }),
        Some(Form::File) => object
            .string("file", &mut issues)
            .and_then(|text| block_file(&object.place("file"), text, &mut issues))
            .map(RunnerDefinition::File),
        None => None,
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

fn read_ref(text: &str) -> Result<RunnerDefinition, String> {
    let hint = match Reference::of(text) {
        Reference::File(file) => {
            return file
                .parse()
                .map(RunnerDefinition::File)
                .map_err(|error: PathError| error.to_string());
        }
        Reference::Name(name) if is_template_name(name) => return Ok(RunnerDefinition::Ref(name.to_owned())),
        Reference::Name(_) => "a name has lower-case letters, digits, `-` and `.`",
        Reference::Registry => {
            "there is no registry of runners here: use the name of a RunnerTemplate, or write the block itself"
        }
        Reference::Outside => {
            "a file of the workspace stands below the manifest's own folder, as in `{file: ./RUNNER.md}`"
        }
    };
    Err(format!(
        "{} is not the name of a RunnerTemplate: {hint}",
        Quoted(text)
    ))
}

/// The rule of Kubernetes for names of objects (RFC 1123 subdomain).
fn is_template_name(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && text.split('.').all(|label| {
            let bytes = label.as_bytes();
            let ends_well = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            bytes
                .iter()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
                && ends_well(bytes.first())
                && ends_well(bytes.last())
        })
}

#[cfg(test)]
mod tests;
