//! Archives made by hand, honest and hostile.

use std::io::Write as _;

use codeworkspace_bundle::code::CommitId;
use flate2::Compression;
use flate2::write::GzEncoder;

pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

pub(crate) fn commit() -> CommitId {
    COMMIT.parse().unwrap()
}

/// One pax record, its length included in itself.
pub(crate) fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + " =\n".len();
    let mut length = rest;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    [format!("{length} {key}=").as_bytes(), value, b"\n"].concat()
}

/// An uncompressed archive under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tar(Vec<u8>);

impl Tar {
    /// An archive that begins as those of git do.
    pub(crate) fn new() -> Self {
        Self::default().entry(
            b'g',
            b"pax_global_header",
            b"",
            &record("comment", COMMIT.as_bytes()),
        )
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends any entry. `name` may be longer than a header allows only by a prior extended header.
    pub(crate) fn entry(self, kind: u8, name: &[u8], link: &[u8], contents: &[u8]) -> Self {
        let header = header(kind, name, link, contents.len() as u64, 0o664);
        self.raw(&header).contents(contents)
    }

    pub(crate) fn contents(mut self, contents: &[u8]) -> Self {
        self.0.extend_from_slice(contents);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn file(self, name: &str, contents: &str) -> Self {
        self.entry(b'0', name.as_bytes(), b"", contents.as_bytes())
    }

    pub(crate) fn folder(self, name: &str) -> Self {
        self.entry(b'5', name.as_bytes(), b"", b"")
    }

    pub(crate) fn link(self, name: &str, target: &str) -> Self {
        self.entry(b'2', name.as_bytes(), target.as_bytes(), b"")
    }

    /// Records for the next entry.
    pub(crate) fn extended(self, records: &[u8]) -> Self {
        self.entry(b'x', b"records", b"", records)
    }

    /// The two zero blocks.
    pub(crate) fn end(self) -> Vec<u8> {
        self.raw(&[0; 1024]).0
    }

    pub(crate) fn unfinished(self) -> Vec<u8> {
        self.0
    }
}

/// A ustar header with a right checksum.
pub(crate) fn header(kind: u8, name: &[u8], link: &[u8], size: u64, mode: u32) -> Vec<u8> {
    let mut block = vec![0; 512];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name[..name.len().min(100)]);
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, b"00000000000");
    put(156, &[kind]);
    put(157, &link[..link.len().min(100)]);
    put(257, b"ustar\x0000");
    with_checksum(block)
}

/// Sets the checksum of a header that was changed.
pub(crate) fn with_checksum(mut block: Vec<u8>) -> Vec<u8> {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
