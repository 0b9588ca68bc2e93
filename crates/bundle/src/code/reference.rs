use std::{fmt, str::FromStr};

use crate::quote::Quoted;

/// Longest reference in bytes: file systems that store loose references allow no more in one segment.
const LONGEST: usize = 255;

/// The full id of a commit: 40 (SHA-1) or 64 (SHA-256) lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(String);

impl CommitId {
    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Text that is no [`CommitId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a commit id is 40 or 64 lower-case hex digits")]
pub struct CommitIdError;

impl FromStr for CommitId {
    type Err = CommitIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if matches!(text.len(), 40 | 64) && is_hex {
            Ok(Self(text.to_owned()))
        } else {
            Err(CommitIdError)
        }
    }
}

/// The `ref` of a `github` source (AIP-26): which commit is meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GitReference {
    /// A commit by its full id.
    Commit(CommitId),
    /// `refs/tags/x`, said explicitly: the tag `x` only.
    Tag(String),
    /// `refs/heads/x`, said explicitly: the branch `x` only.
    Branch(String),
    /// A name to be looked up among tags and branches.
    Name(String),
}

/// How long the commit that a reference led to stays true (AIP-26, "Cache invalidation").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheClass {
    /// A commit id: its tree never changes.
    Forever,
    /// A version tag (`v1`, `v1.2.3`): looked up again after 24 hours, since tags may move.
    Day,
    /// Everything else: looked up at every scan.
    EveryScan,
}

impl GitReference {
    /// The class by the shape of the name alone.
    pub fn cache_class(&self) -> CacheClass {
        match self {
            Self::Commit(_) => CacheClass::Forever,
            Self::Tag(name) | Self::Name(name) if is_version(name) => CacheClass::Day,
            Self::Tag(_) | Self::Name(_) | Self::Branch(_) => CacheClass::EveryScan,
        }
    }

    /// Whether a name consists of hex digits only, so that somebody who wrote it probably meant a commit. When no tag
    /// or branch has that name, the message should ask for the full lower-case id.
    pub fn resembles_commit_id(&self) -> bool {
        matches!(self, Self::Name(name) if name.bytes().all(|byte| byte.is_ascii_hexdigit()))
    }
}

/// `^v[0-9]+(\.[0-9]+)*$`
fn is_version(name: &str) -> bool {
    name.strip_prefix('v').is_some_and(|numbers| {
        numbers
            .split('.')
            .all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// The reference as it may be written in a manifest.
impl fmt::Display for GitReference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit(id) => write!(out, "{id}"),
            Self::Tag(name) => write!(out, "refs/tags/{name}"),
            Self::Branch(name) => write!(out, "refs/heads/{name}"),
            Self::Name(name) => out.write_str(name),
        }
    }
}

/// Text that can be no name of a tag or branch, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {rule}; write a branch, a tag or a full commit id", Quoted(reference))]
pub struct GitReferenceError {
    reference: String,
    rule: GitReferenceRule,
}

/// The rules that git itself has for names of references (`git check-ref-format`), and a few for this field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum GitReferenceRule {
    #[error("is empty")]
    Empty,
    #[error("is longer than {LONGEST} bytes")]
    TooLong,
    #[error("begins with a dash")]
    Dash,
    #[error("is no tag or branch: only `refs/tags/…` and `refs/heads/…` can be named in full")]
    OtherNamespace,
    #[error("means another commit in each clone")]
    Head,
    #[error("is an expression, not a name")]
    Expression,
    #[error("has a space or a control character")]
    Character,
    #[error("has a part that is empty, begins with a dot, or ends in a dot or `.lock`")]
    Segment,
}

impl FromStr for GitReference {
    type Err = GitReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, as_written): (&str, fn(String) -> Self) = match text.strip_prefix("refs/") {
            None => (text, Self::Name),
            Some(full) => match full.split_once('/') {
                Some(("tags", name)) => (name, Self::Tag),
                Some(("heads", name)) => (name, Self::Branch),
                _ => {
                    let rule = GitReferenceRule::OtherNamespace;
                    return Err(GitReferenceError {
                        reference: text.to_owned(),
                        rule,
                    });
                }
            },
        };
        if let Some(rule) = broken_rule(name) {
            return Err(GitReferenceError {
                reference: text.to_owned(),
                rule,
            });
        }
        match text.parse() {
            Ok(id) => Ok(Self::Commit(id)),
            Err(CommitIdError) => Ok(as_written(name.to_owned())),
        }
    }
}

fn broken_rule(name: &str) -> Option<GitReferenceRule> {
    let is_expression = name == "@"
        || name.contains("..")
        || name.contains("@{")
        || name.contains(['~', '^', ':', '?', '*', '[', '\\']);
    let has_bad_segment = name.split('/').any(|segment| {
        let lock = segment
            .len()
            .checked_sub(".lock".len())
            .and_then(|at| segment.get(at..));
        segment.is_empty() || segment.starts_with('.') || segment.ends_with('.') || lock == Some(".lock")
    });
    let rules = [
        (name.is_empty(), GitReferenceRule::Empty),
        (name.len() > LONGEST, GitReferenceRule::TooLong),
        (name.starts_with('-'), GitReferenceRule::Dash),
        (name == "HEAD", GitReferenceRule::Head),
        (is_expression, GitReferenceRule::Expression),
        (
            name.contains(|c: char| c == ' ' || c.is_control()),
            GitReferenceRule::Character,
        ),
        (has_bad_segment, GitReferenceRule::Segment),
    ];
    rules
        .into_iter()
        .find_map(|(broken, rule)| broken.then_some(rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA_1: &str = "4f3a2b1ca73b5e9f8d2c1a0b3e6f7d4c8b1a2e3f";

    fn parse(text: &str) -> GitReference {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn forty_or_sixty_four_lower_case_hex_digits_are_a_commit() {
        let sha_256 = "0123456789abcdef".repeat(4);
        for id in [SHA_1, &sha_256] {
            assert_eq!(parse(id), GitReference::Commit(id.parse().unwrap()));
        }
    }

    #[test]
    fn other_hex_is_a_name_that_resembles_a_commit_id() {
        for text in [
            "4f3a2b1c",
            &SHA_1[1..],
            &format!("{SHA_1}0"),
            &SHA_1.to_uppercase(),
            "add",
        ] {
            assert_eq!(parse(text), GitReference::Name(text.to_owned()));
            assert!(parse(text).resembles_commit_id(), "{text}");
        }
        for text in ["main", SHA_1, "refs/heads/4f3a2b1c"] {
            assert!(!parse(text).resembles_commit_id(), "{text}");
        }
    }

    #[test]
    fn full_names_choose_between_a_tag_and_a_branch() {
        assert_eq!(parse("refs/tags/v2"), GitReference::Tag("v2".to_owned()));
        assert_eq!(
            parse("refs/heads/feat/x"),
            GitReference::Branch("feat/x".to_owned())
        );
        assert_eq!(
            parse(&format!("refs/heads/{SHA_1}")),
            GitReference::Branch(SHA_1.to_owned())
        );
    }

    #[test]
    fn unusual_names_that_git_allows_are_kept_as_they_are() {
        for text in [
            "feat/a#1",
            "x%2Fy",
            "ü",
            "v1/x",
            "README.md",
            "a.lockfile",
            "heads/main",
            "@x",
            "a@b",
            "HEAD2",
        ] {
            assert_eq!(parse(text), GitReference::Name(text.to_owned()));
        }
    }

    #[test]
    fn options_expressions_and_what_git_forbids_are_refused() {
        let long = "x".repeat(256);
        for (text, rule) in [
            ("", GitReferenceRule::Empty),
            ("refs/heads/", GitReferenceRule::Empty),
            (&long, GitReferenceRule::TooLong),
            ("--upload-pack=x", GitReferenceRule::Dash),
            ("-b", GitReferenceRule::Dash),
            ("refs/heads/-b", GitReferenceRule::Dash),
            ("refs/pull/7/head", GitReferenceRule::OtherNamespace),
            ("refs/", GitReferenceRule::OtherNamespace),
            ("HEAD", GitReferenceRule::Head),
            ("main^{}", GitReferenceRule::Expression),
            ("HEAD~1", GitReferenceRule::Expression),
            ("main@{yesterday}", GitReferenceRule::Expression),
            ("v1..v2", GitReferenceRule::Expression),
            ("../../orgs/x", GitReferenceRule::Expression),
            ("main:README", GitReferenceRule::Expression),
            ("a?b", GitReferenceRule::Expression),
            ("v*", GitReferenceRule::Expression),
            ("a[0]", GitReferenceRule::Expression),
            ("a\\b", GitReferenceRule::Expression),
            ("@", GitReferenceRule::Expression),
            ("a b", GitReferenceRule::Character),
            ("a\nb", GitReferenceRule::Character),
            ("a\0b", GitReferenceRule::Character),
            ("/main", GitReferenceRule::Segment),
            ("main/", GitReferenceRule::Segment),
            ("a//b", GitReferenceRule::Segment),
            (".a", GitReferenceRule::Segment),
            ("a.", GitReferenceRule::Segment),
            ("a/.b", GitReferenceRule::Segment),
            ("a.lock", GitReferenceRule::Segment),
        ] {
            let error = text.parse::<GitReference>().expect_err(text);
            assert_eq!(error.rule, rule, "{text:?}");
        }
    }

    #[test]
    fn the_shape_decides_how_long_an_answer_stays_true() {
        for (text, class) in [
            (SHA_1, CacheClass::Forever),
            ("v1", CacheClass::Day),
            ("v1.2.3", CacheClass::Day),
            ("refs/tags/v1.2.3", CacheClass::Day),
            ("v10.20.30.40", CacheClass::Day),
            ("refs/heads/v1", CacheClass::EveryScan),
            ("v", CacheClass::EveryScan),
            ("v1.2-rc1", CacheClass::EveryScan),
            ("1.2.3", CacheClass::EveryScan),
            ("main", CacheClass::EveryScan),
        ] {
            let Ok(reference) = text.parse::<GitReference>() else {
                continue;
            };
            assert_eq!(reference.cache_class(), class, "{text}");
        }
    }

    #[test]
    fn a_reference_prints_as_it_may_be_written() {
        for text in [SHA_1, "refs/tags/v1", "refs/heads/main", "main"] {
            assert_eq!(parse(text).to_string(), text);
        }
    }
}
