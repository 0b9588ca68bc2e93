use super::*;
use crate::{
    fixtures::{entry, path, tree},
    link::LinkRule,
};

#[test]
fn a_shebang_at_the_first_byte_makes_a_file_executable() {
    for (contents, expected) in [
        ("#!/bin/sh\n", true),
        ("#!", true),
        ("#", false),
        ("", false),
        (" #!/bin/sh", false),
        ("\u{feff}#!/bin/sh", false),
    ] {
        let Entry::File { executable, .. } = entry(contents) else {
            panic!("a file")
        };
        assert_eq!(executable, expected, "{contents:?}");
    }
}

#[test]
fn a_later_entry_replaces_the_earlier_one_of_the_same_path() {
    let mut files = tree(&[("a/b", "old")]);
    assert_eq!(files.insert(path("a/b"), entry("new")), Ok(Some(entry("old"))));
    assert_eq!(files, tree(&[("a/b", "new")]));
}

#[test]
fn nothing_lies_below_a_file_or_a_link() {
    for above in ["x", "-> c"] {
        let mut files = tree(&[("a", above)]);
        let refused = files.insert(path("a/b/c"), entry("x"));
        let expected = PlaceError::BelowEntry {
            path: path("a/b/c"),
            entry: path("a"),
        };
        assert_eq!(refused, Err(expected.into()));
    }
}

#[test]
fn a_folder_does_not_become_a_file_or_a_link() {
    // `a-b` sorts between `a` and `a/b`.
    let mut files = tree(&[("a-b", "x"), ("a/b", "x")]);
    for entry in [entry("x"), entry("-> c")] {
        let refused = files.insert(path("a"), entry);
        let expected = PlaceError::OverFolder {
            path: path("a"),
            below: path("a/b"),
        };
        assert_eq!(refused, Err(expected.into()));
    }
}

#[test]
fn a_link_stays_inside_the_tree() {
    let refused = FileTree::new().insert(path("a/b"), entry("-> ../../c"));
    let Err(TreeError::Link(error)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(error.rule, LinkRule::Outside);
}

#[test]
fn finding_follows_links_on_every_level() {
    let files = tree(&[
        ("v2/lib/main.py", "x"),
        ("current", "-> v2"),
        ("alias", "-> current/lib/"),
        ("v2/lib/up", "-> ../.."),
        ("dangling", "-> nowhere"),
        ("loop", "-> loop"),
        ("through", "-> v2/lib/main.py"),
    ]);
    for (at, expected) in [
        ("v2/lib/main.py", Found::File),
        ("through", Found::File),
        ("current/lib/main.py", Found::File),
        ("alias/main.py", Found::File),
        ("alias/up/v2/lib/main.py", Found::File),
        ("v2/lib", Found::Folder),
        ("v2/lib/up", Found::Folder),
        ("current", Found::Folder),
        ("v2/lib/main.py/x", Found::Nothing),
        ("v2/li", Found::Nothing),
        ("dangling", Found::Nothing),
        ("loop", Found::Nothing),
        ("loop/x", Found::Nothing),
    ] {
        assert_eq!(files.find(&path(at)), expected, "{at}");
    }
}

#[test]
fn sizes_count_contents_only() {
    let files = tree(&[("a", "12345"), ("b/c", "123"), ("d", "-> a")]);
    assert_eq!((files.len(), files.content_bytes()), (3, 8));
}
