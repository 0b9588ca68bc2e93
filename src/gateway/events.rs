//! The stream of what an execution tells, read line by line.

use std::pin::Pin;

use bytes::{Buf as _, Bytes, BytesMut};
use codeworkspace_protocol::session::SessionEvent;
use futures::{Stream, StreamExt as _};

/// Longest line: one part of an output stream, or one rich result (a picture).
const MAX_LINE: usize = 64 * 1024 * 1024;

/// Why a stream ended before the execution did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventsError {
    /// The connection broke.
    #[error("{0}")]
    Broken(String),
    /// The stream ended without saying how the execution did.
    #[error("the session's pod ended the stream in the middle")]
    Cut,
    /// A line is no event, or is longer than any event may be.
    #[error("the session's pod sent what is no event: {0}")]
    Garbled(String),
}

/// What an execution tells, up to and including its end.
pub struct Events {
    bytes: Pin<Box<dyn Stream<Item = Result<Bytes, EventsError>> + Send>>,
    buffer: BytesMut,
    /// Up to where the buffer is known to hold no end of a line.
    searched: usize,
    ended: bool,
}

impl Events {
    /// Reads from a stream of bytes.
    pub fn new(bytes: impl Stream<Item = Result<Bytes, EventsError>> + Send + 'static) -> Self {
        Self {
            bytes: Box::pin(bytes),
            buffer: BytesMut::new(),
            searched: 0,
            ended: false,
        }
    }

    /// The next event; none after the last, which is always [`SessionEvent::Finished`].
    pub async fn next(&mut self) -> Result<Option<SessionEvent>, EventsError> {
        if self.ended {
            return Ok(None);
        }
        loop {
            if let Some(end) = self.buffer[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n')
            {
                let line = self.buffer.split_to(self.searched + end);
                self.buffer.advance(1);
                self.searched = 0;
                let event =
                    serde_json::from_slice(&line).map_err(|error| EventsError::Garbled(error.to_string()))?;
                self.ended = matches!(event, SessionEvent::Finished(_));
                return Ok(Some(event));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > MAX_LINE {
                return Err(EventsError::Garbled(format!(
                    "a line of more than {MAX_LINE} bytes"
                )));
            }
            match self.bytes.next().await {
                Some(part) => self.buffer.extend_from_slice(&part?),
                None => return Err(EventsError::Cut),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use codeworkspace_protocol::session::{ExecutionOutcome, Finished, OutputStream, StreamSummary};
    use futures::stream;

    use super::*;

    fn events(parts: &[&'static str]) -> Events {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| Ok(Bytes::from_static(part.as_bytes())))
            .collect();
        Events::new(stream::iter(parts))
    }

    #[tokio::test]
    async fn events_are_read_however_the_network_cuts_them() {
        let mut events = events(&[
            "{\"type\":\"output\",\"stream\":\"stdo",
            "ut\",\"text\":\"a\\n\"}\n{\"type\":\"finished\",\"outcome\":\"completed\",",
            "\"exitCode\":0,\"executionTimeMs\":1,\"stdout\":{\"totalBytes\":2},\"stderr\":{\"totalBytes\":0}}\nrest",
        ]);
        let output = SessionEvent::Output {
            stream: OutputStream::Stdout,
            text: "a\n".to_owned(),
        };
        let finished = SessionEvent::Finished(Finished {
            outcome: ExecutionOutcome::Completed,
            exit_code: Some(0),
            execution_time_ms: 1,
            stdout: StreamSummary {
                total_bytes: 2,
                file: None,
            },
            stderr: StreamSummary::default(),
            message: None,
        });
        assert_eq!(events.next().await, Ok(Some(output)));
        assert_eq!(events.next().await, Ok(Some(finished)));
        assert_eq!(events.next().await, Ok(None));
    }

    #[tokio::test]
    async fn a_stream_that_ends_in_the_middle_is_never_taken_for_a_whole_one() {
        let mut events = events(&["{\"type\":\"output\",\"stream\":\"stdout\",\"text\":\"a\"}\n"]);
        assert!(events.next().await.unwrap().is_some());
        assert_eq!(events.next().await, Err(EventsError::Cut));
    }

    #[tokio::test]
    async fn what_is_no_event_is_told() {
        let mut events = events(&["<html>\n"]);
        assert!(matches!(events.next().await, Err(EventsError::Garbled(_))));
    }
}
