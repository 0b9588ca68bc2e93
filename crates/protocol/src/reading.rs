//! The stream in which `runner read` sends the files of a volume over its standard output.
//!
//! A line that names the format, then the bytes of a bundle in pieces, then one report, and nothing after it. A stream that breaks
//! off has no report, so that a part is never taken for the whole; and a reading that fails halfway can still say why.
//!
//! The runner sends nothing before it has read [`BEGIN`], since whatever a container writes before somebody is attached is lost
//! for them. After the report it waits for the end of its input: a container that ends while its last bytes are on their way may
//! lose them.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The line that the runner waits for.
pub const BEGIN: &[u8] = b"begin\n";

/// Bytes of JSON that a report takes at most.
pub const MAX_REPORT_BYTES: usize = 16 * 1024;

const FORMAT: &[u8] = b"codeworkspace-reading 1\n";
const MAX_PIECE_BYTES: usize = 64 * 1024;
const PIECE: u8 = b'p';
const REPORT: u8 = b'r';
/// The kind of a frame and its length, big-endian.
const HEAD_BYTES: usize = 5;
/// Bytes that a message, or one skipped link, takes in a report at most.
const MAX_TEXT_BYTES: usize = 1024;
/// Skipped links that a report names.
const MAX_SKIPPED: usize = 8;

/// Why a volume could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadFailure {
    /// The folder that shall be read is not there.
    NotFound,
    /// The runner's user may not read something.
    PermissionDenied,
    /// There is something that cannot stand in a bundle: a device, a link that leaves the folder, a name that is no text.
    Refused,
    /// Something changed while it was read.
    Changed,
    /// There is more than is allowed.
    TooLarge,
    /// The volume itself does not work.
    Unreadable,
}

/// The end of a reading that came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FinishedReading {
    /// Digest of the bundle that was sent, as `sha256:` and 64 hex digits.
    pub digest: String,
    /// Links that were left out, a few of them, each with its reason.
    pub skipped: Vec<String>,
    /// How many links were left out in all.
    pub skipped_total: u64,
}

/// The end of a reading that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FailedReading {
    /// What kind of failure it was.
    pub reason: ReadFailure,
    /// For people: which file, and what to do.
    pub message: String,
}

/// How a reading ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReadReport {
    /// Everything was sent.
    Finished(FinishedReading),
    /// What was sent is worth nothing.
    Failed(FailedReading),
}

impl ReadReport {
    /// The report as JSON of at most [`MAX_REPORT_BYTES`]: long texts are cut, and only a few skipped links are named.
    fn to_json(&self) -> Vec<u8> {
        let mut report = self.clone();
        match &mut report {
            Self::Finished(finished) => {
                finished.skipped.truncate(MAX_SKIPPED);
                finished.skipped.iter_mut().for_each(shorten);
            }
            Self::Failed(failed) => shorten(&mut failed.message),
        }
        // Serialising strings and numbers into memory cannot fail; an empty text would be refused by the reader.
        serde_json::to_vec(&report).unwrap_or_default()
    }
}

/// Without control characters, of which JSON makes six bytes each, a text takes at most twice its length.
fn shorten(text: &mut String) {
    text.retain(|character| !character.is_control());
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES - '…'.len_utf8()));
        text.push('…');
    }
}

/// Writes a stream. What is written to it as [`Write`] are the bytes of the bundle.
#[derive(Debug)]
pub struct ReadingWriter<W: Write> {
    out: W,
}

impl<W: Write> ReadingWriter<W> {
    /// Begins a stream.
    pub fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(FORMAT)?;
        Ok(Self { out })
    }

    /// Ends the stream.
    pub fn end(mut self, report: &ReadReport) -> io::Result<()> {
        self.frame(REPORT, &report.to_json())?;
        self.out.flush()
    }

    fn frame(&mut self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.out.write_all(&[kind])?;
        self.out.write_all(&length.to_be_bytes())?;
        self.out.write_all(bytes)
    }
}

impl<W: Write> Write for ReadingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(MAX_PIECE_BYTES)];
        if !piece.is_empty() {
            self.frame(PIECE, piece)?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Why a stream is none.
#[derive(Debug, Error)]
pub enum StreamError {
    /// It ends before its report.
    #[error("the stream broke off")]
    Cut,
    /// It is something else, or of another version.
    #[error("the stream does not begin like one of this version's runner")]
    Format,
    /// A frame has a kind or a length that none has.
    #[error("the stream has a malformed frame")]
    Frame,
    /// The report is not understood.
    #[error("the stream's report is malformed")]
    Report,
    /// What carries it failed.
    #[error("the stream broke off: {0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            Self::Cut
        } else {
            Self::Io(error)
        }
    }
}

/// Reads a stream. What is read from it as [`Read`] are the bytes of the bundle; they end before the report.
#[derive(Debug)]
pub struct ReadingReader<R: Read> {
    input: R,
    /// Bytes of the current piece that are still to come.
    left: usize,
    begun: bool,
    report: Option<ReadReport>,
}

impl<R: Read> ReadingReader<R> {
    /// Reads nothing yet.
    pub fn new(input: R) -> Self {
        Self {
            input,
            left: 0,
            begun: false,
            report: None,
        }
    }

    /// Skips what is left of the bundle and returns the report.
    pub fn report(&mut self) -> Result<ReadReport, StreamError> {
        let mut rest = [0; 4096];
        while self.next_bytes(&mut rest)? > 0 {}
        self.report.clone().ok_or(StreamError::Cut)
    }

    fn next_bytes(&mut self, buffer: &mut [u8]) -> Result<usize, StreamError> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if !self.begun {
            let mut format = [0; FORMAT.len()];
            self.input.read_exact(&mut format)?;
            if format != FORMAT {
                return Err(StreamError::Format);
            }
            self.begun = true;
        }
        while self.left == 0 {
            if self.report.is_some() {
                return Ok(0);
            }
            self.next_frame()?;
        }
        let length = buffer.len().min(self.left);
        let read = self.input.read(&mut buffer[..length])?;
        if read == 0 {
            return Err(StreamError::Cut);
        }
        self.left -= read;
        Ok(read)
    }

    fn next_frame(&mut self) -> Result<(), StreamError> {
        let mut head = [0; HEAD_BYTES];
        self.input.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = usize::try_from(u32::from_be_bytes(length)).map_err(|_| StreamError::Frame)?;
        match kind {
            PIECE if (1..=MAX_PIECE_BYTES).contains(&length) => self.left = length,
            REPORT if length <= MAX_REPORT_BYTES => {
                let mut report = vec![0; length];
                self.input.read_exact(&mut report)?;
                self.report = Some(serde_json::from_slice(&report).map_err(|_| StreamError::Report)?);
            }
            _ => return Err(StreamError::Frame),
        }
        Ok(())
    }
}

impl<R: Read> Read for ReadingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.next_bytes(buffer).map_err(|error| match error {
            StreamError::Cut => io::ErrorKind::UnexpectedEof.into(),
            StreamError::Io(error) => error,
            other => io::Error::other(other),
        })
    }
}
