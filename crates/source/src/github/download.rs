//! From a commit to its files.

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf as _, Bytes};
use codeworkspace_bundle::code::CommitId;
use reqwest::Response;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::client::Client;
use super::lookup::renamed;
use super::session::Session;
use crate::archive::{self, Layout, RepositoryTree};
use crate::configuration::Reach;
use crate::error::{SourceError, SourceErrorReason as Reason};

/// Pieces of an archive that wait to be read. The network waits when the reader is slower.
const PIECES_IN_FLIGHT: usize = 4;

/// Downloads and reads the archive of a commit. `permit` is held until the reader has ended; `received_bytes` counts bytes as they
/// come.
pub(crate) async fn download(
    session: &Session<'_>,
    commit: &CommitId,
    permit: OwnedSemaphorePermit,
    received_bytes: &AtomicU64,
) -> Result<RepositoryTree, SourceError> {
    let client = session.client;
    let path = format!("/tarball/{commit}");
    let Some(mut reply) = session.get(&path, Reach::Downloads).await? else {
        return Err(session.missing("commit"));
    };
    if let Some(length) = reply.response.content_length() {
        check_size(client, length)?;
    }
    let (pieces, received) = mpsc::channel(PIECES_IN_FLIGHT);
    let (expected, limits) = (commit.clone(), client.limits().archive);
    let reader = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        archive::read(
            Pieces {
                received,
                current: Bytes::new(),
            },
            Layout::Commit(&expected),
            &limits,
        )
    });
    let transfer = transfer(client, &mut reply.response, pieces, received_bytes).await;
    let read = reader
        .await
        .map_err(|_| SourceError::new(Reason::ArchiveRefused, "the archive cannot be read"))?;
    // A transfer that failed explains why the reader found the archive cut.
    transfer?;
    let mut tree = read?;
    if reply.moved.is_some() {
        tree.warnings.push(renamed(session.repository, ""));
    }
    Ok(tree)
}

/// Hands the body's pieces to the reader until the body, or the reader's interest, ends.
async fn transfer(
    client: &Client,
    response: &mut Response,
    pieces: mpsc::Sender<Bytes>,
    received_bytes: &AtomicU64,
) -> Result<(), SourceError> {
    while let Some(piece) = client.chunk(response, Reason::ArchiveTruncated).await? {
        let length = piece.len() as u64;
        let total = received_bytes.fetch_add(length, Ordering::Relaxed) + length;
        check_size(client, total)?;
        if pieces.send(piece).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn check_size(client: &Client, bytes: u64) -> Result<(), SourceError> {
    let limit = client.limits().download_bytes;
    if bytes > limit {
        let text = format!(
            "the archive has at least {bytes} bytes, more than the limit of {limit} (maxDownloadBytes of the operator's \
             configuration)"
        );
        return Err(SourceError::new(Reason::TooLarge, text));
    }
    Ok(())
}

/// The pieces as a stream for blocking code. It ends when the sender is gone, whatever the reason.
struct Pieces {
    received: mpsc::Receiver<Bytes>,
    current: Bytes,
}

impl BufRead for Pieces {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.current.is_empty() {
            match self.received.blocking_recv() {
                Some(piece) => self.current = piece,
                None => break,
            }
        }
        Ok(&self.current)
    }

    fn consume(&mut self, amount: usize) {
        self.current.advance(amount);
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let length = available.len().min(buffer.len());
        buffer[..length].copy_from_slice(&available[..length]);
        self.consume(length);
        Ok(length)
    }
}
