use std::fmt;

/// Longest quotation in characters. Messages end up in status conditions, which have a size limit of their own.
const LONGEST: usize = 80;

/// Shows text that somebody else wrote inside a message of ours: between backticks, with control characters
/// escaped and the end cut off, so that a hostile name can neither break a log line nor fill a status.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}`", Escaped(self.0))
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

/// Several quotations as one phrase: `` `a`, `b` or `c` ``.
pub(crate) struct Alternatives<I>(pub(crate) I);

impl<I, S> fmt::Display for Alternatives<I>
where
    I: Iterator<Item = S> + Clone,
    S: AsRef<str>,
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = self.0.clone().peekable();
        let mut first = true;
        while let Some(name) = names.next() {
            let separator = match (first, names.peek()) {
                (true, _) => "",
                (false, Some(_)) => ", ",
                (false, None) => " or ",
            };
            write!(out, "{separator}{}", Quoted(name.as_ref()))?;
            first = false;
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
    fn alternatives_read_as_a_phrase() {
        let phrase = |names: &[&str]| Alternatives(names.iter()).to_string();
        assert_eq!(phrase(&[]), "");
        assert_eq!(phrase(&["a"]), "`a`");
        assert_eq!(phrase(&["a", "b"]), "`a` or `b`");
        assert_eq!(phrase(&["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
