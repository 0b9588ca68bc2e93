//! Guessing what somebody meant to write.

use std::cmp::Reverse;

/// The candidate that a misspelt name was most likely meant to be, if any is near: the same but for case and
/// separators (`timeoutMs`), the beginning (`timeout`), or a typo or two away (`contnet`).
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = plain(name);
    candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(&name, &plain(candidate))?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|letter| !matches!(letter, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

fn distance(name: &str, candidate: &str) -> Option<usize> {
    if name.len() >= 3
        && (candidate.starts_with(name) || (candidate.len() >= 3 && name.starts_with(candidate)))
    {
        return Some(usize::from(name != candidate));
    }
    let typos = typos(name, candidate)?;
    // In a short word, two typos make any other short word.
    (typos * 3 < name.len().max(candidate.len())).then_some(typos + 1)
}

/// How many letters were added, left out, replaced or swapped with their neighbour; `None` above two.
fn typos(name: &str, candidate: &str) -> Option<usize> {
    // The difference in length is a lower bound, and much cheaper.
    if name.len().abs_diff(candidate.len()) > 8 {
        return None;
    }
    Some(strsim::osa_distance(name, candidate)).filter(|typos| *typos <= 2)
}

/// Paths that somebody may have meant instead of one that does not exist, the most likely first, at most three: a typo
/// in the path, another case, another extension, or the same file in another folder.
pub fn nearest_paths<'a>(path: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = Name::of(path);
    let mut ranked: Vec<_> = candidates
        .into_iter()
        .filter_map(|candidate| {
            Some((
                wanted.rank(path, candidate)?,
                Reverse(shared(path, candidate)),
                candidate,
            ))
        })
        .collect();
    ranked.sort_unstable();
    ranked
        .into_iter()
        .take(3)
        .map(|(_, _, candidate)| candidate)
        .collect()
}

/// The last segment of a path, and what it is without its extension.
struct Name<'a> {
    whole: &'a str,
    stem: &'a str,
}

impl<'a> Name<'a> {
    fn of(path: &'a str) -> Self {
        let whole = path.rsplit('/').next().unwrap_or_default();
        let stem = match whole.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => whole,
        };
        Self { whole, stem }
    }

    fn rank(&self, path: &str, candidate: &str) -> Option<usize> {
        let other = Name::of(candidate);
        if self.whole == other.whole {
            return Some(1);
        }
        if path.eq_ignore_ascii_case(candidate) {
            return Some(0);
        }
        let same_folder = path.len() - self.whole.len() == candidate.len() - other.whole.len();
        if same_folder && self.stem == other.stem {
            return Some(2);
        }
        typos(path, candidate).map(|typos| typos + 2)
    }
}

/// How many bytes two paths have in common at their start.
fn shared(one: &str, other: &str) -> usize {
    one.bytes()
        .zip(other.bytes())
        .take_while(|(one, other)| one == other)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_the_one_that_was_meant() {
        let keys = [
            "path",
            "content",
            "repo",
            "ref",
            "as",
            "memory_mb",
            "timeout_ms",
            "sandbox",
        ];
        for (name, meant) in [
            ("contents", Some("content")),
            ("contnet", Some("content")),
            ("Content", Some("content")),
            ("pth", Some("path")),
            ("paths", Some("path")),
            ("repository", Some("repo")),
            ("refs", Some("ref")),
            ("memory", Some("memory_mb")),
            ("memoryMb", Some("memory_mb")),
            ("timeout-ms", Some("timeout_ms")),
            ("sandbx", Some("sandbox")),
            ("inline", None),
            ("url", None),
            ("is", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, keys), meant, "{name}");
        }
    }

    #[test]
    fn a_path_that_does_not_exist_finds_those_that_were_meant() {
        let paths = [
            "main.py",
            "src/main.py",
            "src/Tool.ts",
            "src/index.ts",
            "README.md",
        ];
        for (path, meant) in [
            ("mian.py", &["main.py"][..]),
            ("main.ts", &["main.py"]),
            ("Main.py", &["main.py"]),
            ("lib/main.py", &["main.py", "src/main.py"]),
            ("src/tool.ts", &["src/Tool.ts"]),
            ("src/tol.ts", &["src/Tool.ts"]),
            ("index.ts", &["src/index.ts"]),
            ("src/index.js", &["src/index.ts"]),
            ("other.py", &[]),
        ] {
            assert_eq!(nearest_paths(path, paths), meant, "{path}");
        }
    }

    #[test]
    fn at_most_three_paths_are_named() {
        assert_eq!(
            nearest_paths("x.py", ["a/x.py", "b/x.py", "c/x.py", "d/x.py"]),
            ["a/x.py", "b/x.py", "c/x.py"]
        );
    }
}
