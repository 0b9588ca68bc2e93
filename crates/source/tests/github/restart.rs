//! What is still known after the process has ended, and what the cache's folder does to sources when it is not as it was left.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use codeworkspace_source::{Github, GithubConfiguration, SourceErrorReason as Reason};
use github_server::{AfterCut, Answer, Body, Commit, Cut, RequestKind, Switches};
use tempfile::TempDir;

use crate::world::{World, configuration, lines, narrowed, one_file, source};

const FLOOR: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_hours(1);

/// A world whose resolver has a folder.
struct Place {
    folder: TempDir,
    world: World,
}

impl Place {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let directory = folder.path().join("cache");
        let world = World::with(|configuration| configuration.cache_directory = Some(directory)).await;
        Self { folder, world }
    }

    fn directory(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// Another process with the same folder, after the first one has ended.
    fn restart(&mut self) {
        self.restart_with(|_| ());
    }

    fn restart_with(&mut self, change: impl FnOnce(&mut GithubConfiguration)) {
        let mut configuration = configuration(&self.world.server);
        configuration.cache_directory = Some(self.directory());
        change(&mut configuration);
        // The former one lets go of the folder before this one opens it, with its first use.
        self.world.github = Github::new(configuration, self.world.clock.clone()).unwrap();
        self.world.server.reset_requests();
    }

    fn requests(&self) -> u64 {
        self.world.server.requests().total()
    }

    /// GitHub answers nobody.
    fn take_github_down(&self) {
        let unavailable = Answer {
            status: 503,
            kinds: vec![
                RequestKind::Reference,
                RequestKind::Tarball,
                RequestKind::Download,
            ],
            ..Answer::default()
        };
        self.world.set_switches(Switches {
            answer: Some(unavailable),
            ..Switches::default()
        });
    }

    fn trees(&self) -> Vec<PathBuf> {
        files(&self.directory().join("trees"))
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

#[tokio::test]
async fn a_pinned_commit_asks_nobody_after_a_restart() {
    let mut place = Place::new().await;
    let commit = place.world.tools(
        &Commit::on("main")
            .file("a.txt", "a")
            .file("src/b.txt", "b")
            .executable("run.sh", "#!/bin/sh\n")
            .link("link", "a.txt"),
    );
    let before = place.world.resolve(&commit).await.unwrap();
    place.restart();
    assert_eq!(place.world.resolve(&commit).await.unwrap(), before);
    assert_eq!(place.world.resolve(&commit).await.unwrap(), before);
    assert_eq!(place.requests(), 0);
    let statistics = place.world.github.statistics();
    assert_eq!((statistics.disk_cache_hits, statistics.tree_cache_hits), (1, 1));
}

#[tokio::test]
async fn the_stored_tree_is_the_whole_repository_whatever_path_was_taken() {
    let mut place = Place::new().await;
    place
        .world
        .tools(&Commit::on("main").file("one/a.txt", "a").file("two/b.txt", "b"));
    let first = place.world.materialize(&narrowed("one")).await.unwrap();
    assert_eq!(lines(&first.tree), ["one/a.txt: a"]);
    place.restart();
    let mut second = narrowed("two");
    second.reference = first.revision.as_str().parse().unwrap();
    let second = place.world.materialize(&second).await.unwrap();
    assert_eq!(lines(&second.tree), ["two/b.txt: b"]);
    assert_eq!(place.requests(), 0);
}

#[tokio::test]
async fn a_repository_that_became_private_is_served_until_the_proof_expires() {
    let mut place = Place::new().await;
    let commit = place.world.tools(&one_file());
    place.world.resolve(&commit).await.unwrap();
    place
        .world
        .server
        .repository("octo/tools")
        .unwrap()
        .set_private(true)
        .unwrap();
    place.world.clock.advance(23 * HOUR);
    place.restart();
    place.world.resolve(&commit).await.unwrap();
    assert_eq!(place.requests(), 0);
    place.world.clock.advance(HOUR);
    assert_eq!(
        place.world.failure(&commit).await.reason,
        Reason::RepoOrRefNotFound
    );
    place.restart();
    assert_eq!(
        place.world.failure(&commit).await.reason,
        Reason::RepoOrRefNotFound
    );
}

#[tokio::test]
async fn a_known_commit_of_another_repository_is_not_served_after_a_restart() {
    let mut place = Place::new().await;
    let commit = place.world.tools(&one_file());
    place.world.resolve(&commit).await.unwrap();
    place.restart();
    let other = source("octo/other", &commit);
    let error = place.world.materialize(&other).await.unwrap_err();
    assert_eq!(error.reason, Reason::RepoOrRefNotFound);
}

#[tokio::test]
async fn a_version_is_believed_for_its_day_also_by_the_next_process() {
    let mut place = Place::new().await;
    let first = place.world.tools(&one_file());
    let tag = |place: &Place, commit: &str| {
        let repository = place.world.server.repository("octo/tools").unwrap();
        repository.tag("v1", commit).unwrap();
    };
    tag(&place, &first);
    assert_eq!(place.world.revision("v1").await, first);
    let second = place.world.tools_again(&Commit::on("main").file("b", "b"));
    tag(&place, &second);
    place.world.clock.advance(3 * HOUR);
    place.restart();
    assert_eq!(place.world.revision("v1").await, first);
    assert_eq!(place.requests(), 0);
    place.world.clock.advance(21 * HOUR);
    place.restart();
    assert_eq!(place.world.revision("v1").await, second);
    place.restart();
    assert_eq!(place.world.revision("v1").await, second);
    assert_eq!(place.requests(), 0);
}

#[tokio::test]
async fn a_branch_is_looked_up_by_each_process() {
    let mut place = Place::new().await;
    place.world.tools(&one_file());
    place.world.resolve("main").await.unwrap();
    let second = place.world.tools_again(&Commit::on("main").file("b", "b"));
    place.world.clock.advance(FLOOR);
    place.restart();
    assert_eq!(place.world.revision("main").await, second);
}

#[tokio::test]
async fn the_last_commit_of_a_branch_serves_as_stale_after_a_restart() {
    let mut place = Place::new().await;
    place.world.tools(&one_file());
    place.world.resolve("main").await.unwrap();
    let second = place.world.tools_again(&Commit::on("main").file("b", "b"));
    place.world.clock.advance(FLOOR);
    let fresh = place.world.resolve("main").await.unwrap();
    assert_eq!(fresh.revision.as_str(), second);
    place.world.clock.advance(FLOOR);
    place.restart();
    place.take_github_down();
    let stale = place.world.resolve("main").await.unwrap();
    assert_eq!((&stale.tree, &stale.revision), (&fresh.tree, &fresh.revision));
    assert_eq!(stale.stale.unwrap().reason, Reason::FetchFailed);
    // Nothing good is known of this one.
    assert_eq!(
        place.world.failure("refs/heads/main").await.reason,
        Reason::FetchFailed
    );
}

#[tokio::test]
async fn a_stranger_who_takes_an_old_name_is_refused_after_a_restart() {
    let mut place = Place::new().await;
    place.world.tools(&one_file());
    place
        .world
        .server
        .repository("octo/tools")
        .unwrap()
        .rename("octo/tools-moved")
        .unwrap();
    place.world.resolve("main").await.unwrap();
    place.world.tools(&Commit::on("main").file("evil", "x"));
    place.world.clock.advance(FLOOR);
    place.restart();
    assert_eq!(
        place.world.failure("main").await.reason,
        Reason::RepositoryReplaced
    );
}

#[tokio::test]
async fn a_folder_that_is_lost_while_running_is_made_anew() {
    let mut place = Place::new().await;
    let first = place.world.tools(&one_file());
    place.world.resolve(&first).await.unwrap();
    fs::remove_dir_all(place.directory()).unwrap();
    place.world.resolve(&first).await.unwrap();
    // The first request after the loss finds out about it.
    let second = place.world.tools_again(&Commit::on("main").file("b", "b"));
    let third = place.world.tools_again(&Commit::on("main").file("c", "c"));
    for commit in [&second, &third] {
        place.world.resolve(commit).await.unwrap();
    }
    place.restart();
    for commit in [&second, &third] {
        place.world.resolve(commit).await.unwrap();
    }
    assert_eq!(place.requests(), 0);
    place.world.resolve(&first).await.unwrap();
    assert_eq!(place.world.server.requests().of(RequestKind::Download), 1);
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_fails_no_source() {
    let mut place = Place::new().await;
    fs::write(place.directory(), "a file where the folder should be").unwrap();
    let commit = place.world.tools(&one_file());
    let before = place.world.resolve(&commit).await.unwrap();
    assert_eq!(place.world.resolve("main").await.unwrap(), before);
    place.restart();
    assert_eq!(place.world.resolve(&commit).await.unwrap(), before);
    assert_eq!(place.world.server.requests().of(RequestKind::Download), 1);
}

#[tokio::test]
async fn damaged_files_are_fetched_again() {
    let mut place = Place::new().await;
    let commit = place.world.tools(&one_file());
    let before = place.world.resolve(&commit).await.unwrap();
    let [tree] = <[PathBuf; 1]>::try_from(place.trees()).unwrap();
    let records = files(&place.directory().join("records"));
    assert_eq!(records.len(), 1, "the proof");
    for file in [&tree, &records[0]] {
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file, bytes).unwrap();
    }
    place.restart();
    assert_eq!(place.world.resolve(&commit).await.unwrap(), before);
    assert_eq!(place.world.server.requests().of(RequestKind::Download), 1);
    place.restart();
    assert_eq!(place.world.resolve(&commit).await.unwrap(), before);
    assert_eq!(place.requests(), 0);
}

#[tokio::test]
async fn a_download_that_is_cut_leaves_nothing_that_is_served_later() {
    let mut place = Place::new().await;
    let commit = place
        .world
        .tools(&Commit::on("main").file("a.txt", "a".repeat(200_000)));
    let cut = Cut {
        percent: 60,
        then: AfterCut::End,
    };
    place.world.set_switches(Switches {
        body: Body {
            cut: Some(cut),
            ..Body::default()
        },
        ..Switches::default()
    });
    assert_eq!(
        place.world.failure(&commit).await.reason,
        Reason::ArchiveTruncated
    );
    place.restart();
    assert_eq!(
        place.world.failure(&commit).await.reason,
        Reason::ArchiveTruncated
    );
    assert_eq!(place.trees(), [] as [PathBuf; 0]);
    place.world.set_switches(Switches::default());
    let whole = place.world.resolve(&commit).await.unwrap();
    assert_eq!(lines(&whole.tree), [format!("a.txt: {}", "a".repeat(200_000))]);
}

#[tokio::test]
async fn the_disk_keeps_what_was_used_last_within_its_bytes() {
    // Trees and the proof take 4 KiB blocks, four for each tree: room for four trees and one record.
    let bytes = 18 * 4096;
    let mut place = Place::new().await;
    let small = |configuration: &mut GithubConfiguration| configuration.cache_bytes = bytes;
    place.restart_with(small);
    let file = |sign: &str| Commit::on("main").file("a.txt", Bytes::from(sign.repeat(16_000)));
    let mut commits = vec![place.world.tools(&file("a"))];
    for sign in ["b", "c", "d"] {
        commits.push(place.world.tools_again(&file(sign)));
    }
    for commit in &commits {
        place.world.resolve(commit).await.unwrap();
    }
    assert_eq!(place.world.github.statistics().disk_cache_evictions, 0);
    // From memory, and yet a use.
    place.world.resolve(&commits[0]).await.unwrap();
    commits.push(place.world.tools_again(&file("e")));
    place.world.resolve(&commits[4]).await.unwrap();
    let statistics = place.world.github.statistics();
    assert_eq!(statistics.disk_cache_evictions, 1);
    assert_eq!(statistics.disk_cache_bytes, 17 * 4096);

    place.restart_with(small);
    for kept in [0, 2, 3, 4] {
        place.world.resolve(&commits[kept]).await.unwrap();
    }
    assert_eq!(place.requests(), 0);
    place.world.resolve(&commits[1]).await.unwrap();
    assert_eq!(place.world.server.requests().of(RequestKind::Download), 1);
}

#[tokio::test]
async fn a_tree_too_large_for_memory_is_served_from_disk() {
    let mut place = Place::new().await;
    place.restart_with(|configuration| configuration.tree_cache_bytes = 10);
    let commit = place.world.tools(&one_file());
    for _ in 0..3 {
        place.world.resolve(&commit).await.unwrap();
    }
    let statistics = place.world.github.statistics();
    assert_eq!((statistics.download_requests, statistics.disk_cache_hits), (1, 2));
}
