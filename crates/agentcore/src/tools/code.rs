//! `executeCode`: which language, and what runs it.

use std::borrow::Cow;

use super::{Arguments, Tool, needed};
use crate::validation::{Faults, ValidationError};

/// A language of the service model. Each has its own context in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// `python`
    Python,
    /// `javascript`
    JavaScript,
    /// `typescript`
    TypeScript,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Python, Self::JavaScript, Self::TypeScript];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
        }
    }
}

/// What runs code, if the client wants to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Runtime {
    /// `nodejs`
    NodeJs,
    /// `deno`
    Deno,
    /// `python`
    Python,
}

impl Runtime {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NodeJs, Self::Deno, Self::Python];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeJs => "nodejs",
            Self::Deno => "deno",
            Self::Python => "python",
        }
    }

    fn runs(self, language: Language) -> bool {
        (self == Self::Python) == (language == Language::Python)
    }
}

/// The arguments of `executeCode`. Language and runtime go together; whether there is such a runtime is for the caller to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteCode<'a> {
    /// As the client wrote it.
    pub code: Cow<'a, str>,
    /// Python if the client does not say.
    pub language: Language,
    /// Whether to begin with an empty context.
    pub clear_context: bool,
    /// `None` for whatever runs the language.
    pub runtime: Option<Runtime>,
}

pub(super) fn checked(arguments: Arguments<'_>) -> Result<ExecuteCode<'_>, ValidationError> {
    let code = needed(Tool::ExecuteCode, "code", arguments.code)?;
    let mut faults = Faults::default();
    let language = arguments.language.map_or(Language::Python, |text| {
        one_of(
            "arguments.language",
            &text.0,
            &Language::ALL,
            Language::name,
            &mut faults,
        )
        .unwrap_or(Language::Python)
    });
    let runtime = arguments.runtime.and_then(|text| {
        one_of(
            "arguments.runtime",
            &text.0,
            &Runtime::ALL,
            Runtime::name,
            &mut faults,
        )
    });
    faults.into_result(())?;
    if let Some(runtime) = runtime
        && !runtime.runs(language)
    {
        let message = format!(
            "{} does not run {}: python runs python, nodejs and deno run javascript and typescript",
            runtime.name(),
            language.name()
        );
        return Err(ValidationError::field("arguments.runtime", &message));
    }
    Ok(ExecuteCode {
        code: code.0,
        language,
        clear_context: arguments.clear_context.unwrap_or(false),
        runtime,
    })
}

fn one_of<T: Copy>(
    member: &str,
    text: &str,
    all: &[T],
    name: fn(T) -> &'static str,
    faults: &mut Faults,
) -> Option<T> {
    let found = all.iter().copied().find(|choice| name(*choice) == text);
    if found.is_none() {
        faults.add(member, &super::choices(all, name));
    }
    found
}
