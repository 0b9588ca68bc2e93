use std::collections::BTreeMap;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;

use super::*;
use crate::configuration::{GithubConfiguration, Limits};
use crate::store::Key;
use crate::store::envelope::Sealer;

fn key() -> Key {
    Key::of(&["tree", "a.test", "octo/tools", "0123"])
}

fn limits() -> ArchiveLimits {
    Limits::parse(&GithubConfiguration::default()).unwrap().archive
}

fn seal(write: impl FnOnce(&mut Sealer<Vec<u8>>)) -> Vec<u8> {
    let mut sealer = Sealer::new(Vec::new(), &key()).unwrap();
    write(&mut sealer);
    sealer.finish().unwrap()
}

fn sealed(tree: &RepositoryTree) -> Vec<u8> {
    seal(|out| write(tree, out).unwrap())
}

fn open(file: &[u8], key: &Key, limits: &ArchiveLimits) -> Result<RepositoryTree, String> {
    let read_whole = || {
        let mut opener = Opener::new(file, file.len() as u64, key)?;
        let tree = read(&mut opener, limits)?;
        opener.finish()?;
        Ok::<_, Unreadable>(tree)
    };
    read_whole().map_err(|error| error.to_string())
}

fn path() -> impl Strategy<Value = BundlePath> {
    let segment = "[a-c.-]{1,3}ü?";
    vec(segment, 1..4)
        .prop_map(|segments| segments.join("/"))
        .prop_filter_map("no path", |text| text.parse().ok())
}

fn entry() -> impl Strategy<Value = Entry> {
    let file = (vec(any::<u8>(), 0..40), any::<bool>()).prop_map(|(contents, executable)| Entry::File {
        contents: contents.into(),
        executable,
    });
    prop_oneof![file, "[a-z/.ü]{0,12}".prop_map(|target| Entry::Link { target })]
}

prop_compose! {
    fn tree()(
        wanted in btree_map(path(), entry(), 0..8),
        folders in btree_set(path(), 0..4),
        (ignores_exports, substitutes_exports) in any::<(bool, bool)>(),
        warnings in vec(".{0,20}", 0..3),
    ) -> RepositoryTree {
        let mut entries = BTreeMap::new();
        for (path, entry) in wanted {
            if !is_below_an_entry(&entries, &path) {
                entries.insert(path, entry);
            }
        }
        let fits = |folder: &BundlePath| !entries.contains_key(folder) && !is_below_an_entry(&entries, folder);
        let empty_folders = folders.into_iter().filter(fits).collect();
        RepositoryTree { entries, empty_folders, ignores_exports, substitutes_exports, warnings }
    }
}

proptest! {
    #[test]
    fn every_tree_comes_back_as_it_was(tree in tree()) {
        let file = sealed(&tree);
        prop_assert_eq!(file.len() as u64, length(&tree).unwrap() + super::super::envelope::overhead(&key()));
        prop_assert_eq!(open(&file, &key(), &limits()), Ok(tree));
    }

    #[test]
    fn a_changed_byte_or_a_cut_is_no_tree(
        tree in tree(),
        at in any::<prop::sample::Index>(),
        change in 1..=u8::MAX,
        more in vec(any::<u8>(), 1..50),
    ) {
        let file = sealed(&tree);
        let at = at.index(file.len());
        let mut changed = file.clone();
        changed[at] ^= change;
        prop_assert!(open(&changed, &key(), &limits()).is_err());
        prop_assert!(open(&file[..at], &key(), &limits()).is_err());
        let longer = [file, more].concat();
        prop_assert!(open(&longer, &key(), &limits()).is_err());
    }

    #[test]
    fn what_can_be_read_has_no_other_form(contents in vec(0_u8..3, 0..60)) {
        let file = seal(|out| out.write_all(&contents).unwrap());
        if let Ok(tree) = open(&file, &key(), &limits()) {
            prop_assert_eq!(sealed(&tree), file);
        }
    }
}

fn one_file() -> RepositoryTree {
    let file = Entry::File {
        contents: vec![b'x'; 100].into(),
        executable: false,
    };
    RepositoryTree {
        entries: BTreeMap::from([("a.txt".parse().unwrap(), file)]),
        ..RepositoryTree::default()
    }
}

#[test]
fn a_file_of_another_key_or_format_is_refused() {
    let file = sealed(&one_file());
    let other = Key::of(&["tree", "a.test", "octo/other", "0123"]);
    assert_eq!(
        open(&file, &other, &limits()),
        Err("the file is about something else".to_owned())
    );
    let mut newer = file.clone();
    newer[20] = b'2';
    assert_eq!(
        open(&newer, &key(), &limits()),
        Err("the file has another format".to_owned())
    );
    assert_eq!(
        open(b"", &key(), &limits()),
        Err("the file is too short".to_owned())
    );
}

#[test]
fn a_tree_over_the_limits_of_now_is_refused() {
    let file = sealed(&one_file());
    let refused = Err("the file is over a limit".to_owned());
    let fits = limits();
    for limits in [
        ArchiveLimits { entries: 0, ..fits },
        ArchiveLimits {
            file_bytes: 99,
            ..fits
        },
        ArchiveLimits {
            inflated_bytes: 99,
            ..fits
        },
    ] {
        assert_eq!(open(&file, &key(), &limits), refused);
    }
}

#[test]
fn entries_that_do_not_fit_together_are_refused() {
    let file_at = |path: &[u8]| {
        let length = u32::try_from(path.len()).unwrap();
        [&[FILE][..], &length.to_be_bytes(), path, &[0; 4]].concat()
    };
    let end = [0; 9];
    let two = |first: &[u8], second: &[u8]| {
        let contents = [&[0, 0, 0, 2][..], &file_at(first), &file_at(second), &end].concat();
        open(&seal(|out| out.write_all(&contents).unwrap()), &key(), &limits())
    };
    assert_eq!(two(b"a", b"b").map(|tree| tree.entries.len()), Ok(2));
    let unfit = Err("the file has entries that do not fit".to_owned());
    assert_eq!(two(b"b", b"a"), unfit, "not in order");
    assert_eq!(two(b"a", b"a"), unfit, "twice");
    assert_eq!(two(b"a", b"a/b"), unfit, "below a file");
    let illegal = Err("the file has a path that is not allowed".to_owned());
    assert_eq!(two(b"../a", b"a"), illegal);
    assert_eq!(two(b"/a", b"a"), illegal);
}

#[test]
fn a_length_that_is_a_lie_costs_no_memory() {
    let contents = [&[0, 0, 0, 1, FILE][..], &[0xff; 4]].concat();
    let file = seal(|out| out.write_all(&contents).unwrap());
    assert_eq!(
        open(&file, &key(), &limits()),
        Err("the file claims more than it holds".to_owned())
    );
}
