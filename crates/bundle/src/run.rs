//! The `run` field (AIP-26): what is started once the bundle is in place.

mod detect;
mod interpreter;
mod resolve;

use std::fmt;

use serde_json::Value;

pub use resolve::{ResolvedRun, RunError};

use crate::{
    field::FieldError,
    language::Language,
    object::{Object, PASTED, Shape, kind, string, strings},
    path::{BundlePath, PathRule},
};
use detect::file_path;
use interpreter::Interpreter;

/// Longest single argument in bytes that Linux starts a program with (`MAX_ARG_STRLEN`, without the final NUL).
const LONGEST_ARGUMENT: usize = 131_071;

/// Most bytes of all arguments of a command together. The command stands in the manifest, in its status and in the pod, each of which the
/// API server keeps only up to about 1.5 MiB; Linux itself would start programs with some more.
pub const LONGEST_COMMAND: usize = 131_072;

const FIELD: &str = "run";

const SHAPE: Shape = Shape {
    fields: &["file", "exec", "shell"],
    hints: &[
        ("kind", PASTED),
        ("name", PASTED),
        ("cmd", "write the program and its arguments as a list in `exec`"),
        ("args", "write the program and its arguments as a list in `exec`"),
        ("argv", "did you mean `exec`?"),
        ("command", "write a list in `exec`, or a command line in `shell`"),
        ("path", "did you mean `file`?"),
        ("entry", "did you mean `file`?"),
    ],
};

/// What to run, and how it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What to run.
    pub command: Command,
    /// How it was written. Only a string leaves the form to be detected.
    pub written: Written,
}

/// The three forms of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A file of the bundle, run by the interpreter that its extension stands for.
    File(BundlePath),
    /// A program and its arguments, as they are.
    Exec(Vec<String>),
    /// A command line for `bash`.
    Shell(String),
}

/// How a command was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// `run: tool.py`, or a command line.
    Text,
    /// `run: [python, tool.py]`
    List,
    /// `run: {file: tool.py}`
    Object,
}

/// The name of a command's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// See [`Command::File`].
    File,
    /// See [`Command::Exec`].
    Exec,
    /// See [`Command::Shell`].
    Shell,
}

impl Form {
    /// The name as it is written in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Exec => "exec",
            Self::Shell => "shell",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl Run {
    /// The form of the command.
    pub fn form(&self) -> Form {
        match self.command {
            Command::File(_) => Form::File,
            Command::Exec(_) => Form::Exec,
            Command::Shell(_) => Form::Shell,
        }
    }

    /// The language that a file's extension stands for; [`Language::Multi`] for everything else, shell scripts too.
    pub fn language(&self) -> Result<Language, RunError> {
        match &self.command {
            Command::Exec(_) | Command::Shell(_) => Ok(Language::Multi),
            Command::File(path) => match Interpreter::of(path) {
                Some(interpreter) => Ok(interpreter.language()),
                None => Err(RunError::Extension {
                    path: path.clone(),
                    near: Vec::new(),
                }),
            },
        }
    }
}

/// Reads a `run` field: a string whose form is detected, a list, or an object that says its form.
pub fn define_run(block: &Value) -> Result<Run, Vec<FieldError>> {
    let mut issues = Vec::new();
    let (command, written) = match block {
        Value::String(text) => (read_text(text, &mut issues), Written::Text),
        Value::Array(_) => (Some(read_exec(FIELD, block, &mut issues)), Written::List),
        Value::Object(_) => (read_object(block, &mut issues), Written::Object),
        other => {
            let message = format!(
                "must be a string, a list of strings or an object, not {}",
                kind(other)
            );
            issues.push(FieldError::new(FIELD, message));
            return Err(issues);
        }
    };
    match command {
        Some(command) if issues.is_empty() => Ok(Run { command, written }),
        _ => Err(issues),
    }
}

fn read_text(text: &str, issues: &mut Vec<FieldError>) -> Option<Command> {
    match file_path(text) {
        Some(path) if !path.is_empty() => read_file(FIELD, &path, issues),
        _ => read_shell(FIELD, text, issues),
    }
}

fn read_object(block: &Value, issues: &mut Vec<FieldError>) -> Option<Command> {
    let object = Object::read(FIELD, block, &SHAPE, issues)?;
    let forms: Vec<(&str, &Value)> = SHAPE
        .fields
        .iter()
        .filter_map(|form| Some((*form, object.get(form)?)))
        .collect();
    if forms.len() != 1 && issues.is_empty() {
        issues.push(FieldError::new(
            FIELD,
            "must have exactly one of `file`, `exec` and `shell`",
        ));
    }
    let mut command = None;
    for (form, value) in forms {
        let field = object.place(form);
        command = match form {
            "exec" => Some(read_exec(&field, value, issues)),
            "file" => string(&field, value, issues).and_then(|path| read_file(&field, path, issues)),
            _ => string(&field, value, issues).and_then(|line| read_shell(&field, line, issues)),
        };
    }
    command
}

fn read_file(field: &str, text: &str, issues: &mut Vec<FieldError>) -> Option<Command> {
    match BundlePath::from_manifest(text) {
        Ok(path) => return Some(Command::File(path)),
        Err(error) if error.rule == PathRule::Absolute => {
            let message =
                format!("{error}; a program of the image is run by a list, as in `[\"/bin/true\"]`");
            issues.push(FieldError::new(field, message));
        }
        Err(error) => issues.push(FieldError::new(field, error)),
    }
    None
}

fn read_shell(field: &str, line: &str, issues: &mut Vec<FieldError>) -> Option<Command> {
    if line.trim().is_empty() {
        issues.push(FieldError::new(field, "is empty: there is nothing to run"));
        return None;
    }
    if let Some(message) = wrong_argument(line) {
        issues.push(FieldError::new(field, message));
    }
    Some(Command::Shell(line.to_owned()))
}

fn read_exec(field: &str, value: &Value, issues: &mut Vec<FieldError>) -> Command {
    let argv = strings(field, value, issues, wrong_argument);
    if value.as_array().is_some_and(Vec::is_empty) {
        issues.push(FieldError::new(field, "is empty: the program's name is missing"));
    }
    if let Some(message) = long_command(&argv) {
        issues.push(FieldError::new(field, message));
    }
    if argv.first().is_some_and(String::is_empty) {
        issues.push(FieldError::new(
            format!("{field}[0]"),
            "is empty: it is the program's name",
        ));
    }
    Command::Exec(argv)
}

/// Why a command is too long as a whole.
pub fn long_command(argv: &[String]) -> Option<String> {
    let bytes: usize = argv.iter().map(String::len).sum();
    (bytes > LONGEST_COMMAND).then(|| {
        format!(
            "has {bytes} bytes in all its arguments; a command may have at most {LONGEST_COMMAND}: put the text into a file of the \
             bundle"
        )
    })
}

/// Why no program could be started with an argument.
fn wrong_argument(argument: &str) -> Option<String> {
    if let Some(place) = argument.find('\0') {
        return Some(format!("has a NUL character at byte {place}"));
    }
    (argument.len() > LONGEST_ARGUMENT).then(|| {
        format!(
            "is {} bytes long; a program can be started with at most {LONGEST_ARGUMENT} in one argument: \
             put the text into a file of the bundle",
            argument.len()
        )
    })
}

#[cfg(test)]
mod tests;
