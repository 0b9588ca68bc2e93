//! The tar inside a bundle. The compression around it and the checksums in it are made here, since mutations rarely get
//! through them.
#![no_main]

use std::io::Write;

use codeworkspace_bundle::{Bundle, BundleReader, Caps, FileTree};
use flate2::{Compression, GzBuilder};
use libfuzzer_sys::fuzz_target;

const CAPS: Caps = Caps {
    entries: 1_000,
    file_bytes: 1 << 20,
    total_bytes: 4 << 20,
};

const BLOCK: usize = 512;

fuzz_target!(|tar: &[u8]| {
    let mut tar = tar.to_vec();
    tar.chunks_exact_mut(BLOCK)
        .filter(|block| block[257..262] == *b"ustar")
        .for_each(seal);
    let mut encoder = GzBuilder::new()
        .operating_system(255)
        .write(Vec::new(), Compression::new(6));
    encoder.write_all(&tar).expect("memory takes everything");
    let compressed = encoder.finish().expect("memory takes everything");

    let mut reader = BundleReader::with_caps(&compressed[..], CAPS).expect("the header is a bundle's");
    let mut tree = FileTree::new();
    for entry in reader.by_ref() {
        let Ok((path, entry)) = entry else { return };
        tree.insert(path, entry).expect("what is read makes a legal tree");
    }
    let Ok(digest) = reader.finish() else { return };
    let bundle = Bundle::build(&tree, &CAPS).expect("what was read can be built");
    assert_eq!(bundle.digest, digest, "two archives of the same tree");
});

/// Gives a header block the checksum that belongs to it.
fn seal(block: &mut [u8]) {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().copied().map(u32::from).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}
