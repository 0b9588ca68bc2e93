//! Files and folders that are not as they were left.

use super::*;

#[tokio::test]
async fn a_damaged_file_is_removed_and_counts_as_absent() {
    for what in ["changed", "cut", "empty", "longer"] {
        let place = Place::new();
        let store = place.open();
        store.put_tree(&key(1), tree_of(1, 100)).await;
        let file = place.only_tree();
        let mut bytes = fs::read(&file).unwrap();
        match what {
            "changed" => bytes[150] ^= 1,
            "cut" => bytes.truncate(200),
            "empty" => bytes.clear(),
            _ => bytes.push(0),
        }
        fs::write(&file, bytes).unwrap();
        assert_eq!(store.tree(&key(1)).await, None, "{what}");
        assert!(!file.exists(), "{what}");
        assert_eq!(store.statistics().bytes, 0, "{what}");
        store.put_tree(&key(1), tree_of(1, 100)).await;
        assert_eq!(
            store.tree(&key(1)).await.as_ref(),
            Some(&*tree_of(1, 100)),
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_file_of_another_repository_serves_nobody() {
    let place = Place::new();
    let store = place.open();
    store.put_tree(&key(1), tree_of(1, 10)).await;
    let of_first = place.only_tree();
    store.put_tree(&key(2), tree_of(2, 10)).await;
    let of_second = files(&place.trees())
        .into_iter()
        .find(|file| *file != of_first)
        .unwrap();
    fs::copy(&of_first, &of_second).unwrap();
    assert_eq!(has(&store, 1..=2).await, [1]);
    assert!(!of_second.exists());
}

#[tokio::test]
async fn unfinished_files_are_removed_and_strange_ones_left_alone() {
    let place = Place::new();
    place.open().put_tree(&key(1), tree_of(1, 10)).await;
    let ours = place.only_tree();
    let name = "0".repeat(64);
    let (unfinished, note, link) = (
        place.trees().join("7.unfinished"),
        place.trees().join("README"),
        place.trees().join(&name),
    );
    fs::write(&unfinished, "x").unwrap();
    fs::write(&note, "x").unwrap();
    std::os::unix::fs::symlink(&note, &link).unwrap();
    let store = place.open();
    assert_eq!(has(&store, 1..=1).await, [1]);
    assert_eq!(store.statistics().bytes, 4096, "only files of ours count");
    let mut left = [ours, note, link];
    left.sort();
    assert_eq!(files(&place.trees()), left);
}

#[tokio::test]
async fn a_folder_that_was_removed_is_made_anew() {
    let place = Place::new();
    let store = place.open();
    store.put_tree(&key(1), tree_of(1, 10)).await;
    store.put_tree(&key(2), tree_of(2, 10)).await;
    fs::remove_dir_all(place.directory()).unwrap();
    assert_eq!(store.tree(&key(1)).await, None);
    store.put_tree(&key(3), tree_of(3, 10)).await;
    assert_eq!(has(&store, 1..=3).await, [3]);
    assert_eq!(store.statistics().bytes, 4096);
    // With a lock of its own.
    assert_eq!(place.open().tree(&key(3)).await, None);
    fs::remove_dir_all(place.trees()).unwrap();
    store.put_tree(&key(4), tree_of(4, 10)).await;
    assert_eq!(has(&store, 1..=4).await, [4]);
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_tried_again_later() {
    let place = Place::new();
    fs::create_dir(place.folder.path().join("below")).unwrap();
    fs::write(place.directory(), "a file where the folder should be").unwrap();
    let store = place.open();
    store.put_tree(&key(1), tree_of(1, 10)).await;
    assert_eq!(store.tree(&key(1)).await, None);
    fs::remove_file(place.directory()).unwrap();
    store.put_tree(&key(1), tree_of(1, 10)).await;
    assert_eq!(store.tree(&key(1)).await, None, "not at once");
    place.clock.advance(REST);
    store.put_tree(&key(1), tree_of(1, 10)).await;
    assert_eq!(has(&store, 1..=1).await, [1]);
}

#[tokio::test]
async fn what_cannot_be_written_can_still_be_read() {
    let place = Place::new();
    let store = place.open();
    store.put_tree(&key(1), tree_of(1, 10)).await;
    // The next tree's name is taken, as a full or read-only disk would refuse it.
    let name = Key::tree(&key(2)).file_name();
    let obstacle = place.trees().join(name);
    fs::create_dir(&obstacle).unwrap();
    store.put_tree(&key(2), tree_of(2, 10)).await;
    assert_eq!(has(&store, 1..=2).await, [1]);
    assert_eq!(files(&place.trees()).len(), 2, "nothing unfinished is left");
    fs::remove_dir(&obstacle).unwrap();
    store.put_tree(&key(2), tree_of(2, 10)).await;
    assert_eq!(has(&store, 1..=2).await, [1], "writing rests");
    place.clock.advance(REST);
    store.put_tree(&key(2), tree_of(2, 10)).await;
    assert_eq!(has(&store, 1..=2).await, [1, 2]);
}
