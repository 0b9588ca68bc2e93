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
}
