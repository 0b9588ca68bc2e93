use super::*;
use crate::link::LinkRule;

fn path(text: &str) -> BundlePath {
    text.parse().unwrap()
}

fn file(contents: &'static str) -> Entry {
    Entry::from_contents(Bytes::from_static(contents.as_bytes()))
}

fn link(target: &str) -> Entry {
    Entry::Link {
        target: target.to_owned(),
    }
}

fn tree(entries: &[(&str, Entry)]) -> FileTree {
    let mut tree = FileTree::new();
    for (at, entry) in entries {
        tree.insert(path(at), entry.clone()).unwrap();
    }
    tree
}

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
        let Entry::File { executable, .. } = file(contents) else {
            panic!("a file")
        };
        assert_eq!(executable, expected, "{contents:?}");
    }
}

#[test]
fn a_later_entry_replaces_the_earlier_one_of_the_same_path() {
    let mut files = tree(&[("a/b", file("old"))]);
    assert_eq!(files.insert(path("a/b"), file("new")), Ok(Some(file("old"))));
    assert_eq!(files, tree(&[("a/b", file("new"))]));
}

#[test]
fn nothing_lies_below_a_file_or_a_link() {
    for above in [file("x"), link("c")] {
        let mut files = tree(&[("a", above)]);
        let refused = files.insert(path("a/b/c"), file("x"));
        assert_eq!(
            refused,
            Err(TreeError::BelowEntry {
                path: path("a/b/c"),
                entry: path("a")
            })
        );
    }
}

#[test]
fn a_folder_does_not_become_a_file_or_a_link() {
    // `a-b` sorts between `a` and `a/b`.
    let mut files = tree(&[("a-b", file("x")), ("a/b", file("x"))]);
    for entry in [file("x"), link("c")] {
        let refused = files.insert(path("a"), entry);
        assert_eq!(
            refused,
            Err(TreeError::OverFolder {
                path: path("a"),
                below: path("a/b")
            })
        );
    }
}

#[test]
fn a_link_stays_inside_the_tree() {
    let refused = FileTree::new().insert(path("a/b"), link("../../c"));
    let Err(TreeError::Link(error)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(error.rule, LinkRule::Outside);
}

#[test]
fn finding_follows_links_on_every_level() {
    let files = tree(&[
        ("v2/lib/main.py", file("x")),
        ("current", link("v2")),
        ("alias", link("current/lib/")),
        ("v2/lib/up", link("../..")),
        ("dangling", link("nowhere")),
        ("loop", link("loop")),
        ("through", link("v2/lib/main.py")),
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
    let files = tree(&[("a", file("12345")), ("b/c", file("123")), ("d", link("a"))]);
    assert_eq!((files.len(), files.content_bytes()), (3, 8));
}
