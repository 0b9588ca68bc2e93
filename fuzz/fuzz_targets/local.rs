//! A `local` source, and the files and links of a workspace: a line for each, a link with ` -> ` in it.
#![no_main]

use bytes::Bytes;
use codeworkspace_bundle::{
    BundlePath, Entries, Entry, FileTree, LinkPolicy,
    code::{LocalSource, Target},
    select,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: (&str, Option<&str>, Option<&str>, &str)| {
    let (path, written_as, glob, listing) = texts;
    let Ok(pattern) = path.parse() else { return };
    let (Ok(target), Ok(glob)) = (
        written_as.map_or(Ok(Target::OwnPath), str::parse),
        glob.map(str::parse).transpose(),
    ) else {
        return;
    };
    let source = LocalSource {
        pattern,
        glob,
        target,
    };
    let root: Entries = listing.lines().filter_map(entry).collect();
    match select(&root, &source, LinkPolicy::Skip) {
        Err(error) => assert!(error.to_string().len() < 4_096, "a bounded message"),
        Ok(selected) => {
            assert!(selected.tree.len() <= root.len());
            let mut rebuilt = FileTree::new();
            for (path, entry) in &selected.tree {
                rebuilt
                    .insert(path.clone(), entry.clone())
                    .expect("what is selected makes a legal tree");
                let has_own_path = source.target == Target::OwnPath;
                assert!(
                    !has_own_path || root.get(path) == Some(entry),
                    "a file of the workspace"
                );
                assert!(!has_own_path || path.segments().all(|segment| segment != ".git"));
            }
            // With those links that lead somewhere, the stricter policy says the same.
            if let Ok(strict) = select(&root, &source, LinkPolicy::Keep) {
                assert_eq!(strict, selected);
            }
        }
    }
});

fn entry(line: &str) -> Option<(BundlePath, Entry)> {
    let (path, entry) = match line.split_once(" -> ") {
        Some((path, target)) => {
            let target = target.to_owned();
            (path, Entry::Link { target })
        }
        None => {
            let contents = Bytes::copy_from_slice(line.as_bytes());
            (line, Entry::from_contents(contents))
        }
    };
    Some((path.parse().ok()?, entry))
}
