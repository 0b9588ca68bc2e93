//! Request bodies: hashed while they come in, since clients sign them without saying the hash, and kept on disk when they are large.

use std::io::{Read, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use codeworkspace_agentcore::MAX_BODY_BYTES as MAX_BYTES;
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes of a body that is kept in memory.
const IN_MEMORY: usize = 1024 * 1024;
/// Longest pause of a client that sends a body.
const IDLE: Duration = Duration::from_secs(30);

/// A whole body.
#[derive(Debug)]
pub struct Received {
    /// SHA-256 of all of it.
    pub hash: [u8; 32],
    content: Content,
}

#[derive(Debug)]
enum Content {
    Memory(Vec<u8>),
    Disk(std::fs::File, OwnedSemaphorePermit),
}

/// Why a body was not received.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is longer than [`MAX_BYTES`].
    #[error("the request's body is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// The client went, or paused too long.
    #[error("the request's body did not arrive: {0}")]
    Incomplete(String),
    /// The gateway's disk is full or broken.
    #[error("the request's body cannot be kept: {0}")]
    Disk(#[from] std::io::Error),
}

impl Received {
    /// Receives a body. Large ones wait for each other: `large` says how many there may be at once.
    pub async fn receive(
        body: Body,
        declared: Option<u64>,
        large: &Arc<Semaphore>,
    ) -> Result<Self, BodyError> {
        if declared.is_some_and(|length| length > MAX_BYTES) {
            return Err(BodyError::TooLong);
        }
        let mut hash = Sha256::new();
        let mut length: u64 = 0;
        let mut memory = Vec::new();
        let mut disk: Option<(std::fs::File, OwnedSemaphorePermit)> = None;
        let mut parts = body.into_data_stream();
        loop {
            let part = tokio::time::timeout(IDLE, parts.next())
                .await
                .map_err(|_| BodyError::Incomplete(format!("nothing came for {} s", IDLE.as_secs())))?;
            let Some(part) = part else {
                break;
            };
            let part = part.map_err(|error| BodyError::Incomplete(error.to_string()))?;
            length += u64::try_from(part.len()).unwrap_or(u64::MAX);
            if length > MAX_BYTES {
                return Err(BodyError::TooLong);
            }
            hash.update(&part);
            if let Some((file, _)) = &mut disk {
                // To the page cache: a blocking task for each part would cost more than it saves.
                file.write_all(&part)?;
            } else if memory.len() + part.len() <= IN_MEMORY {
                memory.extend_from_slice(&part);
            } else {
                let permit = large
                    .clone()
                    .acquire_owned()
                    .await
                    .map_err(|_| BodyError::Incomplete("the gateway ends".to_owned()))?;
                let mut file = tempfile::tempfile()?;
                file.write_all(&memory)?;
                file.write_all(&part)?;
                memory = Vec::new();
                disk = Some((file, permit));
            }
        }
        let content = match disk {
            Some((file, permit)) => Content::Disk(file, permit),
            None => Content::Memory(memory),
        };
        Ok(Self {
            hash: hash.finalize().into(),
            content,
        })
    }

    /// Gives all bytes to `read`, beside the reactor when they are many. While it runs the body counts as a large one.
    pub async fn read<T: Send + 'static>(
        self,
        read: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, BodyError> {
        match self.content {
            Content::Memory(bytes) => Ok(read(&bytes)),
            Content::Disk(mut file, permit) => {
                let work = move || {
                    let mut bytes = Vec::new();
                    file.seek(SeekFrom::Start(0))?;
                    file.read_to_end(&mut bytes)?;
                    let result = read(&bytes);
                    drop(permit);
                    Ok(result)
                };
                tokio::task::spawn_blocking(work)
                    .await
                    .map_err(|error| BodyError::Disk(std::io::Error::other(error)))?
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::stream;

    use super::*;

    fn body(parts: Vec<Vec<u8>>) -> Body {
        Body::from_stream(stream::iter(
            parts
                .into_iter()
                .map(|part| Ok::<_, std::io::Error>(Bytes::from(part))),
        ))
    }

    #[tokio::test]
    async fn small_and_large_bodies_arrive_whole_with_their_hash() {
        let large = Arc::new(Semaphore::new(1));
        for size in [0, 1, IN_MEMORY, IN_MEMORY + 1, 3 * IN_MEMORY] {
            let bytes: Vec<u8> = (0..size)
                .map(|index| u8::try_from(index % 251).unwrap())
                .collect();
            let parts = bytes.chunks(100_000).map(<[u8]>::to_vec).collect();
            let received = Received::receive(body(parts), None, &large).await.unwrap();
            assert_eq!(received.hash, <[u8; 32]>::from(Sha256::digest(&bytes)), "{size}");
            let read = received.read(<[u8]>::to_vec).await.unwrap();
            assert!(read == bytes, "{size}");
        }
        assert_eq!(large.available_permits(), 1);
    }

    #[tokio::test]
    async fn one_byte_too_many_is_refused_whether_it_was_declared_or_not() {
        let large = Arc::new(Semaphore::new(1));
        let refused = Received::receive(Body::empty(), Some(MAX_BYTES + 1), &large).await;
        assert!(matches!(refused, Err(BodyError::TooLong)));
        let part = vec![b'x'; 10_000_000];
        let mut parts = vec![part; 10];
        assert!(Received::receive(body(parts.clone()), None, &large).await.is_ok());
        parts.push(vec![b'x']);
        let refused = Received::receive(body(parts), None, &large).await;
        assert!(matches!(refused, Err(BodyError::TooLong)));
    }
}
