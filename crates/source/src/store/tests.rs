//! The cache on a real disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use codeworkspace_bundle::Entry;
use tempfile::TempDir;

use super::*;
use crate::clock::ManualClock;
use crate::configuration::{GithubConfiguration, Limits};

mod faults;
mod kill;

const GENEROUS: u64 = 1 << 30;

/// A folder, and a clock that stands still.
struct Place {
    folder: TempDir,
    clock: Arc<ManualClock>,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            clock: Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH)),
        }
    }

    /// As after a restart of the process.
    fn open(&self) -> Store {
        self.open_with(GENEROUS)
    }

    fn open_with(&self, bytes: u64) -> Store {
        Store::new(Some(configuration(&self.directory(), bytes)), self.clock.clone())
    }

    fn directory(&self) -> PathBuf {
        self.folder.path().join("below/cache")
    }

    fn trees(&self) -> PathBuf {
        self.directory().join("trees")
    }

    /// The only file in the folder of trees.
    fn only_tree(&self) -> PathBuf {
        let [only] = <[PathBuf; 1]>::try_from(files(&self.trees())).unwrap();
        only
    }
}

fn configuration(directory: &Path, bytes: u64) -> StoreConfiguration {
    StoreConfiguration {
        directory: directory.to_owned(),
        bytes,
        limits: Limits::parse(&GithubConfiguration::default()).unwrap().archive,
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn key(number: u64) -> CommitKey {
    CommitKey {
        host: "api.github.com".to_owned(),
        repository: "octo/tools".parse().unwrap(),
        commit: format!("{number:040x}").parse().unwrap(),
    }
}

/// A tree of one file whose bytes all have the same value.
fn tree_of(value: u8, bytes: usize) -> Arc<RepositoryTree> {
    let file = Entry::File {
        contents: vec![value; bytes].into(),
        executable: false,
    };
    Arc::new(RepositoryTree {
        entries: BTreeMap::from([("a.txt".parse().unwrap(), file)]),
        ..RepositoryTree::default()
    })
}

async fn has(store: &Store, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut there = Vec::new();
    for number in numbers {
        if store.tree(&key(number)).await.is_some() {
            there.push(number);
        }
    }
    there
}

#[tokio::test]
async fn trees_and_records_outlive_the_process() {
    let place = Place::new();
    let store = place.open();
    assert_eq!(store.tree(&key(1)).await, None);
    store.put_tree(&key(1), tree_of(1, 10)).await;
    let record = Key::of(&["answer", "a"]);
    store.put_record(&record, &vec!["first"]).await;
    store.put_record(&record, &vec!["second"]).await;
    drop(store);

    let store = place.open();
    assert_eq!(store.tree(&key(1)).await.as_ref(), Some(&*tree_of(1, 10)));
    assert_eq!(store.tree(&key(2)).await, None);
    assert_eq!(
        store.record(&record).await,
        Some(vec!["second".to_owned()]),
        "the newer one"
    );
    assert_eq!(store.record::<u64>(&record).await, None, "one of another shape");
    let statistics = StoreStatistics {
        tree_hits: 1,
        bytes: 2 * 4096,
        evictions: 0,
    };
    assert_eq!(store.statistics(), statistics);
}

#[tokio::test]
async fn without_a_folder_nothing_is_kept() {
    let store = Store::new(None, Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH)));
    store.put_tree(&key(1), tree_of(1, 10)).await;
    store.put_record(&Key::of(&["a"]), &1).await;
    assert_eq!(store.tree(&key(1)).await, None);
    assert_eq!(store.record::<u64>(&Key::of(&["a"])).await, None);
    assert_eq!(store.statistics(), StoreStatistics::default());
}

#[tokio::test]
async fn nobody_else_may_look_into_the_cache() {
    let place = Place::new();
    place.open().put_tree(&key(1), tree_of(1, 10)).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.directory()), 0o700);
    assert_eq!(mode(&place.trees()), 0o700);
    assert_eq!(mode(&place.only_tree()), 0o600);
}

/// Each tree takes three blocks. One block in sixteen is for records, so that four trees fit.
const FOUR_TREES: u64 = 13 * 4096;

#[tokio::test]
async fn the_trees_that_were_not_used_for_longest_make_room() {
    let place = Place::new();
    let store = place.open_with(FOUR_TREES);
    for number in 1..=4 {
        store.put_tree(&key(number), tree_of(1, 10_000)).await;
    }
    store.tree(&key(1)).await.unwrap();
    // Served from memory, which counts as well.
    store.touch_tree(&key(2));
    store.put_tree(&key(5), tree_of(1, 10_000)).await;
    assert_eq!(files(&place.trees()).len(), 4);
    drop(store);

    // The order outlives the process: 4, 1, 2, 5.
    let store = place.open_with(FOUR_TREES);
    store.put_tree(&key(6), tree_of(1, 10_000)).await;
    store.put_tree(&key(7), tree_of(1, 10_000)).await;
    assert_eq!(store.statistics().evictions, 2);
    assert_eq!(has(&store, 1..=7).await, [2, 5, 6, 7]);
    assert_eq!(store.statistics().bytes, 12 * 4096);
}

#[tokio::test]
async fn a_smaller_budget_holds_from_the_start() {
    let place = Place::new();
    let store = place.open_with(FOUR_TREES);
    for number in 1..=4 {
        store.put_tree(&key(number), tree_of(1, 10_000)).await;
    }
    drop(store);
    let store = place.open_with(7 * 4096);
    assert_eq!(has(&store, 1..=4).await, [3, 4]);
    assert_eq!(files(&place.trees()).len(), 2);
}

#[tokio::test]
async fn a_tree_larger_than_the_budget_pushes_nothing_out() {
    let place = Place::new();
    let store = place.open_with(FOUR_TREES);
    store.put_tree(&key(1), tree_of(1, 10_000)).await;
    store.put_tree(&key(2), tree_of(2, 60_000)).await;
    assert_eq!(has(&store, 1..=2).await, [1]);
    assert_eq!(store.statistics().evictions, 0);
}

#[tokio::test]
async fn records_and_trees_do_not_push_each_other_out() {
    let place = Place::new();
    // Sixteen blocks: one for records.
    let store = place.open_with(16 * 4096);
    let record = |number: u64| Key::of(&["answer", &number.to_string()]);
    store.put_tree(&key(1), tree_of(1, 10_000)).await;
    for number in 1..=3 {
        store.put_record(&record(number), &number).await;
    }
    for number in 2..=9 {
        store.put_tree(&key(number), tree_of(1, 10_000)).await;
    }
    assert_eq!(store.record::<u64>(&record(3)).await, Some(3));
    assert_eq!(store.record::<u64>(&record(2)).await, None);
    assert_eq!(has(&store, 1..=9).await, [5, 6, 7, 8, 9]);
}

#[tokio::test]
async fn a_folder_serves_one_process_at_a_time_and_the_next_one_later() {
    let place = Place::new();
    let (first, second) = (place.open(), place.open());
    first.put_tree(&key(1), tree_of(1, 10)).await;
    second.put_tree(&key(2), tree_of(2, 10)).await;
    assert_eq!(has(&second, 1..=2).await, [0; 0], "as if there were no folder");
    assert_eq!(has(&first, 1..=2).await, [1]);
    drop(first);
    place.clock.advance(REST.saturating_sub(Duration::from_secs(1)));
    assert_eq!(has(&second, 1..=2).await, [0; 0]);
    place.clock.advance(Duration::from_secs(1));
    assert_eq!(has(&second, 1..=2).await, [1]);
}
