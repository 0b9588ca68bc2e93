use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::fixtures::tree;

fn merge(layers: &[&[(&str, &str)]]) -> Result<FileTree, OverlayError> {
    let trees: Vec<(String, FileTree)> = layers
        .iter()
        .enumerate()
        .map(|(index, entries)| (format!("code.sources[{index}]"), tree(entries)))
        .collect();
    let layers: Vec<_> = trees.iter().map(|(name, tree)| Layer { name, tree }).collect();
    overlay(&layers)
}

#[test]
fn the_last_source_wins_at_the_same_path() {
    let shell = &[("tool.ts", "shell"), ("lib/base.ts", "base")][..];
    let patch = &[("tool.ts", "own"), ("config/region.ts", "EU")][..];
    let expected = tree(&[
        ("tool.ts", "own"),
        ("lib/base.ts", "base"),
        ("config/region.ts", "EU"),
    ]);
    assert_eq!(merge(&[shell, patch]), Ok(expected));
}

#[test]
fn a_link_may_replace_a_file_and_a_file_a_link() {
    assert_eq!(
        merge(&[&[("a", "x"), ("b", "y")], &[("a", "-> b")]]),
        Ok(tree(&[("a", "-> b"), ("b", "y")]))
    );
    assert_eq!(merge(&[&[("a", "-> b")], &[("a", "x")]]), Ok(tree(&[("a", "x")])));
}

#[test]
fn no_sources_are_an_empty_bundle() {
    assert_eq!(overlay(&[]), Ok(FileTree::new()));
}

#[test]
fn a_file_where_another_source_has_a_folder_names_both_in_either_order() {
    let clash = |layers: &[&[(&str, &str)]]| merge(layers).unwrap_err().to_string();
    assert_eq!(
        clash(&[&[("lib", "x")], &[("lib/base.ts", "y")]]),
        "`lib` is a file in code.sources[0] and a folder in code.sources[1] (`lib/base.ts`)"
    );
    assert_eq!(
        clash(&[&[("lib/base.ts", "y")], &[("lib", "x")]]),
        "`lib` is a file in code.sources[1] and a folder in code.sources[0] (`lib/base.ts`)"
    );
}

#[test]
fn nothing_is_written_through_a_link_of_another_source() {
    let error = merge(&[&[("bin", "-> usr/bin")], &[("bin/sh", "evil")]]).unwrap_err();
    assert_eq!(
        error.clashes,
        [Clash {
            path: "bin".parse().unwrap(),
            is_link: true,
            leaf_layer: "code.sources[0]".to_owned(),
            folder_layer: "code.sources[1]".to_owned(),
            below: "bin/sh".parse().unwrap(),
        }]
    );
}

#[test]
fn the_layer_that_wrote_a_path_last_is_the_one_named() {
    let error = merge(&[&[("a/b", "x")], &[("a/b", "y")], &[("a", "z")]]).unwrap_err();
    assert_eq!(error.clashes[0].folder_layer, "code.sources[1]");
}

#[test]
fn all_clashes_are_found_and_a_long_list_is_counted() {
    let files: Vec<String> = (0..7).map(|index| format!("place{index}")).collect();
    let inside: Vec<String> = files.iter().map(|file| format!("{file}/x")).collect();
    let first: Vec<_> = files.iter().map(|path| (path.as_str(), "")).collect();
    let second: Vec<_> = inside.iter().map(|path| (path.as_str(), "")).collect();
    let error = merge(&[&first, &second]).unwrap_err();
    assert_eq!(error.clashes.len(), 7);
    assert!(error.to_string().ends_with("(`place4/x`); and 2 more"), "{error}");
}

proptest! {
    #[test]
    fn of_layers_that_fit_each_path_has_the_entry_of_its_last_layer(
        layers in prop::collection::vec(prop::collection::btree_map("[ab]{1,2}(/[ab]){0,2}", "[xy]", 0..6), 0..4)
    ) {
        let trees: Vec<FileTree> = layers.iter().map(|entries| {
            let mut tree = FileTree::new();
            for (path, contents) in entries {
                let entry = Entry::from_contents(Bytes::from(contents.clone()));
                // Some of the generated paths clash within their own layer; those are left out.
                tree.insert(path.parse().unwrap(), entry).ok();
            }
            tree
        }).collect();
        let named: Vec<Layer<'_>> = trees.iter().map(|tree| Layer { name: "layer", tree }).collect();
        if let Ok(merged) = overlay(&named) {
            let mut expected = BTreeMap::new();
            for tree in &trees {
                expected.extend(tree.iter());
            }
            prop_assert!(merged.iter().eq(expected));
        }
    }
}
