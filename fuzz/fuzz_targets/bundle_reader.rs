//! Bytes that claim to be a compressed bundle.
#![no_main]

use codeworkspace_bundle::{Bundle, BundleReader, Caps, FileTree};
use libfuzzer_sys::fuzz_target;

const CAPS: Caps = Caps {
    entries: 1_000,
    file_bytes: 1 << 20,
    total_bytes: 4 << 20,
};

fuzz_target!(|compressed: &[u8]| {
    let Ok(mut reader) = BundleReader::with_caps(compressed, CAPS) else {
        return;
    };
    let mut tree = FileTree::new();
    for entry in reader.by_ref() {
        let Ok((path, entry)) = entry else { return };
        tree.insert(path, entry).expect("what is read makes a legal tree");
    }
    let Ok(digest) = reader.finish() else { return };
    let bundle = Bundle::build(&tree, &CAPS).expect("what was read can be built");
    assert_eq!(bundle.digest, digest, "two archives of the same tree");
});
