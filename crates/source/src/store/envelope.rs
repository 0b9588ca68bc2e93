//! The form of every stored file: format and key, contents, checksum.
//!
//! ```text
//! codeworkspace cache 1 \n | bytes of the key, u32 | the key | contents … | SHA-256 of all before
//! ```
//! Numbers are big-endian.

use std::io::{self, Read, Write};

use sha2::{Digest as _, Sha256};

use super::key::Key;

/// Names the format. Another number makes files of other versions count as absent.
const FORMAT: &[u8] = b"codeworkspace cache 1\n";
const CHECKSUM_BYTES: u64 = 32;
const PIECE_BYTES: u64 = 64 * 1024;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// It is not what was written under this key.
    #[error("the file {0}")]
    Damaged(&'static str),
    /// It cannot be read now.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Bytes that the envelope adds to contents.
pub(super) fn overhead(key: &Key) -> u64 {
    (FORMAT.len() + size_of::<u32>() + key.as_str().len()) as u64 + CHECKSUM_BYTES
}

/// Writes an envelope around what is written to it.
pub(super) struct Sealer<W> {
    inner: W,
    hasher: Sha256,
}

impl<W: Write> Sealer<W> {
    pub(super) fn new(inner: W, key: &Key) -> io::Result<Self> {
        let mut sealer = Self {
            inner,
            hasher: Sha256::new(),
        };
        sealer.write_all(FORMAT)?;
        write_text(&mut sealer, key.as_str())?;
        Ok(sealer)
    }

    /// Writes the checksum.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.inner.write_all(&self.hasher.finalize())?;
        Ok(self.inner)
    }
}

impl<W: Write> Write for Sealer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Writes a length and a text.
pub(super) fn write_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    write_length(out, text.len())?;
    out.write_all(text.as_bytes())
}

/// Writes a number of bytes or things. No length in a tree comes near the largest one: its archive was smaller.
pub(super) fn write_length(out: &mut impl Write, length: usize) -> io::Result<()> {
    let length = u32::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
    out.write_all(&length.to_be_bytes())
}

/// Reads an envelope. Nothing that it returns is to be believed before [`finish`](Self::finish).
pub(super) struct Opener<R> {
    inner: R,
    hasher: Sha256,
    /// Bytes of contents that have not been read.
    left: u64,
}

impl<R: Read> Opener<R> {
    /// Begins to read a file of `bytes` bytes, and refuses one with another key.
    pub(super) fn new(inner: R, bytes: u64, key: &Key) -> Result<Self, Unreadable> {
        let left = bytes
            .checked_sub(CHECKSUM_BYTES)
            .ok_or(Unreadable::Damaged("is too short"))?;
        let mut opener = Self {
            inner,
            hasher: Sha256::new(),
            left,
        };
        if opener.bytes(FORMAT.len() as u64)? != FORMAT {
            return Err(Unreadable::Damaged("has another format"));
        }
        if opener.length()? as usize != key.as_str().len()
            || opener.bytes(key.as_str().len() as u64)? != key.as_str().as_bytes()
        {
            return Err(Unreadable::Damaged("is about something else"));
        }
        Ok(opener)
    }

    /// Reads so many bytes. Takes no more memory than the file has bytes, whatever lengths it claims.
    pub(super) fn bytes(&mut self, count: u64) -> Result<Vec<u8>, Unreadable> {
        self.left = self
            .left
            .checked_sub(count)
            .ok_or(Unreadable::Damaged("claims more than it holds"))?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(usize::try_from(count).unwrap_or(usize::MAX))
            .map_err(|_| Unreadable::Io(io::ErrorKind::OutOfMemory.into()))?;
        self.inner.by_ref().take(count).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != count {
            return Err(Unreadable::Damaged("ends early"));
        }
        self.hasher.update(&bytes);
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Unreadable> {
        Ok(self.bytes(1)?[0])
    }

    pub(super) fn length(&mut self) -> Result<u32, Unreadable> {
        let bytes = self.bytes(size_of::<u32>() as u64)?;
        Ok(bytes
            .into_iter()
            .fold(0, |number, byte| number << 8 | u32::from(byte)))
    }

    pub(super) fn text(&mut self) -> Result<String, Unreadable> {
        let length = self.length()?;
        String::from_utf8(self.bytes(length.into())?)
            .map_err(|_| Unreadable::Damaged("has text that is not UTF-8"))
    }

    /// Everything that is left, unless that is more than `limit`.
    pub(super) fn rest(&mut self, limit: u64) -> Result<Vec<u8>, Unreadable> {
        if self.left > limit {
            return Err(Unreadable::Damaged("is too long"));
        }
        self.bytes(self.left)
    }

    /// Reads over everything that is left.
    pub(super) fn pass(&mut self) -> Result<(), Unreadable> {
        while self.left > 0 {
            self.bytes(self.left.min(PIECE_BYTES))?;
        }
        Ok(())
    }

    /// Compares the checksum, which must be the end.
    pub(super) fn finish(self) -> Result<(), Unreadable> {
        if self.left > 0 {
            return Err(Unreadable::Damaged("has more than it should"));
        }
        let mut end = Vec::new();
        self.inner.take(CHECKSUM_BYTES + 1).read_to_end(&mut end)?;
        if end == self.hasher.finalize()[..] {
            Ok(())
        } else {
            Err(Unreadable::Damaged("has a wrong checksum"))
        }
    }
}
