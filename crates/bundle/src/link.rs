//! Where a link of a bundle may point.

use crate::{
    path::{BundlePath, MAX_PATH_BYTES},
    quote::Quoted,
};

/// Why a link may not stand in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("link `{path}` to {} {rule}", Quoted(target))]
pub struct LinkError {
    /// The link itself.
    pub path: BundlePath,
    /// Its target as it was given.
    pub target: String,
    /// The rule it breaks.
    pub rule: LinkRule,
}

/// The rules for link targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkRule {
    /// POSIX knows no empty link.
    #[error("has an empty target")]
    Empty,
    /// An absolute target would mean a file of the runner's image.
    #[error("is absolute: only links to places inside the bundle are kept")]
    Absolute,
    /// The target climbs above the root.
    #[error("points outside the bundle")]
    Outside,
    /// After a name, `..` means the parent of wherever that name leads, which may be another link. Refusing it is
    /// what makes [`Outside`](Self::Outside) decidable without following links.
    #[error("goes up again (`..`) after a name: write it without the detour")]
    Detour,
    /// The same characters as in paths.
    #[error("has a backslash or a control character in its target")]
    Character,
    /// The same length as of paths.
    #[error("has a target of {bytes} bytes; at most {MAX_PATH_BYTES} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

/// Finds the place in the bundle that a link at `path` with the text `target` points to, whether or not anything is
/// there; `None` is the bundle's root.
///
/// An accepted target can't leave the bundle however many other accepted links it passes: it climbs only at its start,
/// out of folders that are real since nothing lies below a link, and goes down from there.
pub fn link_destination(path: &BundlePath, target: &str) -> Result<Option<BundlePath>, LinkError> {
    destination(path, target).map_err(|rule| LinkError {
        path: path.clone(),
        target: target.to_owned(),
        rule,
    })
}

fn destination(path: &BundlePath, target: &str) -> Result<Option<BundlePath>, LinkRule> {
    if target.is_empty() {
        return Err(LinkRule::Empty);
    }
    if target.len() > MAX_PATH_BYTES {
        return Err(LinkRule::TooLong { bytes: target.len() });
    }
    if target
        .chars()
        .any(|character| character == '\\' || character.is_control())
    {
        return Err(LinkRule::Character);
    }
    if target.starts_with('/') {
        return Err(LinkRule::Absolute);
    }
    let mut place: Vec<&str> = path
        .folder()
        .map(|folder| folder.split('/').collect())
        .unwrap_or_default();
    let mut goes_down = false;
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." if goes_down => return Err(LinkRule::Detour),
            ".." => {
                place.pop().ok_or(LinkRule::Outside)?;
            }
            name => {
                goes_down = true;
                place.push(name);
            }
        }
    }
    if place.is_empty() {
        return Ok(None);
    }
    // Only lengths can still be wrong, and what is too long to be an entry is not inside the bundle.
    place.join("/").parse().map(Some).map_err(|_| LinkRule::Outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination_of(path: &str, target: &str) -> Result<Option<String>, LinkRule> {
        link_destination(&path.parse().unwrap(), target)
            .map(|place| place.map(String::from))
            .map_err(|error| error.rule)
    }

    #[test]
    fn relative_links_inside_the_bundle_are_kept() {
        for (path, target, place) in [
            ("cfg", "cfg.d/v2", "cfg.d/v2"),
            ("cfg", "./cfg.d/", "cfg.d"),
            ("a/b/link", "c", "a/b/c"),
            ("a/b/link", "../c", "a/c"),
            ("a/b/link", "../../c//d", "c/d"),
            ("a/link", "link", "a/link"),
        ] {
            assert_eq!(
                destination_of(path, target),
                Ok(Some(place.to_owned())),
                "{path} -> {target}"
            );
        }
        assert_eq!(destination_of("a/link", ".."), Ok(None));
        assert_eq!(destination_of("link", "."), Ok(None));
    }

    #[test]
    fn every_other_link_is_refused_by_its_own_rule() {
        let long = "x".repeat(1_025);
        let deep = "x/".repeat(400) + "link";
        let too_deep = "y".repeat(250) + "/z";
        for (path, target, rule) in [
            ("link", "", LinkRule::Empty),
            ("link", "/etc/passwd", LinkRule::Absolute),
            ("link", "..", LinkRule::Outside),
            ("a/link", "../../b", LinkRule::Outside),
            ("a/link", "b/../c", LinkRule::Detour),
            ("link", "a\\b", LinkRule::Character),
            ("link", "a\nb", LinkRule::Character),
            ("link", "a\0b", LinkRule::Character),
            ("link", &long, LinkRule::TooLong { bytes: 1_025 }),
            (&deep, &too_deep, LinkRule::Outside),
        ] {
            assert_eq!(destination_of(path, target), Err(rule), "{path} -> {target}");
        }
    }

    #[test]
    fn the_message_names_link_and_target() {
        let error = link_destination(&"a/b".parse().unwrap(), "../../etc").unwrap_err();
        assert_eq!(
            error.to_string(),
            "link `a/b` to `../../etc` points outside the bundle"
        );
    }
}
