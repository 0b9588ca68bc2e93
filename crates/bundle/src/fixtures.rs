//! Short ways to write trees in tests.

use bytes::Bytes;
use proptest::{collection, prelude::*};
use serde_json::Value;

use crate::{
    path::BundlePath,
    tree::{Entry, FileTree},
};

pub(crate) fn path(text: &str) -> BundlePath {
    text.parse().unwrap()
}

/// `-> target` is a link; other text a file, executable if it begins with `#!`.
pub(crate) fn entry(text: &str) -> Entry {
    match text.strip_prefix("-> ") {
        Some(target) => Entry::Link {
            target: target.to_owned(),
        },
        None => Entry::from_contents(Bytes::copy_from_slice(text.as_bytes())),
    }
}

pub(crate) fn tree(entries: &[(&str, &str)]) -> FileTree {
    let mut tree = FileTree::new();
    for (at, text) in entries {
        tree.insert(path(at), entry(text)).unwrap();
    }
    tree
}

/// Each value, and below it what `errors` finds wrong with it: what a snapshot of messages should look like.
pub(crate) fn report(values: &[Value], errors: impl Fn(&Value) -> Vec<String>) -> String {
    let paragraph = |value| format!("{value}\n  {}", errors(value).join("\n  "));
    values.iter().map(paragraph).collect::<Vec<_>>().join("\n\n")
}

/// Trees with everything that a tree may have, in small numbers.
pub(crate) fn any_tree() -> impl Strategy<Value = FileTree> {
    any_entries().prop_map(|entries| {
        let mut tree = FileTree::new();
        for (at, entry) in entries {
            // Generated entries may clash with each other; the earlier one stays.
            tree.insert(at, entry).ok();
        }
        tree
    })
}

pub(crate) fn any_entries() -> impl Strategy<Value = Vec<(BundlePath, Entry)>> {
    collection::vec((any_path(), any_entry()), 0..12)
}

fn any_path() -> impl Strategy<Value = BundlePath> {
    // Few names, so that folders are shared; long ones, so that every way to store a path occurs.
    let segment = prop_oneof![4 => "[ab-]{1,3}", 1 => "[aé]{60,120}"];
    collection::vec(segment, 1..6).prop_filter_map("a legal path", |segments| segments.join("/").parse().ok())
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let contents = prop_oneof![
        4 => collection::vec(any::<u8>(), 0..40),
        1 => collection::vec(any::<u8>(), 510..515),
    ];
    let file = (contents, any::<bool>()).prop_map(|(contents, executable)| Entry::File {
        contents: contents.into(),
        executable,
    });
    let link = "[ab]{1,3}(/[ab]){0,70}".prop_map(|target| Entry::Link { target });
    prop_oneof![4 => file, 1 => link]
}
