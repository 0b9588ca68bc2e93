//! The files that the benchmarks pack: 2,000 with 10 MiB in all, of text that compresses about as well as source code.

use std::error::Error;

use bytes::Bytes;
use codeworkspace_bundle::{Entry, FileTree};

const FILES: usize = 2_000;
const TOTAL_BYTES: usize = 10 * 1_024 * 1_024;

const WORDS: [&str; 24] = [
    "import", "export", "const", "return", "function", "await", "async", "value", "index", "result",
    "request", "response", "error", "(", ")", "{", "}", "=>", "=", ";", ",", ".", "\"", "\n    ",
];

/// The same tree at every call and on every machine.
pub(crate) fn tree() -> Result<FileTree, Box<dyn Error>> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut tree = FileTree::new();
    for index in 0..FILES {
        let path = format!("packages/package-{:02}/src/module-{index:04}.ts", index % 40);
        let mut text = String::with_capacity(TOTAL_BYTES / FILES + 16);
        while text.len() < TOTAL_BYTES / FILES {
            // Now and then a name that no other file has.
            if random.below(6) == 0 {
                let name = format!("name_{:x} ", random.below(1 << 20));
                text.push_str(&name);
            } else {
                text.push_str(WORDS[random.below(WORDS.len())]);
                text.push(' ');
            }
        }
        let entry = Entry::from_contents(Bytes::from(text));
        tree.insert(path.parse()?, entry)?;
    }
    Ok(tree)
}

/// A small generator, since all that matters is that it is the same everywhere (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit
    }
}
