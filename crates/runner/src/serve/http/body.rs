//! Bodies that are files: read and written by threads that may wait for a disk.

use std::fs::File;
use std::io::{self, Read};

use axum::body::{Body, Bytes};
use codeworkspace_protocol::session::{ErrorCode, SessionError};
use futures::{StreamExt as _, stream};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::answer::{Answer, Refusal};
use crate::serve::idle::Activity;

/// Pieces of a body that wait for the disk.
const PIECES_AHEAD: usize = 8;
const CHUNK_BYTES: usize = 64 * 1024;
/// Bytes of a body that are read although nobody wants them any more.
const MAX_WASTED_BYTES: usize = 16 * 1024 * 1024;

/// A body as a reader, for one thread that may block.
struct Incoming {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
    failed: bool,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            if self.failed {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match self.pieces.blocking_recv() {
                None => return Ok(0),
                Some(Ok(piece)) => self.current = piece,
                Some(Err(error)) => {
                    // A reader may ask again.
                    self.failed = true;
                    return Err(error);
                }
            }
        }
        let count = buffer.len().min(self.current.len());
        buffer[..count].copy_from_slice(&self.current.split_to(count));
        Ok(count)
    }
}

/// Hands a body to `work` in a thread of its own. If the work fails before the body's end, a bit more of the body is taken, so that the
/// caller of a moderate one is ready for the answer; a long one is broken off.
pub(super) async fn with_body<T: Send + 'static>(
    body: Body,
    work: impl FnOnce(&mut dyn Read) -> Result<T, SessionError> + Send + 'static,
) -> Answer<T> {
    let (sender, pieces) = mpsc::channel(PIECES_AHEAD);
    let working = spawn_blocking(move || {
        let mut incoming = Incoming {
            pieces,
            current: Bytes::new(),
            failed: false,
        };
        work(&mut incoming)
    });
    let mut body = body.into_data_stream();
    let mut wasted = 0;
    while wasted < MAX_WASTED_BYTES
        && let Some(piece) = body.next().await
    {
        let bytes = piece.as_ref().map_or(0, Bytes::len);
        if sender.send(piece.map_err(io::Error::other)).await.is_err() {
            wasted += bytes;
        }
    }
    drop(sender);
    done(working.await)
}

/// Does something that may wait for a disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SessionError> + Send + 'static,
) -> Answer<T> {
    done(spawn_blocking(work).await)
}

fn done<T>(answer: Result<Result<T, SessionError>, tokio::task::JoinError>) -> Answer<T> {
    let answer =
        answer.map_err(|error| Refusal::from(SessionError::new(ErrorCode::Internal, error.to_string())))?;
    Ok(answer?)
}

/// The first `size` bytes of a file. A file that became shorter breaks the answer off: its length was announced.
pub(super) fn contents(file: File, size: u64, activity: Activity) -> Body {
    Body::from_stream(stream::unfold(Some((file, size, activity)), |state| async move {
        let (mut file, left, activity) = state?;
        if left == 0 {
            return None;
        }
        let read = spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES))];
            let count = file.read(&mut chunk)?;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            chunk.truncate(count);
            Ok((chunk, file))
        });
        match read.await.map_err(io::Error::other).flatten() {
            Ok((chunk, file)) => {
                let left = left - chunk.len() as u64;
                Some((Ok(chunk), Some((file, left, activity))))
            }
            Err(error) => Some((Err(error), None)),
        }
    }))
}
