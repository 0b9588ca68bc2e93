//! Patterns that files are chosen with.

use std::{fmt, str::FromStr};

use crate::{
    path::{BundlePath, without_leading_dot},
    quote::Quoted,
};

/// Longest glob in bytes. It bounds the time that a hostile pattern can take.
pub const MAX_GLOB_BYTES: usize = 256;

/// A pattern of paths, parsed once: the `glob` of a `local` source, or its `path` (AIP-26; POSIX 2.14 where that leaves
/// things open).
///
/// `*` stands for any characters, `?` for one, `[abc]`, `[a-z]` and `[!a-z]` for one of a set, none of them for `/`.
/// `**` as a whole segment stands for any folders, also none; at the end for everything below. A dot at the start of a
/// segment is matched by a dot only. Braces mean themselves, as every other character does. There is no escape: `[*]`
/// is an asterisk.
///
/// Without `/`, a glob is about the name at any depth, as if it began with `**/`. With a `/`, which may be that of
/// a leading `./`, it is about the whole path: `./*.ts` has only the files at the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    parts: Vec<Part>,
}

/// One segment of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// `**`.
    Folders,
    Name(Vec<Token>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Character(char),
    /// `?`
    Any,
    /// `*`
    Run,
    /// `[…]` with its ranges; a single character is a range of one.
    Set {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Glob {
    /// Whether a text has one of the characters that make it a pattern.
    pub fn is_pattern(text: &str) -> bool {
        text.contains(['*', '?', '['])
    }

    /// The glob as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether this is a path of the pattern. Takes at most as many steps as glob and path have bytes, multiplied.
    pub fn matches(&self, path: &BundlePath) -> bool {
        // Which parts may come next, `parts.len()` being the end: all ways are followed at once, none twice.
        let mut next = vec![false; self.parts.len() + 1];
        next[0] = true;
        self.pass_folders(&mut next);
        for segment in path.segments() {
            let mut after = vec![false; self.parts.len() + 1];
            for (index, part) in self.parts.iter().enumerate().filter(|(index, _)| next[*index]) {
                match part {
                    Part::Folders if segment.starts_with('.') => {}
                    Part::Folders => {
                        after[index] = true;
                        after[index + 1] = true;
                    }
                    Part::Name(tokens) => after[index + 1] |= matches_name(tokens, segment),
                }
            }
            self.pass_folders(&mut after);
            next = after;
        }
        next[self.parts.len()]
    }

    /// `**` may stand for no folder at all, except at the end, where the files are.
    fn pass_folders(&self, next: &mut [bool]) {
        for (index, part) in self.parts.iter().enumerate() {
            if next[index] && *part == Part::Folders && index + 1 < self.parts.len() {
                next[index + 1] = true;
            }
        }
    }
}

/// Greedy with one place to come back to: a later `*` can do whatever an earlier one could by taking more.
fn matches_name(tokens: &[Token], name: &str) -> bool {
    if name.starts_with('.') && tokens.first() != Some(&Token::Character('.')) {
        return false;
    }
    let (mut at, mut rest) = (0, name);
    let mut last_run: Option<(usize, &str)> = None;
    loop {
        let mut characters = rest.chars();
        let character = characters.next();
        match (tokens.get(at), character) {
            (Some(Token::Run), _) => {
                at += 1;
                last_run = Some((at, rest));
                continue;
            }
            (Some(token), Some(character)) if token.is(character) => {
                at += 1;
                rest = characters.as_str();
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((after_run, from)) = last_run else {
            return false;
        };
        let mut shorter = from.chars();
        if shorter.next().is_none() {
            return false;
        }
        (at, rest) = (after_run, shorter.as_str());
        last_run = Some((at, rest));
    }
}

impl Token {
    fn is(&self, character: char) -> bool {
        match self {
            Self::Character(own) => *own == character,
            Self::Any => true,
            Self::Run => false,
            Self::Set { negated, ranges } => {
                let is_in = ranges
                    .iter()
                    .any(|(first, last)| (*first..=*last).contains(&character));
                is_in != *negated
            }
        }
    }
}

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text)
            .map(|parts| Self {
                text: text.to_owned(),
                parts,
            })
            .map_err(|rule| GlobError {
                glob: text.to_owned(),
                rule,
            })
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

fn parse(text: &str) -> Result<Vec<Part>, GlobRule> {
    let place = without_leading_dot(text);
    if place.is_empty() {
        return Err(GlobRule::Empty);
    }
    if text.len() > MAX_GLOB_BYTES {
        return Err(GlobRule::TooLong { bytes: text.len() });
    }
    if text.contains('\\') {
        return Err(GlobRule::Backslash);
    }
    if text.chars().any(char::is_control) {
        return Err(GlobRule::Control);
    }
    if place.starts_with('/') {
        return Err(GlobRule::Absolute);
    }
    let mut parts = Vec::new();
    if !text.contains('/') {
        parts.push(Part::Folders);
    }
    for segment in place.split('/') {
        let part = match segment {
            "" if place.ends_with('/') && !place.contains("//") => return Err(GlobRule::TrailingSlash),
            "" => return Err(GlobRule::EmptySegment),
            "." | ".." => return Err(GlobRule::DotSegment),
            "**" if parts.last() == Some(&Part::Folders) => continue,
            "**" => Part::Folders,
            name if name.contains("**") => return Err(GlobRule::Folders),
            name => Part::Name(parse_name(name)?),
        };
        parts.push(part);
    }
    Ok(parts)
}

fn parse_name(name: &str) -> Result<Vec<Token>, GlobRule> {
    let mut tokens = Vec::new();
    let mut rest = name.chars();
    while let Some(character) = rest.next() {
        tokens.push(match character {
            '*' => Token::Run,
            '?' => Token::Any,
            '[' => {
                let (set, after) = parse_set(rest.as_str())?;
                rest = after.chars();
                set
            }
            other => Token::Character(other),
        });
    }
    Ok(tokens)
}

/// A set whose `[` has been read, and what follows its `]`.
fn parse_set(text: &str) -> Result<(Token, &str), GlobRule> {
    let (negated, members) = match text.strip_prefix('!') {
        Some(members) => (true, members),
        None if text.starts_with('^') => return Err(GlobRule::Caret),
        None => (false, text),
    };
    let mut ranges = Vec::new();
    let mut rest = members.chars();
    while let Some(first) = rest.next() {
        // A bracket that closes nothing yet is a member.
        if first == ']' && !ranges.is_empty() {
            return Ok((Token::Set { negated, ranges }, rest.as_str()));
        }
        if first == '[' && rest.as_str().starts_with([':', '.', '=']) {
            return Err(GlobRule::NamedSet);
        }
        let mut ahead = rest.clone();
        let last = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(last)) if last != ']' => {
                rest = ahead;
                last
            }
            _ => first,
        };
        if last < first {
            return Err(GlobRule::Range);
        }
        ranges.push((first, last));
    }
    Err(GlobRule::OpenSet)
}

/// Text that is no glob, and the rule that it breaks. The message never shows raw control characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {rule}", Quoted(glob))]
pub struct GlobError {
    /// The text as it was given.
    pub glob: String,
    /// The first rule it breaks.
    pub rule: GlobRule,
}

/// The rules of [`Glob`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GlobRule {
    /// Nothing to match.
    #[error("is empty: it would match no file, so leave it out")]
    Empty,
    /// See [`MAX_GLOB_BYTES`].
    #[error("is {bytes} bytes long; a glob may have at most {MAX_GLOB_BYTES}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Globs are about relative paths.
    #[error("is absolute: paths are relative, so leave out the leading `/`")]
    Absolute,
    /// Globs are about files.
    #[error("ends in `/`: a glob takes files, so write `/**` for everything below a folder")]
    TrailingSlash,
    /// No path has one.
    #[error("has an empty segment (`//`)")]
    EmptySegment,
    /// No path has one.
    #[error("has a `.` or `..` segment")]
    DotSegment,
    /// There is no escape.
    #[error("has a backslash: a glob has no escapes, so write a special character as a set, like `[*]`")]
    Backslash,
    /// No path has one.
    #[error("has a control character")]
    Control,
    /// `**` beside something else would mean no more than `*`.
    #[error("has `**` beside other characters: it stands alone between slashes, as in `src/**/*.ts`")]
    Folders,
    /// A set ends before the next `/`.
    #[error("has a `[` without its `]` before the next `/`; the character itself is written `[[]`")]
    OpenSet,
    /// Shells disagree on it.
    #[error("has a set that begins with `^`: write `[!…]` for all characters but some")]
    Caret,
    /// They depend on a locale.
    #[error("has a named set like `[:alpha:]`: write its characters, as in `[a-zA-Z]`")]
    NamedSet,
    /// It would match nothing.
    #[error("has a range whose end comes before its start: write it the other way round, as in `[a-z]`")]
    Range,
}

#[cfg(test)]
mod tests;
