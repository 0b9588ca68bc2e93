//! The body of `InvokeCodeInterpreter`: one of nine tools, and its arguments.
//!
//! On the wire all tools share one flat structure of optional arguments. Here each tool has its own, and what it needs is there.
//! Arguments of other tools are passed over, as the model has it.

mod code;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::Deserialize;

pub use self::code::{ExecuteCode, Language, Runtime};
use crate::{
    json::{self, Blob, Object, Text},
    validation::{Faults, ValidationError},
};

/// A tool of the service model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tool {
    /// `executeCode`
    ExecuteCode,
    /// `executeCommand`
    ExecuteCommand,
    /// `readFiles`
    ReadFiles,
    /// `listFiles`
    ListFiles,
    /// `removeFiles`
    RemoveFiles,
    /// `writeFiles`
    WriteFiles,
    /// `startCommandExecution`
    StartCommandExecution,
    /// `getTask`
    GetTask,
    /// `stopTask`
    StopTask,
}

impl Tool {
    /// All of them, in the order of the service model.
    pub const ALL: [Self; 9] = [
        Self::ExecuteCode,
        Self::ExecuteCommand,
        Self::ReadFiles,
        Self::ListFiles,
        Self::RemoveFiles,
        Self::WriteFiles,
        Self::StartCommandExecution,
        Self::GetTask,
        Self::StopTask,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExecuteCode => "executeCode",
            Self::ExecuteCommand => "executeCommand",
            Self::ReadFiles => "readFiles",
            Self::ListFiles => "listFiles",
            Self::RemoveFiles => "removeFiles",
            Self::WriteFiles => "writeFiles",
            Self::StartCommandExecution => "startCommandExecution",
            Self::GetTask => "getTask",
            Self::StopTask => "stopTask",
        }
    }
}

/// A tool with what it needs. Long strings are borrowed from the body where it has no escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCall<'a> {
    /// Run code in the context of its language.
    ExecuteCode(ExecuteCode<'a>),
    /// Run a command and wait for it.
    ExecuteCommand {
        /// For a shell.
        command: Cow<'a, str>,
    },
    /// Run a command and do not wait for it.
    StartCommandExecution {
        /// For a shell.
        command: Cow<'a, str>,
    },
    /// How far a command is that nobody waits for.
    GetTask {
        /// Which.
        task_id: Cow<'a, str>,
    },
    /// End a command that nobody waits for.
    StopTask {
        /// Which.
        task_id: Cow<'a, str>,
    },
    /// Write files, all or none.
    WriteFiles {
        /// Which. Paths are as the client wrote them, and may be there twice.
        files: Vec<InputFile<'a>>,
    },
    /// Read files.
    ReadFiles {
        /// As the client wrote them.
        paths: Vec<Cow<'a, str>>,
    },
    /// List a folder.
    ListFiles {
        /// As the client wrote it; `None` for the session's own folder.
        path: Option<Cow<'a, str>>,
    },
    /// Remove files.
    RemoveFiles {
        /// As the client wrote them.
        paths: Vec<Cow<'a, str>>,
    },
}

impl ToolCall<'_> {
    /// The tool without its arguments.
    pub fn tool(&self) -> Tool {
        match self {
            Self::ExecuteCode(_) => Tool::ExecuteCode,
            Self::ExecuteCommand { .. } => Tool::ExecuteCommand,
            Self::StartCommandExecution { .. } => Tool::StartCommandExecution,
            Self::GetTask { .. } => Tool::GetTask,
            Self::StopTask { .. } => Tool::StopTask,
            Self::WriteFiles { .. } => Tool::WriteFiles,
            Self::ReadFiles { .. } => Tool::ReadFiles,
            Self::ListFiles { .. } => Tool::ListFiles,
            Self::RemoveFiles { .. } => Tool::RemoveFiles,
        }
    }
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile<'a> {
    /// As the client wrote it.
    pub path: Cow<'a, str>,
    /// What it is to hold.
    pub contents: Contents<'a>,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents<'a> {
    /// Text, written as UTF-8.
    Text(Cow<'a, str>),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Contents<'_> {
    /// The bytes to write.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Blob(bytes) => bytes,
        }
    }
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Object<Arguments<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments<'a> {
    #[serde(borrow)]
    code: Option<Text<'a>>,
    #[serde(borrow)]
    language: Option<Text<'a>>,
    clear_context: Option<bool>,
    #[serde(borrow)]
    runtime: Option<Text<'a>>,
    #[serde(borrow)]
    command: Option<Text<'a>>,
    #[serde(borrow)]
    path: Option<Text<'a>>,
    #[serde(borrow)]
    directory_path: Option<Text<'a>>,
    #[serde(borrow)]
    paths: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    content: Option<Vec<Object<FileBody<'a>>>>,
    #[serde(borrow)]
    task_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct FileBody<'a> {
    #[serde(borrow)]
    path: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    blob: Option<Blob>,
}

/// Reads the body. It is in memory as a whole, at most [`crate::MAX_BODY_BYTES`] of it, which also keeps every argument within its
/// own limit.
pub fn parse(body: &[u8]) -> Result<ToolCall<'_>, ValidationError> {
    let body: Body = json::parse(body)?;
    let tool = tool_of(body.name.as_ref())?;
    let Object(arguments) = body.arguments.unwrap_or_default();
    Ok(match tool {
        Tool::ExecuteCode => ToolCall::ExecuteCode(code::checked(arguments)?),
        Tool::ExecuteCommand => ToolCall::ExecuteCommand {
            command: needed(tool, "command", arguments.command)?.0,
        },
        Tool::StartCommandExecution => ToolCall::StartCommandExecution {
            command: needed(tool, "command", arguments.command)?.0,
        },
        Tool::GetTask => ToolCall::GetTask {
            task_id: needed(tool, "taskId", arguments.task_id)?.0,
        },
        Tool::StopTask => ToolCall::StopTask {
            task_id: needed(tool, "taskId", arguments.task_id)?.0,
        },
        Tool::WriteFiles => ToolCall::WriteFiles {
            files: files_of(needed(tool, "content", arguments.content)?)?,
        },
        Tool::ReadFiles => ToolCall::ReadFiles {
            paths: paths_of(needed(tool, "paths", arguments.paths)?),
        },
        Tool::RemoveFiles => ToolCall::RemoveFiles {
            paths: paths_of(needed(tool, "paths", arguments.paths)?),
        },
        Tool::ListFiles => ToolCall::ListFiles {
            path: folder_of(arguments.path, arguments.directory_path)?,
        },
    })
}

fn tool_of(name: Option<&Text<'_>>) -> Result<Tool, ValidationError> {
    let found = Tool::ALL
        .into_iter()
        .find(|tool| name.is_some_and(|name| name.0 == tool.name()));
    found.ok_or_else(|| ValidationError::field("name", &choices(&Tool::ALL, Tool::name)))
}

/// What to say about a value that is none of an enumeration's.
fn choices<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> String {
    let names: Vec<_> = all.iter().copied().map(name).collect();
    format!("must be one of {}", names.join(", "))
}

fn needed<T>(tool: Tool, name: &str, value: Option<T>) -> Result<T, ValidationError> {
    value.ok_or_else(|| {
        let message = format!("is needed by {}", tool.name());
        ValidationError::field(format!("arguments.{name}"), &message)
    })
}

fn paths_of(paths: Vec<Text<'_>>) -> Vec<Cow<'_, str>> {
    paths.into_iter().map(|path| path.0).collect()
}

fn files_of(bodies: Vec<Object<FileBody<'_>>>) -> Result<Vec<InputFile<'_>>, ValidationError> {
    let mut faults = Faults::default();
    let mut files = Vec::with_capacity(bodies.len());
    for (index, Object(body)) in bodies.into_iter().enumerate() {
        let member = format!("arguments.content[{index}]");
        let contents = match (body.text, body.blob) {
            (Some(text), None) => Some(Contents::Text(text.0)),
            (None, Some(blob)) => Some(Contents::Blob(blob.0)),
            _ => None,
        };
        match (body.path, contents) {
            (Some(path), Some(contents)) => files.push(InputFile {
                path: path.0,
                contents,
            }),
            (None, _) => faults.add(format!("{member}.path"), "is needed"),
            (_, None) => faults.add(member, "must have exactly one of text and blob"),
        }
    }
    faults.into_result(files)
}

/// Clients use either spelling, and some use both.
fn folder_of<'a>(
    path: Option<Text<'a>>,
    directory_path: Option<Text<'a>>,
) -> Result<Option<Cow<'a, str>>, ValidationError> {
    match (path, directory_path) {
        (Some(path), Some(directory_path)) if path.0 != directory_path.0 => Err(ValidationError::field(
            "arguments.directoryPath",
            "must be the same as arguments.path, or only one of them be there",
        )),
        (Some(path), _) | (None, Some(path)) => Ok(Some(path.0)),
        (None, None) => Ok(None),
    }
}
