//! A file in the folder of the cache, which others may have written.
#![no_main]

use codeworkspace_source::fuzzing::{is_stored_tree, store_again};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assert!(!is_stored_tree(bytes), "a checksum was guessed");
    if let Some(again) = store_again(bytes) {
        assert_eq!(again, bytes, "two forms of the same tree");
    }
});
