//! What a tool answers, and how it is split into events that clients take.

mod split;
#[cfg(test)]
mod tests;

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize, Serializer};

pub use self::split::BlockTooLarge;

/// Bytes of an event's payload that are always taken. botocore refuses 24 MiB; the rest is room for other clients' buffers.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// What a tool answers. On the wire it is one event or more, each of which a client could take for the whole.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// What models and people read.
    pub content: Vec<ContentBlock>,
    /// What programs read. Code and commands have it.
    pub structured: Option<StructuredContent>,
    /// Whether the tool failed. Always on the wire: clients take its absence for "unknown".
    pub is_error: bool,
}

impl ToolResult {
    /// A result that is one text, and no error.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            structured: None,
            is_error: false,
        }
    }

    /// A failure of the tool itself that is one text.
    pub fn failure(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// The payloads of its events, one at least, none longer than `limit` bytes ([`MAX_EVENT_BYTES`]). Texts and streams are split
    /// between characters, in order; everything that is not a list or a stream stands in each event. Other blocks stay whole.
    pub fn events(&self, limit: usize) -> Result<Vec<Vec<u8>>, BlockTooLarge> {
        split::events(self, limit)
    }
}

/// A block of a result's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    #[serde(rename_all = "camelCase")]
    Image {
        /// Its bytes; base64 on the wire.
        #[serde(serialize_with = "base64")]
        data: Vec<u8>,
        /// Its media type.
        mime_type: String,
    },
    /// A file with what it holds.
    Resource {
        /// The file.
        resource: Resource,
    },
    /// A file without what it holds.
    #[serde(rename_all = "camelCase")]
    ResourceLink {
        /// Where it is.
        uri: String,
        /// Its name for people.
        name: String,
        /// What it is, for people.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its bytes. Folders have none.
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
}

impl ContentBlock {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// What a file holds: `text` if it is UTF-8, which an empty file is, and else `blob`.
    pub fn file(uri: String, mime_type: Option<String>, contents: Vec<u8>) -> Self {
        let resource = match String::from_utf8(contents) {
            Ok(text) => Resource::Text { uri, mime_type, text },
            Err(error) => Resource::Blob {
                uri,
                mime_type,
                blob: error.into_bytes(),
            },
        };
        Self::Resource { resource }
    }

    /// Whether it fits into an event of `limit` bytes by itself. A text always does, in parts.
    pub fn fits(&self, limit: usize) -> bool {
        split::fits(self, limit)
    }
}

/// A file with what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Resource {
    /// A file of UTF-8.
    #[serde(rename_all = "camelCase")]
    Text {
        /// Where it is.
        uri: String,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// What it holds.
        text: String,
    },
    /// Any other.
    #[serde(rename_all = "camelCase")]
    Blob {
        /// Where it is.
        uri: String,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// What it holds; base64 on the wire.
        #[serde(serialize_with = "base64")]
        blob: Vec<u8>,
    },
}

fn base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

/// How far a command is that nobody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not started yet.
    Submitted,
    /// Running.
    Working,
    /// It ended by itself.
    Completed,
    /// It was stopped.
    Canceled,
    /// It could not run.
    Failed,
}

/// What programs read of a result. Members that are not known are not there.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StructuredContent {
    /// The command that nobody waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_status: Option<TaskStatus>,
    /// What was printed, and nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// What was printed as errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// How it ended. Not there if it did not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it took; see [`ExecutionTimeUnit::number`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_time: Option<f64>,
}

/// The unit of `executionTime`. The model says milliseconds; what the service answers has been measured as seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExecutionTimeUnit {
    /// As the service does.
    #[default]
    Seconds,
    /// As its documents say.
    Milliseconds,
}

impl ExecutionTimeUnit {
    /// The duration in this unit.
    pub fn number(self, duration: Duration) -> f64 {
        match self {
            Self::Seconds => duration.as_secs_f64(),
            Self::Milliseconds => duration.as_secs_f64() * 1000.0,
        }
    }
}
