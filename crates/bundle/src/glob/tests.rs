use proptest::prelude::*;

use super::*;
use crate::fixtures::path;

fn glob(text: &str) -> Glob {
    text.parse().unwrap()
}

const FILES: &[&str] = &[
    ".env",
    ".git/hooks/x.ts",
    ".hidden.ts",
    "a",
    "apple.ts",
    "b.ts",
    "sub/.hidden.ts",
    "sub/a.ts",
    "sub/deep/x.ts",
    "sub/x.ts",
    "x.ts",
    "x.tsx",
    "{a,b}.ts",
];

fn matched(text: &str) -> Vec<&'static str> {
    let glob = glob(text);
    let matches = |file: &&&str| glob.matches(&path(file));
    FILES.iter().filter(matches).copied().collect()
}

#[test]
fn each_form_of_a_glob_takes_what_is_written_about_it() {
    for (text, files) in [
        (
            "*.ts",
            &[
                "apple.ts",
                "b.ts",
                "sub/a.ts",
                "sub/deep/x.ts",
                "sub/x.ts",
                "x.ts",
                "{a,b}.ts",
            ][..],
        ),
        (
            "**/*.ts",
            &[
                "apple.ts",
                "b.ts",
                "sub/a.ts",
                "sub/deep/x.ts",
                "sub/x.ts",
                "x.ts",
                "{a,b}.ts",
            ],
        ),
        ("./*.ts", &["apple.ts", "b.ts", "x.ts", "{a,b}.ts"]),
        (
            "[!a]*.ts",
            &["b.ts", "sub/deep/x.ts", "sub/x.ts", "x.ts", "{a,b}.ts"],
        ),
        ("[a]*", &["a", "apple.ts", "sub/a.ts"]),
        ("{a,b}.ts", &["{a,b}.ts"]),
        ("?.ts", &["b.ts", "sub/a.ts", "sub/deep/x.ts", "sub/x.ts", "x.ts"]),
        ("?", &["a"]),
        ("x.ts?", &["x.tsx"]),
        ("sub/*.ts", &["sub/a.ts", "sub/x.ts"]),
        ("sub/*", &["sub/a.ts", "sub/x.ts"]),
        ("sub/**", &["sub/a.ts", "sub/deep/x.ts", "sub/x.ts"]),
        ("./sub/**/x.ts", &["sub/deep/x.ts", "sub/x.ts"]),
        ("**/sub/*/x.ts", &["sub/deep/x.ts"]),
        ("*/x.ts", &["sub/x.ts"]),
        (".*", &[".env", ".hidden.ts", "sub/.hidden.ts"]),
        (".env", &[".env"]),
        ("[.]env", &[]),
        ("?env", &[]),
        ("*.tsz", &[]),
        (".git/**", &[".git/hooks/x.ts"]),
        ("a/**", &[]),
    ] {
        assert_eq!(matched(text), files, "{text}");
    }
}

#[test]
fn two_stars_alone_take_everything_that_is_not_hidden() {
    let visible: Vec<_> = FILES
        .iter()
        .filter(|file| !file.split('/').any(|segment| segment.starts_with('.')))
        .copied()
        .collect();
    assert_eq!(matched("**"), visible);
    assert_eq!(matched("**/*"), visible);
    assert_eq!(matched("**/**"), visible);
}

#[test]
fn sets_hold_brackets_dashes_and_ranges() {
    for (text, name, is_match) in [
        ("[]]", "]", true),
        ("[!]]", "]", false),
        ("[!]]", "x", true),
        ("[a-c]", "b", true),
        ("[a-c]", "d", false),
        ("[a-]", "-", true),
        ("[-a]", "-", true),
        ("[a!]", "!", true),
        ("[a^]", "^", true),
        ("[[]", "[", true),
        ("[*]", "*", true),
        ("[*]", "x", false),
        ("[à-ÿ]", "é", true),
        ("a]b", "a]b", true),
        ("[[]id].tsx", "[id].tsx", true),
        ("日?", "日本", true),
    ] {
        assert_eq!(glob(text).matches(&path(name)), is_match, "{text} {name}");
    }
}

#[test]
fn a_malformed_glob_says_what_is_wrong_with_it() {
    let long = "x".repeat(MAX_GLOB_BYTES + 1);
    for (text, rule) in [
        ("", GlobRule::Empty),
        ("./", GlobRule::Empty),
        (&long, GlobRule::TooLong { bytes: 257 }),
        ("/a*", GlobRule::Absolute),
        (".//a*", GlobRule::Absolute),
        ("a*/", GlobRule::TrailingSlash),
        ("a//b*", GlobRule::EmptySegment),
        ("a*//", GlobRule::EmptySegment),
        ("a/./b*", GlobRule::DotSegment),
        ("../*", GlobRule::DotSegment),
        ("a\\*", GlobRule::Backslash),
        ("a\n*", GlobRule::Control),
        ("**x", GlobRule::Folders),
        ("x**/a", GlobRule::Folders),
        ("***", GlobRule::Folders),
        ("[", GlobRule::OpenSet),
        ("[]", GlobRule::OpenSet),
        ("[!]", GlobRule::OpenSet),
        ("a[b/c]", GlobRule::OpenSet),
        ("[a-", GlobRule::OpenSet),
        ("[^a]", GlobRule::Caret),
        ("[[:alpha:]]", GlobRule::NamedSet),
        ("[z-a]", GlobRule::Range),
    ] {
        let error = text.parse::<Glob>().unwrap_err();
        assert_eq!(error.rule, rule, "{text:?}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    assert_eq!(
        "src/[a.ts".parse::<Glob>().unwrap_err().to_string(),
        "`src/[a.ts` has a `[` without its `]` before the next `/`; the character itself is written `[[]`"
    );
}

#[test]
fn a_glob_of_the_longest_length_is_taken() {
    assert!("x".repeat(MAX_GLOB_BYTES).parse::<Glob>().is_ok());
}

#[test]
fn a_hostile_glob_ends_soon() {
    // Followed one way after the other, these would take longer than the age of the universe.
    let name = "a".repeat(255);
    let deep = ["a"; 512].join("/");
    let stars = glob(&("*a".repeat(100) + "b"));
    let folders = glob(&("**/a/".repeat(50) + "b"));
    for _ in 0..100 {
        assert!(!stars.matches(&path(&name)));
        assert!(!folders.matches(&path(&deep)));
    }
}

/// The rules once more, the way they are said and not the way they are fast.
fn says(glob: &str, path: &str) -> bool {
    let whole = if glob.contains('/') {
        glob.to_owned()
    } else {
        format!("**/{glob}")
    };
    let parts: Vec<&str> = without_leading_dot(&whole).split('/').collect();
    let segments: Vec<&str> = path.split('/').collect();
    says_parts(&parts, &segments)
}

fn says_parts(parts: &[&str], segments: &[&str]) -> bool {
    match (parts, segments) {
        ([], []) => true,
        (["**"], []) | ([], _) => false,
        (["**", rest @ ..], _) => {
            let is_visible = segments.first().is_some_and(|name| !name.starts_with('.'));
            (!rest.is_empty() && says_parts(rest, segments))
                || (is_visible
                    && (says_parts(parts, &segments[1..]) || (rest.is_empty() && segments.len() == 1)))
        }
        ([part, rest @ ..], [name, below @ ..]) => {
            let dot_is_literal = !name.starts_with('.') || part.starts_with('.');
            let (part, name): (Vec<char>, Vec<char>) = (part.chars().collect(), name.chars().collect());
            dot_is_literal && says_name(&part, &name) && says_parts(rest, below)
        }
        (_, []) => false,
    }
}

fn says_name(part: &[char], name: &[char]) -> bool {
    match (part, name) {
        ([], []) => true,
        (['*', rest @ ..], _) => says_name(rest, name) || (!name.is_empty() && says_name(part, &name[1..])),
        (['?', rest @ ..], [_, after @ ..]) => says_name(rest, after),
        (['[', '!', 'a', ']', rest @ ..], [first, after @ ..]) => *first != 'a' && says_name(rest, after),
        (['[', 'a', ']', rest @ ..], [first, after @ ..]) => *first == 'a' && says_name(rest, after),
        ([own, rest @ ..], [first, after @ ..]) => own == first && says_name(rest, after),
        _ => false,
    }
}

proptest! {
    #[test]
    fn a_glob_matches_what_its_rules_say(
        text in r"(\./)?((\*\*|(a|b|\.|\*|\?|\[a\]|\[!a\]){1,5})/){0,3}(\*\*|(a|b|\.|\*|\?|\[a\]|\[!a\]){1,5})",
        paths in prop::collection::vec(r"([.ab]{1,4}/){0,4}[.ab]{1,4}", 1..20),
    ) {
        if let Ok(glob) = text.parse::<Glob>() {
            for path in paths.iter().filter_map(|path| path.parse::<BundlePath>().ok()) {
                prop_assert_eq!(glob.matches(&path), says(&text, path.as_str()), "{} {}", text, path);
            }
        }
    }

    #[test]
    fn no_text_breaks_a_glob(text in ".{0,40}", path in "[a-c./*?\\[\\]-]{1,20}") {
        if let (Ok(glob), Ok(path)) = (text.parse::<Glob>(), path.parse::<BundlePath>()) {
            prop_assert_eq!(glob.to_string(), text);
            glob.matches(&path);
        }
    }
}
