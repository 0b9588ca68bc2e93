use std::fmt;

/// Longest quotation in characters. Messages end up in status conditions, which have a size limit of their own.
const LONGEST: usize = 80;

/// Shows text that somebody else wrote inside a message of ours: between backticks, with control characters
/// escaped and the end cut off, so that a hostile name can neither break a log line nor fill a status.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            out.write_str(r#""""#)
        } else {
            write!(out, "`{}`", Escaped(self.0))
        }
    }
}

/// The same without the backticks, for field paths and summaries.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        let mut characters = self.0.chars();
        for character in characters.by_ref().take(LONGEST) {
            if character.is_control() {
                write!(out, "{}", character.escape_default())?;
            } else {
                out.write_char(character)?;
            }
        }
        if characters.next().is_some() {
            out.write_char('…')
        } else {
            Ok(())
        }
    }
}

/// Several quotations in a row: `` `a`, `b` ``.
pub(crate) struct Listed<'a>(pub(crate) &'a [&'a str]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(out, "{separator}{}", Quoted(name))?;
        }
        Ok(())
    }
}

/// The first three of many quotations, and a count: `` `a`, `b`, `c` and 4 more ``.
pub(crate) struct Shortlist<'a>(pub(crate) &'a [&'a str]);

impl fmt::Display for Shortlist<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        let (shown, more) = self.0.split_at(self.0.len().min(SHOWN));
        Listed(shown).fmt(out)?;
        match more.len() {
            0 => Ok(()),
            count => write!(out, " and {count} more"),
        }
    }
}

/// Cuts a text at a character's boundary so that it has at most `limit` bytes, an ellipsis included.
pub fn shortened(mut text: String, limit: usize) -> String {
    const ELLIPSIS: char = '…';
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub(ELLIPSIS.len_utf8())));
        text.push(ELLIPSIS);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(Quoted("a\nb\0\u{85}").to_string(), r"`a\nb\u{0}\u{85}`");
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(
            Quoted(&"ü".repeat(81)).to_string(),
            format!("`{}…`", "ü".repeat(80))
        );
        assert_eq!(
            Quoted(&"ü".repeat(80)).to_string(),
            format!("`{}`", "ü".repeat(80))
        );
    }

    #[test]
    fn nothing_is_visible_as_an_empty_string() {
        assert_eq!(Quoted("").to_string(), r#""""#);
    }

    #[test]
    fn a_list_has_commas() {
        assert_eq!(Listed(&[]).to_string(), "");
        assert_eq!(Listed(&["a"]).to_string(), "`a`");
        assert_eq!(Listed(&["a", "b", "c"]).to_string(), "`a`, `b`, `c`");
    }

    #[test]
    fn a_short_list_counts_what_it_leaves_out() {
        assert_eq!(Shortlist(&["a", "b", "c"]).to_string(), "`a`, `b`, `c`");
        assert_eq!(
            Shortlist(&["a", "b", "c", "d", "e"]).to_string(),
            "`a`, `b`, `c` and 2 more"
        );
    }

    #[test]
    fn a_text_is_shortened_between_characters() {
        assert_eq!(shortened("üüü".to_owned(), 6), "üüü");
        assert_eq!(shortened("üüüü".to_owned(), 6), "ü…");
    }
}
