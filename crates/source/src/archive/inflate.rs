//! One gzip member, decompressed no further than the limits allow.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

use super::ArchiveError;

/// More inflated bytes than this for each compressed one are a bomb: source text has a ratio below 20, zeros 1,029.
const MAXIMUM_RATIO: u64 = 250;
/// The ratio is not looked at before so many inflated bytes: a small archive may well be mostly zeros.
const RATIO_FREE_BYTES: u64 = 16 * 1024 * 1024;
/// Zeros that may follow the two blocks that end an archive. Git fills up to a record of 10,240 bytes.
const MAXIMUM_PADDING: u64 = 10_240;
/// Size of a tar block.
const BLOCK_BYTES: u64 = 512;

/// Counts what is consumed.
struct Counted<R> {
    inner: R,
    bytes: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.bytes += amount as u64;
        self.inner.consume(amount);
    }
}

/// The decompressed bytes, until their end or until something is wrong.
pub(super) struct Inflated<R> {
    decoder: GzDecoder<Counted<R>>,
    limit: u64,
    bytes: u64,
    ended: bool,
    failure: Option<ArchiveError>,
}

impl<R: BufRead> Inflated<R> {
    pub(super) fn new(input: R, limit: u64) -> Self {
        let decoder = GzDecoder::new(Counted {
            inner: input,
            bytes: 0,
        });
        Self {
            decoder,
            limit,
            bytes: 0,
            ended: false,
            failure: None,
        }
    }

    /// What is wrong with the stream, when reading it failed.
    pub(super) fn failure(self) -> Option<ArchiveError> {
        // A reader that wanted more than a complete stream has: the archive inside was cut.
        self.failure
            .or_else(|| self.ended.then_some(ArchiveError::Truncated))
    }

    /// Reads from the first of the two zero blocks, which tar has consumed, to the end of everything.
    pub(super) fn finish(mut self) -> Result<(), ArchiveError> {
        let mut buffer = [0; 4096];
        let mut padding = 0;
        loop {
            let read = match self.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(_) => return Err(self.failure().unwrap_or(ArchiveError::Truncated)),
            };
            padding += read as u64;
            if padding > MAXIMUM_PADDING || buffer[..read].iter().any(|byte| *byte != 0) {
                return Err(ArchiveError::refused("something follows its end"));
            }
        }
        if padding < BLOCK_BYTES || !padding.is_multiple_of(BLOCK_BYTES) {
            return Err(ArchiveError::Truncated);
        }
        match self.decoder.into_inner().fill_buf() {
            Ok([]) => Ok(()),
            _ => Err(ArchiveError::refused("something follows the compressed data")),
        }
    }

    fn check(&mut self) -> io::Result<()> {
        if self.bytes > self.limit {
            return self.fail(ArchiveError::TooLarge {
                what: "the archive has at least".to_owned(),
                actual: self.bytes,
                unit: "bytes when decompressed",
                limit: self.limit,
                setting: "maxInflatedBytes",
            });
        }
        let compressed = self.decoder.get_ref().bytes;
        if self.bytes > RATIO_FREE_BYTES && self.bytes / MAXIMUM_RATIO > compressed {
            return self.fail(ArchiveError::refused(format!(
                "{compressed} bytes grow to more than {} when decompressed, a ratio above {MAXIMUM_RATIO}",
                self.bytes
            )));
        }
        Ok(())
    }

    fn fail(&mut self, failure: ArchiveError) -> io::Result<()> {
        self.failure = Some(failure);
        Err(io::Error::other("see `failure`"))
    }
}

impl<R: BufRead> Read for Inflated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.failure.is_some() {
            return Err(io::Error::other("see `failure`"));
        }
        match self.decoder.read(buffer) {
            Ok(read) => {
                self.ended = read == 0 && !buffer.is_empty();
                self.bytes += read as u64;
                self.check()?;
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let failure = if error.kind() == io::ErrorKind::UnexpectedEof {
                    ArchiveError::Truncated
                } else {
                    ArchiveError::refused("its compressed data is corrupt")
                };
                self.fail(failure).map(|()| 0)
            }
        }
    }
}
