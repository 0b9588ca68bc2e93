use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::{super::*, local};
use crate::{Bundle, Caps, fixtures::any_tree};

proptest! {
    #[test]
    fn what_was_taken_is_taken_whole_again(root in any_tree()) {
        // Links that lead nowhere are gone after the first time.
        if let Ok(first) = select(&root, &local(&json!("./")), LinkPolicy::Skip) && !first.tree.is_empty() {
            let again = select(&first.tree, &local(&json!("./")), LinkPolicy::Keep);
            let warnings = source_warnings(&first.tree, Origin::Workspace);
            prop_assert_eq!(again, Ok(Selected { tree: first.tree, warnings }));
        }
    }

    #[test]
    fn equal_spellings_take_equal_files(root in any_tree()) {
        let take = |text: &str, policy| select(&root, &local(&json!(text)), policy).map(|taken| taken.tree);
        let folders: BTreeSet<&str> = root.paths().flat_map(BundlePath::folders).collect();
        for folder in folders {
            let plain = take(folder, LinkPolicy::Skip);
            for spelling in [format!("./{folder}"), format!("{folder}/"), format!("././{folder}/")] {
                prop_assert_eq!(&take(&spelling, LinkPolicy::Skip), &plain);
            }
        }
        for (file, entry) in root.iter().filter(|(_, entry)| matches!(entry, Entry::File { .. })) {
            let expected: FileTree = {
                let mut tree = FileTree::new();
                tree.insert(file.clone(), entry.clone()).unwrap();
                tree
            };
            prop_assert_eq!(take(file.as_str(), LinkPolicy::Keep), Ok(expected.clone()));
            prop_assert_eq!(take(&format!("./{file}"), LinkPolicy::Keep), Ok(expected));
        }
    }

    #[test]
    fn the_order_in_which_a_root_was_filled_changes_nothing(root in any_tree(), pattern in r"(\*|\*\*|[ab]\*|\./|\*/\*)") {
        let mut backward = FileTree::new();
        for (path, entry) in root.iter().rev() {
            backward.insert(path.clone(), entry.clone()).unwrap();
        }
        let take = |root: &FileTree| {
            let selected = select(root, &local(&json!(pattern)), LinkPolicy::Skip)?;
            let bundle = Bundle::build(&selected.tree, &Caps::default()).unwrap();
            Ok::<_, SelectError>((bundle.digest, selected.warnings))
        };
        prop_assert_eq!(take(&root), take(&backward));
    }

    #[test]
    fn a_selection_is_a_part_of_its_root(root in any_tree(), pattern in "[ab*?/]{1,6}") {
        if let Ok(source) = pattern.parse().map(|pattern| LocalSource { pattern, glob: None, target: Target::OwnPath })
            && let Ok(selected) = select(&root, &source, LinkPolicy::Skip)
        {
            for (path, entry) in &selected.tree {
                prop_assert_eq!(root.get(path.as_str()), Some(entry));
            }
        }
    }
}
