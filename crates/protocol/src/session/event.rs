//! What an execution tells while it runs, and how it ended.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One line of an execution's stream. The last one, and only that, is [`SessionEvent::Finished`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum SessionEvent {
    /// A part of what the code printed, in the order in which it was printed within its stream; ends after
    /// [`super::MAX_STREAM_BYTES`]. Bytes that are no UTF-8 are replaced by U+FFFD.
    Output {
        /// Where it was printed.
        stream: OutputStream,
        /// The text.
        text: String,
    },
    /// A rich result: the same thing in one or more media types, as Jupyter's `display_data` and `execute_result` carry it. Text is a
    /// string, JSON is itself, anything else is base64.
    Display {
        /// Content by media type.
        data: Map<String, Value>,
        /// Whether it is the value of the last expression, and not something that the code displayed.
        result: bool,
    },
    /// An exception that the code did not catch.
    Error {
        /// The exception's class.
        name: String,
        /// Its message.
        value: String,
        /// The traceback, line by line, without terminal colours.
        traceback: Vec<String>,
    },
    /// The end.
    Finished(Finished),
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How an execution or command ended. Fields are present only when they are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// How.
    pub outcome: ExecutionOutcome,
    /// The command's own exit code; for code 0 or 1. Absent when nothing exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Milliseconds from the start of the code, without the time in the queue.
    pub execution_time_ms: u64,
    /// What was printed to standard output.
    pub stdout: StreamSummary,
    /// What was printed to standard error.
    pub stderr: StreamSummary,
    /// For people, when the outcome alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How an execution or command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ExecutionOutcome {
    /// The code ran to its end, or the command exited with 0.
    Completed,
    /// The code raised an exception, or the command exited with another code.
    Failed,
    /// Somebody cancelled it, or nobody listened any more.
    Cancelled,
    /// Its own time limit passed.
    TimedOut,
    /// The process died: the code ended it, or a signal did. Variables are gone; the next execution gets a new process.
    Died,
    /// The kernel of the node killed a process of the session because memory ran out.
    OutOfMemory,
}

/// What became of one output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StreamSummary {
    /// Bytes printed in all.
    pub total_bytes: u64,
    /// Path of the file, relative to the session's root, that holds the whole stream as it was printed; present when the events do
    /// not: it is longer than [`super::MAX_STREAM_BYTES`], or no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_have_one_form_on_the_wire() {
        let events = [
            SessionEvent::Output {
                stream: OutputStream::Stdout,
                text: "1\n".to_owned(),
            },
            SessionEvent::Display {
                data: Map::from_iter([("text/plain".to_owned(), json!("2"))]),
                result: true,
            },
            SessionEvent::Error {
                name: "ValueError".to_owned(),
                value: "no".to_owned(),
                traceback: vec!["ValueError: no".to_owned()],
            },
            SessionEvent::Finished(Finished {
                outcome: ExecutionOutcome::OutOfMemory,
                exit_code: None,
                execution_time_ms: 12,
                stdout: StreamSummary {
                    total_bytes: 2_000_000,
                    file: Some(".output/1.stdout".to_owned()),
                },
                stderr: StreamSummary::default(),
                message: None,
            }),
        ];
        let wire = json!([
            {"type": "output", "stream": "stdout", "text": "1\n"},
            {"type": "display", "data": {"text/plain": "2"}, "result": true},
            {"type": "error", "name": "ValueError", "value": "no", "traceback": ["ValueError: no"]},
            {
                "type": "finished", "outcome": "outOfMemory", "executionTimeMs": 12,
                "stdout": {"totalBytes": 2_000_000, "file": ".output/1.stdout"}, "stderr": {"totalBytes": 0},
            },
        ]);
        assert_eq!(serde_json::to_value(&events).unwrap(), wire);
        assert_eq!(serde_json::from_value::<Vec<SessionEvent>>(wire).unwrap(), events);
    }
}
