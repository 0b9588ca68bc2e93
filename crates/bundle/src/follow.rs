//! Reading through symbolic links, as a program in the unpacked files would.

use std::borrow::{Borrow, Cow};

use bytes::Bytes;

use crate::{
    code::WorkspacePath,
    link::link_destination,
    path::BundlePath,
    taken::{Entries, inside},
    tree::Entry,
};

/// Links that one lookup follows before it gives up, as in the Linux kernel.
const MOST_LINKS: usize = 40;

/// Links lead outside, or round in circles.
pub(crate) struct Nowhere;

/// Where a path leads once all links are followed, on every level; `None` is the root.
pub(crate) fn follow(entries: &Entries, path: &BundlePath) -> Result<Option<BundlePath>, Nowhere> {
    let mut place = path.clone();
    for _ in 0..=MOST_LINKS {
        let Some((link, target)) = link_on_the_way(entries, &place) else {
            return Ok(Some(place));
        };
        let rest = place.below(link);
        place = match (link_destination(link, target).map_err(|_| Nowhere)?, rest) {
            (Some(folder), Some(rest)) => folder.join(&rest).map_err(|_| Nowhere)?,
            (Some(end), None) => end,
            (None, Some(rest)) => rest,
            (None, None) => return Ok(None),
        };
    }
    Err(Nowhere)
}

/// The first link among the folders of `path` and `path` itself.
fn link_on_the_way<'a>(entries: &'a Entries, path: &BundlePath) -> Option<(&'a BundlePath, &'a str)> {
    path.folders()
        .chain([path.as_str()])
        .find_map(|place| match entries.get_key_value(place)? {
            (link, Entry::Link { target }) => Some((link, target.as_str())),
            (_, Entry::File { .. }) => None,
        })
}

/// The bytes that a program that opens `path` would read; `None` unless it is a file.
pub(crate) fn read_file<'a>(entries: &'a Entries, path: &BundlePath) -> Option<&'a Bytes> {
    match entries.get(&follow(entries, path).ok()??)? {
        Entry::File { contents, .. } => Some(contents),
        Entry::Link { .. } => None,
    }
}

/// The part of a root that the paths of a leaf's `local` source start at: all of it, or the folder of a lean module (see
/// [`Leaf::base`](crate::expand::Leaf::base)). Its contents are shared.
pub fn part_of_root<'a, Root: Borrow<Entries>>(root: &'a Root, base: &WorkspacePath) -> Cow<'a, Entries> {
    let whole = root.borrow();
    let Some(base) = base.below_root() else {
        return Cow::Borrowed(whole);
    };
    match follow(whole, base) {
        Ok(None) => Cow::Borrowed(whole),
        Err(Nowhere) => Cow::Owned(Entries::new()),
        Ok(Some(folder)) => Cow::Owned(
            inside(whole, &folder)
                .filter_map(|(path, entry)| Some((path.below(&folder)?, entry.clone())))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{path, tree};

    fn paths(base: &str) -> Vec<String> {
        let root = tree(&[
            ("a/b/x", ""),
            ("a/c", ""),
            ("d", ""),
            ("link", "-> a/b"),
            ("up/here", "-> .."),
            ("dead", "-> gone"),
        ]);
        let part = part_of_root(&root, &base.parse().unwrap());
        part.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn a_modules_files_are_those_of_its_folder() {
        assert_eq!(paths("./a"), ["b/x", "c"]);
        assert_eq!(paths("./a/b"), ["x"]);
        assert_eq!(paths("./").len(), 6);
    }

    #[test]
    fn a_folder_may_be_a_link() {
        assert_eq!(paths("./link"), ["x"]);
        assert_eq!(paths("./up/here").len(), 6);
        assert_eq!(paths("./dead"), [""; 0]);
        assert_eq!(paths("./d"), [""; 0]);
    }

    #[test]
    fn a_file_is_read_through_links_on_every_level() {
        let root = tree(&[
            ("a/b/x", "text"),
            ("link", "-> a/b"),
            ("file", "-> link/x"),
            ("loop", "-> loop"),
        ]);
        let read = |at: &str| read_file(root.borrow(), &path(at)).map(|bytes| bytes.as_ref().to_vec());
        for at in ["a/b/x", "link/x", "file"] {
            assert_eq!(read(at), Some(b"text".to_vec()), "{at}");
        }
        for at in ["a", "link", "loop", "gone", "file/x"] {
            assert_eq!(read(at), None, "{at}");
        }
    }
}
