//! A manifest's file, whose blocks may name the same bytes as a file beside it.
#![no_main]

use std::sync::Arc;

use codeworkspace_bundle::{
    Catalog, Entry, Expansion, FileTree, Lookup, Manifest, NodeKey, expand, expand::MAX_EXPANDED, read_manifest,
};
use libfuzzer_sys::fuzz_target;

const FILES: [&str; 5] = ["manifest.yaml", "x/manifest.yaml", "y/CODE.md", "x/RUNNER.md", "y/RUNNER.md"];

fuzz_target!(|bytes: &[u8]| {
    let mut root = FileTree::new();
    for file in FILES {
        let path = file.parse().expect("it is a path");
        let file = Entry::from_contents(bytes.to_vec().into());
        root.insert(path, file).expect("there is room for it");
    }
    let read = |path: &str| read_manifest(&root, &path.parse().expect("it is a path"));
    match read("./") {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(None) => unreachable!("the file is there"),
        Ok(Some(top)) => follow(&root, &top),
    }
    assert_eq!(read("./x").is_ok(), read("./x/manifest.yaml").is_ok());
});

/// Every reference is followed until nothing is wanted, which takes a bounded number of rounds.
fn follow(root: &FileTree, top: &Manifest) {
    let mut catalog = Catalog::new();
    for _ in 0..=8 {
        let wanted = match expand(top, "top", &catalog) {
            Expansion::Complete(expanded) => {
                assert!(expanded.leaves.len() <= MAX_EXPANDED);
                return;
            }
            Expansion::Wanted(wanted) => wanted,
        };
        for key in wanted {
            let found = look_up(root, &key);
            catalog.insert(key, found);
        }
    }
    unreachable!("a way of five references takes seven rounds");
}

fn look_up(root: &FileTree, key: &NodeKey) -> Lookup {
    match read_manifest(root, &key.path) {
        Ok(Some(manifest)) => Lookup::InRoot(Arc::new(manifest)),
        Ok(None) => Lookup::Missing {
            has_root: true,
            near: None,
        },
        Err(error) => Lookup::Wrong(error),
    }
}
