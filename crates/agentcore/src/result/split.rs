//! From a result to payloads of a bounded length.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use thiserror::Error;

use super::{ContentBlock, Resource, StructuredContent, ToolResult};

/// Bytes that each event has for blocks and streams, however small the limit: without room there would be no end of events.
const LEAST_ROOM: usize = 1024;

/// A block that fits into no event, and cannot be split.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{block} takes {bytes} bytes in an answer, which has room for {room}")]
pub struct BlockTooLarge {
    /// The file's URI, or what else it is.
    pub block: String,
    /// Its bytes on the wire, which are more than it has itself.
    pub bytes: usize,
    /// What an event has room for.
    pub room: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    content: &'a [Box<RawValue>],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a StructuredContent>,
    is_error: bool,
}

pub(super) fn fits(block: &ContentBlock, limit: usize) -> bool {
    match block {
        ContentBlock::Text { .. } => true,
        _ => written(block).get().len() < room(limit, None),
    }
}

pub(super) fn events(result: &ToolResult, limit: usize) -> Result<Vec<Vec<u8>>, BlockTooLarge> {
    let room = room(limit, result.structured.as_ref());
    let mut packer = Packer::new(room);
    for block in &result.content {
        match block {
            ContentBlock::Text { text } => packer.text(text),
            other => packer.whole(other)?,
        }
    }
    if let Some(structured) = &result.structured {
        packer.stream(structured.stdout.as_deref(), |event| &mut event.stdout);
        packer.stream(structured.stderr.as_deref(), |event| &mut event.stderr);
    }
    let payload = |event: &Event| {
        let structured = result.structured.as_ref().map(|structured| StructuredContent {
            stdout: structured.stdout.as_ref().map(|_| event.stdout.clone()),
            stderr: structured.stderr.as_ref().map(|_| event.stderr.clone()),
            ..without_streams(structured)
        });
        serialized(&event.content, structured.as_ref(), result.is_error)
    };
    Ok(packer.into_events().iter().map(payload).collect())
}

/// Bytes for blocks and streams in an event of `limit` bytes.
fn room(limit: usize, structured: Option<&StructuredContent>) -> usize {
    let empty = structured.map(|structured| StructuredContent {
        stdout: Some(String::new()),
        stderr: Some(String::new()),
        ..without_streams(structured)
    });
    let envelope = serialized(&[], empty.as_ref(), false).len();
    limit.saturating_sub(envelope).max(LEAST_ROOM)
}

fn without_streams(structured: &StructuredContent) -> StructuredContent {
    StructuredContent {
        task_id: structured.task_id.clone(),
        task_status: structured.task_status,
        stdout: None,
        stderr: None,
        exit_code: structured.exit_code,
        execution_time: structured.execution_time,
    }
}

/// Structures of strings and numbers always become JSON; an empty result would still be a result.
fn serialized(content: &[Box<RawValue>], structured: Option<&StructuredContent>, is_error: bool) -> Vec<u8> {
    let payload = Payload {
        content,
        structured_content: structured,
        is_error,
    };
    serde_json::to_vec(&payload).unwrap_or_else(|_| br#"{"content":[],"isError":true}"#.to_vec())
}

fn written(block: &ContentBlock) -> Box<RawValue> {
    to_raw_value(block).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// An event being filled.
#[derive(Default)]
struct Event {
    content: Vec<Box<RawValue>>,
    stdout: String,
    stderr: String,
    used: usize,
}

struct Packer {
    room: usize,
    filled: Vec<Event>,
    last: Event,
}

impl Packer {
    fn new(room: usize) -> Self {
        Self {
            room,
            filled: Vec::new(),
            last: Event::default(),
        }
    }

    fn left(&self) -> usize {
        self.room - self.last.used
    }

    fn next(&mut self) {
        self.filled.push(std::mem::take(&mut self.last));
    }

    fn whole(&mut self, block: &ContentBlock) -> Result<(), BlockTooLarge> {
        let block_json = written(block);
        // A comma stands before it.
        let bytes = block_json.get().len() + 1;
        if bytes > self.room {
            return Err(BlockTooLarge {
                block: description(block),
                bytes,
                room: self.room,
            });
        }
        if bytes > self.left() {
            self.next();
        }
        self.last.used += bytes;
        self.last.content.push(block_json);
        Ok(())
    }

    /// A text that no event has room for is split; any other stays whole.
    fn text(&mut self, text: &str) {
        let frame = written(&ContentBlock::text("")).get().len() + 1;
        let mut rest = text;
        loop {
            let (now, bytes) = prefix(rest, self.left().saturating_sub(frame));
            let is_last = now.len() == rest.len();
            let has_fresh_room = || prefix(rest, self.room - frame).0.len() == rest.len();
            if self.left() < frame || (!is_last && (now.is_empty() || has_fresh_room())) {
                self.next();
                continue;
            }
            self.last.used += bytes + frame;
            self.last.content.push(written(&ContentBlock::text(now)));
            if is_last {
                return;
            }
            rest = &rest[now.len()..];
            self.next();
        }
    }

    /// Parts of a stream are put together again by whoever reads it, so every room is used.
    fn stream(&mut self, text: Option<&str>, of: fn(&mut Event) -> &mut String) {
        let mut rest = text.unwrap_or_default();
        while !rest.is_empty() {
            let (now, bytes) = prefix(rest, self.left());
            self.last.used += bytes;
            of(&mut self.last).push_str(now);
            rest = &rest[now.len()..];
            if !rest.is_empty() {
                self.next();
            }
        }
    }

    fn into_events(mut self) -> Vec<Event> {
        self.next();
        self.filled
    }
}

/// The longest beginning whose JSON, without its quotes, has at most `limit` bytes; and those bytes.
fn prefix(text: &str, limit: usize) -> (&str, usize) {
    let mut bytes = 0;
    for (index, character) in text.char_indices() {
        let next = bytes + escaped_length(character);
        if next > limit {
            return (&text[..index], bytes);
        }
        bytes = next;
    }
    (text, bytes)
}

/// As RFC 8259 needs it and serde_json does it.
fn escaped_length(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => character.len_utf8(),
    }
}

fn description(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text { .. } => "a text".to_owned(),
        ContentBlock::Image { .. } => "an image".to_owned(),
        ContentBlock::Resource {
            resource: Resource::Text { uri, .. } | Resource::Blob { uri, .. },
        }
        | ContentBlock::ResourceLink { uri, .. } => uri.clone(),
    }
}
