use proptest::prelude::*;

use super::*;
use crate::{
    fixtures::{any_entries, tree},
    reader::BundleReader,
    tree::{Entry, FileTree},
};

fn build(tree: &FileTree) -> Bundle {
    Bundle::build(tree, &Caps::default()).unwrap()
}

#[test]
fn a_bundle_counts_entries_and_contents() {
    let bundle = build(&tree(&[("a", "12345"), ("b/c", "123"), ("link", "-> a")]));
    assert_eq!((bundle.files, bundle.size_bytes), (3, 8));
}

#[test]
fn the_digest_is_of_the_uncompressed_tar() {
    let files = tree(&[("a", "12345"), ("b/c", "#!/bin/sh")]);
    let mut tar = Vec::new();
    tar::write(&files, &mut tar).unwrap();
    let bundle = build(&files);
    assert_eq!(bundle.digest, Digest::of(&tar));

    let mut unpacked = Vec::new();
    io::Read::read_to_end(
        &mut flate2::bufread::GzDecoder::new(&bundle.compressed[..]),
        &mut unpacked,
    )
    .unwrap();
    assert_eq!(unpacked, tar);
}

#[test]
fn an_archive_ends_with_two_zero_blocks_and_no_padding() {
    let mut tar = Vec::new();
    tar::write(&tree(&[("a", "12345")]), &mut tar).unwrap();
    assert_eq!(tar.len(), 4 * tar::BLOCK);
    assert_eq!(&tar[2 * tar::BLOCK..], tar::END);

    let mut empty = Vec::new();
    tar::write(&FileTree::new(), &mut empty).unwrap();
    assert_eq!(empty, tar::END);
}

#[test]
fn every_difference_in_the_tree_makes_another_digest() {
    let digests = [
        &[("a", "x")][..],
        &[("a", "y")],
        &[("b", "x")],
        &[("a", "#!")],
        &[("a", "")],
        &[("a", "-> x")],
        &[("a", "-> y")],
        &[("a", "x"), ("b", "")],
    ]
    .map(|entries| build(&tree(entries)).digest);
    let distinct: std::collections::BTreeSet<_> = digests.into_iter().collect();
    assert_eq!(distinct.len(), 8);
    let mode = |executable| {
        let mut files = FileTree::new();
        files
            .insert(
                "a".parse().unwrap(),
                Entry::File {
                    contents: Bytes::new(),
                    executable,
                },
            )
            .unwrap();
        build(&files).digest
    };
    assert_ne!(mode(true), mode(false));
}

#[test]
fn a_tree_over_a_cap_is_no_bundle() {
    let caps = Caps {
        entries: 1,
        ..Caps::default()
    };
    let refused = Bundle::build(&tree(&[("a", ""), ("b", "")]), &caps);
    assert!(matches!(
        refused,
        Err(BuildError::Size(BundleSizeError::Entries {
            entries: 2,
            limit: 1
        }))
    ));
}

proptest! {
    #[test]
    fn the_order_in_which_files_arrive_makes_no_difference(
        (entries, shuffled) in any_entries().prop_flat_map(|mut entries| {
            // One entry a path and no clashes, so that each order gives the same tree.
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            entries.dedup_by(|one, other| one.0 == other.0);
            let mut fitting = FileTree::new();
            entries.retain(|(path, entry)| fitting.insert(path.clone(), entry.clone()).is_ok());
            (Just(entries.clone()), Just(entries).prop_shuffle())
        })
    ) {
        let collect = |entries: Vec<(crate::BundlePath, Entry)>| {
            let mut files = FileTree::new();
            for (path, entry) in entries {
                files.insert(path, entry).unwrap();
            }
            files
        };
        prop_assert_eq!(build(&collect(entries)), build(&collect(shuffled)));
    }

    #[test]
    fn what_is_built_reads_back_the_same(files in crate::fixtures::any_tree()) {
        let bundle = build(&files);
        let mut reader = BundleReader::new(&bundle.compressed[..]).unwrap();
        let mut read = FileTree::new();
        for entry in reader.by_ref() {
            let (path, entry) = entry.unwrap();
            read.insert(path, entry).unwrap();
        }
        prop_assert_eq!(reader.finish().unwrap(), bundle.digest);
        prop_assert_eq!(read, files);
    }
}
