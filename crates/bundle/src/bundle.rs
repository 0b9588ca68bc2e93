use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::GzEncoder;

use crate::{
    caps::{BundleSizeError, Caps},
    digest::{Digest, Hasher},
    gzip, tar,
    tree::FileTree,
};

/// The one archive that is delivered to a runner: all files of all sources, as a compressed tar.
///
/// Equal trees give equal digests and equal bytes, on every machine and at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The bundle's identity, of the uncompressed tar.
    pub digest: Digest,
    /// The number of entries: files and links.
    pub files: u64,
    /// The sum of all files' contents in bytes, as they will be unpacked.
    pub size_bytes: u64,
    /// The gzip stream of the tar; read it with [`BundleReader`](crate::BundleReader).
    pub compressed: Bytes,
}

/// Why there is no bundle of a tree.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The tree is over a limit.
    #[error(transparent)]
    Size(#[from] BundleSizeError),
    /// The compressor failed.
    #[error("the bundle can't be compressed: {0}")]
    Compress(#[from] io::Error),
}

impl Bundle {
    /// Packs a tree that is within the limits. This is work for a processor, some 50 ms for each MiB at worst: keep it
    /// off threads that serve requests. Beside the tree only the compressed bytes are held in memory.
    pub fn build(tree: &FileTree, caps: &Caps) -> Result<Self, BuildError> {
        caps.check(tree)?;
        let mut out = HashingEncoder::new(Vec::new());
        tar::write(tree, &mut out)?;
        let (digest, compressed) = out.finish()?;
        Ok(Self {
            digest,
            files: tree.len() as u64,
            size_bytes: tree.content_bytes(),
            compressed: compressed.into(),
        })
    }
}

/// Hashes what it compresses.
#[derive(Debug)]
pub(crate) struct HashingEncoder<W: Write> {
    hasher: Hasher,
    encoder: GzEncoder<W>,
}

impl<W: Write> HashingEncoder<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            hasher: Hasher::default(),
            encoder: gzip::encoder(out),
        }
    }

    pub(crate) fn finish(self) -> io::Result<(Digest, W)> {
        Ok((self.hasher.finish(), self.encoder.finish()?))
    }
}

impl<W: Write> Write for HashingEncoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.encoder.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }
}

#[cfg(test)]
mod tests;
