//! The end of a stream, kept while its bytes pass by.

use crate::record::StreamRecord;

/// Bytes of a stream's end that a record keeps at most, counted in UTF-8.
pub const MAX_TAIL_BYTES: usize = 1024;

/// Counts a stream and remembers its last [`MAX_TAIL_BYTES`] bytes, in constant memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamTail {
    total: u64,
    end: Vec<u8>,
}

impl StreamTail {
    /// Takes note of the stream's next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let kept = &bytes[bytes.len().saturating_sub(MAX_TAIL_BYTES)..];
        let excess = (self.end.len() + kept.len()).saturating_sub(MAX_TAIL_BYTES);
        self.end.drain(..excess);
        self.end.extend_from_slice(kept);
    }

    /// What a record says about the stream so far.
    ///
    /// Bytes that are not UTF-8 become U+FFFD, which may take more room than they did; a character that the cut went through is
    /// left out whole.
    pub fn to_record(&self) -> StreamRecord {
        let cut = self.total > self.end.len() as u64;
        let whole = if cut {
            skip_broken_character(&self.end)
        } else {
            &self.end
        };
        let text = String::from_utf8_lossy(whole);
        let tail = suffix_within(&text, MAX_TAIL_BYTES, char::len_utf8);
        StreamRecord {
            total_bytes: self.total,
            truncated: cut || tail.len() < text.len(),
            tail: tail.to_owned(),
        }
    }
}

/// The longest suffix of whole characters that costs at most `budget`.
pub(crate) fn suffix_within(text: &str, budget: usize, cost: impl Fn(char) -> usize) -> &str {
    let mut left = budget;
    let mut start = text.len();
    for (index, character) in text.char_indices().rev() {
        match left.checked_sub(cost(character)) {
            Some(rest) => (left, start) = (rest, index),
            None => break,
        }
    }
    &text[start..]
}

/// Drops the continuation bytes (at most three, RFC 3629) that a cut left without their first byte.
fn skip_broken_character(bytes: &[u8]) -> &[u8] {
    let broken = bytes
        .iter()
        .take(3)
        .take_while(|byte| (0x80..0xC0).contains(*byte))
        .count();
    &bytes[broken..]
}
