//! Foreign bytes and texts, made fit for an event.

/// Turns a stream's bytes into text as they come: a character may arrive in two parts, and what is no UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pending: Vec<u8>,
    replaced: bool,
}

impl Decoder {
    /// The text of the next bytes, as far as it is complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        let joined;
        let bytes = if self.pending.is_empty() {
            bytes
        } else {
            self.pending.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.pending);
            &joined
        };
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if chunks.peek().is_none() && is_beginning(invalid) {
                self.pending = invalid.to_vec();
            } else {
                self.replaced = true;
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    /// What is left when the stream has ended.
    pub(super) fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.pending).is_empty() {
            return "";
        }
        self.replaced = true;
        "\u{fffd}"
    }

    /// Whether the text lacks something that the bytes had.
    pub(super) fn replaced(&self) -> bool {
        self.replaced
    }
}

/// Whether more bytes could make it a character.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

/// The longest beginning of whole characters that has at most `limit` bytes.
pub(super) fn beginning(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// The text without the terminal's control sequences (ECMA-48: CSI with its parameters, OSC up to its terminator, and two-character
/// sequences).
pub(super) fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('[') => {
                characters.find(|character| matches!(character, '\u{40}'..='\u{7e}'));
            }
            Some(']') => {
                let mut last = ' ';
                for character in characters.by_ref() {
                    if character == '\u{7}' || (last == '\u{1b}' && character == '\\') {
                        break;
                    }
                    last = character;
                }
            }
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(parts: &[&[u8]]) -> (String, bool) {
        let mut decoder = Decoder::default();
        let mut text: String = parts.iter().map(|part| decoder.push(part)).collect();
        text.push_str(decoder.finish());
        (text, decoder.replaced())
    }

    #[test]
    fn a_character_in_two_parts_is_one() {
        assert_eq!(
            decoded(&[b"a\xf0\x9f", b"\xa6", b"\x80b"]),
            ("a🦀b".to_owned(), false)
        );
        assert_eq!(decoded(&[b"\xf0\x9f"]), ("\u{fffd}".to_owned(), true));
        assert_eq!(
            decoded(&[b"\xff\xfe", b"\xc3", b"x"]),
            ("\u{fffd}\u{fffd}\u{fffd}x".to_owned(), true)
        );
    }

    #[test]
    fn colours_are_taken_out_and_brackets_are_not() {
        let coloured =
            "\u{1b}[0;31mValueError\u{1b}[0m: a[0] \u{1b}]0;title\u{7}\u{1b}]8;;x\u{1b}\\end\u{1b}[1";
        assert_eq!(without_colours(coloured), "ValueError: a[0] end");
    }

    proptest! {
        #[test]
        fn however_bytes_are_cut_the_text_is_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..64), cut in 0usize..64) {
            let cut = cut.min(bytes.len());
            let (text, replaced) = decoded(&[&bytes[..cut], &bytes[cut..]]);
            prop_assert_eq!(&text, &String::from_utf8_lossy(&bytes));
            prop_assert_eq!(replaced, std::str::from_utf8(&bytes).is_err());
        }

        #[test]
        fn what_has_no_escapes_is_unchanged(text in "[^\u{1b}]{0,50}") {
            prop_assert_eq!(without_colours(&text), text);
        }
    }
}
