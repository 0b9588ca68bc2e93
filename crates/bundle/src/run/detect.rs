//! Telling a file from a command line.

/// Whatever contains one of these is for a shell. Both lists of AIP-26, that of the text and that of its
/// implementer's guide, taken together.
const METACHARACTERS: [&str; 9] = ["&&", "||", "|", ";", ">", "<", "`", "$(", "${"];

/// The path that a string means, if it means one: without the quotes that may stand around a part with spaces. `None`
/// if the string is a command line: one with a metacharacter, or with a space outside of quotes.
pub(super) fn file_path(text: &str) -> Option<String> {
    if METACHARACTERS
        .iter()
        .any(|metacharacter| text.contains(metacharacter))
    {
        return None;
    }
    let mut path = String::new();
    let mut rest = text.trim_matches(|character: char| character.is_ascii_whitespace());
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        let quoted = matches!(character, '"' | '\'')
            .then(|| after.split_once(character))
            .flatten();
        rest = match quoted {
            Some((inside, after)) => {
                path.push_str(inside);
                after
            }
            None if character.is_ascii_whitespace() => return None,
            None => {
                path.push(character);
                after
            }
        };
    }
    Some(path)
}

/// The first word of a command line, without quotes.
pub(super) fn first_word(command_line: &str) -> &str {
    let line = command_line.trim_start();
    let quoted = line.chars().next().filter(|first| matches!(first, '"' | '\''));
    let word = match quoted {
        Some(quote) => line[1..].split(quote).next(),
        None => line
            .split(|letter: char| letter.is_ascii_whitespace() || ";|<>&`".contains(letter))
            .next(),
    };
    word.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_path() {
        for text in [
            "tool.ts",
            "src/index.ts",
            "--help.py",
            "-rf",
            "@x",
            "it's.py",
            "a&b.py",
            "$x.py",
            "a*b.sh",
            "~/x.py",
            "#x.py",
        ] {
            assert_eq!(file_path(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn quotes_around_spaces_keep_a_path_together() {
        for (text, path) in [
            ("\"my tool.py\"", "my tool.py"),
            ("'my tool.py'", "my tool.py"),
            ("src/\"my tool\".py", "src/my tool.py"),
            ("\"it's.py\"", "it's.py"),
            ("\"\"", ""),
        ] {
            assert_eq!(file_path(text).as_deref(), Some(path), "{text}");
        }
    }

    #[test]
    fn spaces_around_a_path_do_not_count() {
        for text in [" tool.py", "tool.py ", "tool.py\n", "\t tool.py \r\n"] {
            assert_eq!(file_path(text).as_deref(), Some("tool.py"), "{text:?}");
        }
    }

    #[test]
    fn a_metacharacter_or_an_unquoted_space_makes_a_command_line() {
        for text in [
            "npm run build && node dist/tool.js",
            "tail -f /dev/null",
            "a&&b",
            "a||b",
            "a|b",
            "a;b",
            "a>b",
            "a<b",
            "`a`",
            "$(a)",
            "${a}",
            "a\tb",
            "a\nb",
            "it's a.py",
            "\"a b\" c",
            "\"a;b.py\"",
        ] {
            assert_eq!(file_path(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_first_word_of_a_command_line() {
        for (line, word) in [
            ("tool.py --all", "tool.py"),
            ("  tool.py|cat", "tool.py"),
            ("'my tool.py' --all", "my tool.py"),
            ("./a.sh;b", "./a.sh"),
            ("", ""),
        ] {
            assert_eq!(first_word(line), word, "{line}");
        }
    }
}
