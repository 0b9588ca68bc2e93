//! What holds for every archive.

use proptest::prelude::*;

use super::*;

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(b"t".to_vec()),
        Just(b"t/a".to_vec()),
        Just(b"t/a/b".to_vec()),
        Just(b"t/..".to_vec()),
        Just(b"/".to_vec()),
        Just(b"t/./a".to_vec()),
        Just(b"t//a".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(part, 1..3).prop_map(|parts| parts.concat())
}

fn any_entry() -> impl Strategy<Value = (u8, Vec<u8>, Vec<u8>, Vec<u8>)> {
    let kind =
        prop_oneof![4 => Just(b'0'), 2 => Just(b'2'), 2 => Just(b'5'), 2 => Just(b'x'), 1 => any::<u8>()];
    let contents = prop_oneof![
        Just(Vec::new()),
        any_name().prop_map(|name| record("path", &name)),
        any_name().prop_map(|name| record("linkpath", &name)),
        proptest::collection::vec(any::<u8>(), 0..600),
    ];
    (kind, any_name(), any_name(), contents)
}

proptest! {
    #[test]
    fn any_bytes_are_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(read_gzip(&bytes).is_err());
        prop_assert!(read_gzip(&gzip(&bytes)).is_err());
        prop_assert!(read_tar(Tar::new().raw(&bytes)).is_err() || bytes.is_empty());
    }

    #[test]
    fn whatever_the_entries_are_a_taken_tree_has_no_entry_below_another(
        entries in proptest::collection::vec(any_entry(), 0..8)
    ) {
        let tar = entries.iter().fold(Tar::new(), |tar, (kind, name, link, contents)| tar.entry(*kind, name, link, contents));
        if let Ok(tree) = read_tar(tar) {
            for path in tree.entries.keys() {
                for folder in path.folders() {
                    prop_assert!(!tree.entries.contains_key(folder), "{path} lies below {folder}");
                }
            }
        }
    }

    #[test]
    fn a_changed_byte_never_gives_another_tree(at in any::<prop::sample::Index>(), change in 1..=255_u8) {
        let honest = gzip(&Tar::new().folder("t/").file("t/a.py", "print(1)\n").link("t/l", "a.py").end());
        let tree = read_gzip(&honest).unwrap();
        let mut changed = honest.clone();
        changed[at.index(honest.len())] ^= change;
        if let Ok(read) = read_gzip(&changed) {
            prop_assert_eq!(read, tree);
        }
    }
}
