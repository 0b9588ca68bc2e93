//! What an execution told, as the result of a tool.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codeworkspace_agentcore::result::{
    ContentBlock, ExecutionTimeUnit, Resource, StructuredContent, TaskStatus, ToolResult,
};
use codeworkspace_protocol::session::{
    self, ExecutionOutcome, Finished, OutputStream, SessionEvent, StreamSummary, TaskState,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::gateway::events::{Events, EventsError};

/// What stays as it is in the path of a `file:` URI (RFC 3986, 3.3 and 2.3).
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The URI of a file, from its path as the caller wrote it.
pub fn uri(path: &str) -> String {
    format!("file:///{}", utf8_percent_encode(path, PATH))
}

/// Collects what an execution tells until its end.
#[derive(Debug, Default)]
pub struct Outcome {
    stdout: String,
    stderr: String,
    result: String,
    blocks: Vec<ContentBlock>,
    traceback: Option<String>,
}

impl Outcome {
    /// Reads all events.
    pub async fn of(mut events: Events, unit: ExecutionTimeUnit) -> Result<ToolResult, EventsError> {
        let mut outcome = Self::default();
        while let Some(event) = events.next().await? {
            match event {
                SessionEvent::Finished(finished) => return Ok(outcome.finish(&finished, unit)),
                other => outcome.take(other),
            }
        }
        Err(EventsError::Cut)
    }

    fn take(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Output { stream, text } => match stream {
                OutputStream::Stdout => self.stdout.push_str(&text),
                OutputStream::Stderr => self.stderr.push_str(&text),
            },
            SessionEvent::Display { data, result } => self.display(&data, result),
            SessionEvent::Error {
                name,
                value,
                traceback,
            } => {
                let text = if traceback.is_empty() {
                    format!("{name}: {value}")
                } else {
                    traceback.join("\n")
                };
                self.traceback = Some(text);
            }
            SessionEvent::Finished(_) => {}
        }
    }

    /// The same thing in several media types: every one of them, as a block that says which it is. Its plain text belongs to what is
    /// read.
    fn display(&mut self, data: &Map<String, Value>, result: bool) {
        for (mime_type, content) in data {
            let text = match content {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            if mime_type == "text/plain" {
                let place = if result || data.len() == 1 {
                    &mut self.result
                } else {
                    continue;
                };
                if !place.is_empty() {
                    place.push('\n');
                }
                place.push_str(&text);
                continue;
            }
            let encoded: String = text.split_whitespace().collect();
            let bytes = STANDARD.decode(&encoded).ok();
            let is_text = mime_type.starts_with("text/")
                || mime_type == "application/json"
                || mime_type == "application/javascript"
                || mime_type.ends_with("+json")
                || mime_type.ends_with("+xml");
            let uri = format!("display:///{}", self.blocks.len());
            self.blocks.push(match bytes {
                Some(data) if mime_type.starts_with("image/") && !is_text => ContentBlock::Image {
                    data,
                    mime_type: mime_type.clone(),
                },
                Some(blob) if !is_text => ContentBlock::Resource {
                    resource: Resource::Blob {
                        uri,
                        mime_type: Some(mime_type.clone()),
                        blob,
                    },
                },
                _ => ContentBlock::Resource {
                    resource: Resource::Text {
                        uri,
                        mime_type: Some(mime_type.clone()),
                        text,
                    },
                },
            });
        }
    }

    fn finish(self, finished: &Finished, unit: ExecutionTimeUnit) -> ToolResult {
        let explanation = explanation(finished);
        let mut stderr = self.stderr;
        for text in self.traceback.iter().chain(&explanation) {
            if !stderr.is_empty() && !stderr.ends_with('\n') {
                stderr.push('\n');
            }
            stderr.push_str(text);
        }
        let readable: Vec<_> = [self.stdout.as_str(), self.result.as_str(), stderr.as_str()]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        let mut content = vec![ContentBlock::text(readable.join("\n"))];
        content.extend(self.blocks);
        content.extend(whole_streams(&finished.stdout, &finished.stderr));
        ToolResult {
            content,
            structured: Some(StructuredContent {
                task_id: None,
                task_status: None,
                stdout: Some(self.stdout),
                stderr: Some(stderr),
                exit_code: finished.exit_code,
                execution_time: Some(unit.number(Duration::from_millis(finished.execution_time_ms))),
            }),
            is_error: finished.outcome != ExecutionOutcome::Completed,
        }
    }
}

/// What the outcome alone does not say.
fn explanation(finished: &Finished) -> Option<String> {
    let text = match finished.outcome {
        ExecutionOutcome::Completed | ExecutionOutcome::Failed => return finished.message.clone(),
        ExecutionOutcome::Cancelled => "the execution was cancelled",
        ExecutionOutcome::TimedOut => "the execution was ended at its time limit",
        ExecutionOutcome::Died => "the process died",
        ExecutionOutcome::OutOfMemory => "the process was killed because the session's memory ran out",
    };
    Some(finished.message.clone().unwrap_or_else(|| text.to_owned()))
}

/// For a stream of which only the beginning travels: that this is so, and where the whole is.
fn whole_streams(stdout: &StreamSummary, stderr: &StreamSummary) -> Vec<ContentBlock> {
    let mut blocks = Vec::new();
    for (name, stream) in [("stdout", stdout), ("stderr", stderr)] {
        let Some(file) = &stream.file else {
            continue;
        };
        let total = stream.total_bytes;
        let here = if total > session::MAX_STREAM_BYTES {
            format!("of which the first {} are here", session::MAX_STREAM_BYTES)
        } else {
            "not all of which are text: others stand here as U+FFFD".to_owned()
        };
        blocks.push(ContentBlock::text(format!(
            "{name} has {total} bytes, {here}; the whole is in {file}"
        )));
        blocks.push(ContentBlock::ResourceLink {
            uri: uri(file),
            name: name.to_owned(),
            description: Some(format!("The whole {name}")),
            mime_type: Some("text/plain".to_owned()),
            size: Some(stream.total_bytes),
        });
    }
    blocks
}

/// The state of a background command, as the result of a tool.
pub fn of_task(task: &session::TaskStatus, unit: ExecutionTimeUnit) -> ToolResult {
    let status = match task.state {
        TaskState::Submitted => TaskStatus::Submitted,
        TaskState::Working => TaskStatus::Working,
        TaskState::Completed => TaskStatus::Completed,
        TaskState::Canceled => TaskStatus::Canceled,
        TaskState::Failed => TaskStatus::Failed,
    };
    let finished = task.finished.as_ref();
    let explanation = finished.and_then(explanation);
    let text = [Some(task.stdout.clone()), Some(task.stderr.clone()), explanation]
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    let mut content = vec![ContentBlock::text(text)];
    content.extend(whole_streams(&task.stdout_summary, &task.stderr_summary));
    ToolResult {
        content,
        structured: Some(StructuredContent {
            task_id: Some(task.id.clone()),
            task_status: Some(status),
            stdout: Some(task.stdout.clone()),
            stderr: Some(task.stderr.clone()),
            exit_code: finished.and_then(|finished| finished.exit_code),
            execution_time: finished
                .map(|finished| unit.number(Duration::from_millis(finished.execution_time_ms))),
        }),
        is_error: task.state == TaskState::Failed,
    }
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
