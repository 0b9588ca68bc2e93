//! Frames of `application/vnd.amazon.eventstream`: how the results of an invocation travel.
//!
//! A frame is the length of all, the length of the headers, the CRC-32 of both, headers, payload, and the CRC-32 of all before;
//! numbers are big-endian. Every header here is a string.

#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::error::ServiceError;

/// The media type of the answer.
pub const CONTENT_TYPE: &str = "application/vnd.amazon.eventstream";

/// Bytes of both lengths and their checksum.
const PRELUDE: usize = 12;

const CHECKSUM: usize = 4;

/// Bytes of headers that the format allows.
const MAX_HEADERS: usize = 128 * 1024;

/// Bytes of a whole frame that are read at most. Clients take payloads of 24 MiB.
const MAX_FRAME: usize = 25 * 1024 * 1024;

/// The type of a header whose value is a string.
const STRING: u8 = 7;

/// One result: a payload of [`crate::result::ToolResult::events`].
pub fn result_frame(payload: &[u8]) -> Vec<u8> {
    encode(
        [
            (":message-type", "event"),
            (":event-type", "result"),
            (":content-type", "application/json"),
        ],
        payload,
    )
}

/// An error after the first result; before it, an error is an HTTP answer. A client raises it and reads no further. As an event
/// it would be taken for an empty result.
pub fn exception_frame(error: &ServiceError) -> Vec<u8> {
    encode(
        [
            (":message-type", "exception"),
            (":exception-type", error.stream_member()),
            (":content-type", "application/json"),
        ],
        &error.body(),
    )
}

fn encode(headers: [(&str, &str); 3], payload: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (name, value) in headers {
        encoded.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(STRING);
        encoded.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        encoded.extend_from_slice(value.as_bytes());
    }
    let length = PRELUDE + encoded.len() + payload.len() + CHECKSUM;
    let mut frame = Vec::with_capacity(length);
    frame.extend_from_slice(&number(length));
    frame.extend_from_slice(&number(encoded.len()));
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&encoded);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

/// No frame comes near the limit: results are split far below, and an error is a sentence.
fn number(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}

/// A frame that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Names and values, in the order of the wire.
    pub headers: Vec<(String, String)>,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Bytes that are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The lengths cannot be.
    #[error("a frame's lengths do not fit together, or are larger than is allowed")]
    Length,
    /// A checksum is not that of the bytes.
    #[error("a frame's checksum is wrong")]
    Checksum,
    /// A header ends too early, is no string, or is no UTF-8.
    #[error("a frame's headers cannot be read")]
    Headers,
}

/// Reads the first frame, as a client does: what it holds, and how many bytes it had. `None` if it has not arrived as a whole.
pub fn decode(bytes: &[u8]) -> Result<Option<(Frame, usize)>, FrameError> {
    let Some((prelude, _)) = bytes.split_first_chunk::<PRELUDE>() else {
        return Ok(None);
    };
    let [length, headers_length, checksum] = [0, 4, 8].map(|start| word(prelude, start));
    if crc32fast::hash(&prelude[..8]) != checksum {
        return Err(FrameError::Checksum);
    }
    let length = usize::try_from(length).map_err(|_| FrameError::Length)?;
    let headers_length = usize::try_from(headers_length).map_err(|_| FrameError::Length)?;
    let fits =
        headers_length <= MAX_HEADERS && length <= MAX_FRAME && PRELUDE + headers_length + CHECKSUM <= length;
    if !fits {
        return Err(FrameError::Length);
    }
    let Some(frame) = bytes.get(..length) else {
        return Ok(None);
    };
    let (content, _) = frame.split_at(length - CHECKSUM);
    if crc32fast::hash(content) != word(frame, length - CHECKSUM) {
        return Err(FrameError::Checksum);
    }
    let (headers, payload) = content[PRELUDE..].split_at(headers_length);
    let frame = Frame {
        headers: headers_of(headers).ok_or(FrameError::Headers)?,
        payload: payload.to_vec(),
    };
    Ok(Some((frame, length)))
}

fn word(bytes: &[u8], start: usize) -> u32 {
    bytes[start..]
        .first_chunk()
        .map_or(0, |word| u32::from_be_bytes(*word))
}

fn headers_of(mut bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut headers = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        if *kind != STRING {
            return None;
        }
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        headers.push((text(name)?, text(value)?));
        bytes = rest;
    }
    Some(headers)
}

fn text(bytes: &[u8]) -> Option<String> {
    str::from_utf8(bytes).ok().map(str::to_owned)
}
