use std::io::Write;

use flate2::{Compression, GzBuilder, write::GzEncoder};

/// More would cost time and save next to nothing on source code.
const LEVEL: u32 = 6;

/// The operating system byte that means "unknown", so that it is the same everywhere (RFC 1952, 2.3.1).
const UNKNOWN_SYSTEM: u8 = 255;

/// How the compressed bytes of every bundle begin: deflate, no flags, no time, no hint on the level.
pub(crate) const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, UNKNOWN_SYSTEM];

/// A compressor whose output depends on its input alone.
pub(crate) fn encoder<W: Write>(out: W) -> GzEncoder<W> {
    GzBuilder::new()
        .mtime(0)
        .operating_system(UNKNOWN_SYSTEM)
        .write(out, Compression::new(LEVEL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_always_the_same() {
        let mut encoder = encoder(Vec::new());
        encoder.write_all(b"some text").unwrap();
        let compressed = encoder.finish().unwrap();
        assert_eq!(compressed[..HEADER.len()], HEADER);
    }
}
