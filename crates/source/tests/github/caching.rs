//! Who is asked how often, and what happens when nobody answers.

use std::time::Duration;

use codeworkspace_source::{Access, Github, LinkPolicy, Materialized, SourceErrorReason as Reason};
use futures::future::join_all;
use github_server::{AfterCut, Body, Commit, Cut, RequestKind, Switches};

use crate::world::{World, configuration, fault, lines, one_file, source};

const FLOOR: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_hours(1);

#[tokio::test]
async fn two_hundred_objects_on_one_branch_ask_once() {
    let world = World::new().await;
    world.tools(&one_file());
    let main = source("octo/tools", "main");
    for _ in 0..3 {
        let all = join_all((0..200).map(|_| world.materialize(&main))).await;
        assert!(all.iter().all(|one| one == &all[0]), "all get the same");
        all[0].as_ref().unwrap();
        world.clock.advance(FLOOR);
    }
    let requests = world.server.requests();
    // Each look-up asks for a tag and for a branch; the tree is fetched once.
    assert_eq!(requests.of(RequestKind::Reference), 6);
    assert_eq!(
        (
            requests.of(RequestKind::Tarball),
            requests.of(RequestKind::Download)
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn those_who_come_while_an_archive_is_on_its_way_wait_for_it() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    world.set_switches(Switches {
        hold: vec![RequestKind::Download],
        ..Switches::default()
    });
    let ask = || {
        let (github, pinned) = (world.github.clone(), source("octo/tools", &commit));
        tokio::spawn(async move {
            github
                .materialize(&pinned, LinkPolicy::Keep, &Access::Anonymous)
                .await
        })
    };
    let first = ask();
    world
        .server
        .wait_for_requests(|requests| requests.of(RequestKind::Download) == 1)
        .await;
    // The first one gives up; the second has joined it before.
    let second = world.github.clone();
    let pinned = source("octo/tools", &commit);
    let mut second = Box::pin(second.materialize(&pinned, LinkPolicy::Keep, &Access::Anonymous));
    assert!(futures::poll!(&mut second).is_pending());
    first.abort();
    first.await.unwrap_err();
    world.set_switches(Switches::default());
    assert_eq!(lines(&second.await.unwrap().tree), ["a.txt: a"]);
    assert_eq!(world.server.requests().of(RequestKind::Download), 1);
}

#[tokio::test]
async fn a_pinned_commit_that_is_cached_asks_nobody_for_an_hour() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    world.resolve(&commit).await.unwrap();
    world.server.reset_requests();
    for _ in 0..60 {
        world.clock.advance(Duration::from_mins(1));
        world.resolve(&commit).await.unwrap();
    }
    assert_eq!(world.server.requests().total(), 0);
    assert_eq!(world.github.statistics().tree_cache_hits, 60);
}

#[tokio::test]
async fn a_branch_is_looked_up_again_only_after_the_floor() {
    let world = World::new().await;
    let first = world.tools(&one_file());
    assert_eq!(world.revision("main").await, first);
    let second = world
        .server
        .repository("octo/tools")
        .unwrap()
        .commit(&Commit::on("main").file("b", "b"))
        .unwrap();
    world.clock.advance(Duration::from_secs(29));
    assert_eq!(world.revision("main").await, first);
    world
        .github
        .refresh(&source("octo/tools", "main"), &Access::Anonymous);
    assert_eq!(
        world.revision("main").await,
        first,
        "a refresh does not break the floor"
    );
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.revision("main").await, second);
}

#[tokio::test]
async fn a_version_is_believed_for_a_day_unless_somebody_asks_for_a_refresh() {
    let world = World::new().await;
    let first = world.tools(&one_file());
    let repository = world.server.repository("octo/tools").unwrap();
    repository.tag("v1", &first).unwrap();
    assert_eq!(world.revision("v1").await, first);
    let second = repository.commit(&Commit::on("main").file("b", "b")).unwrap();
    repository.tag("v1", &second).unwrap();
    world.clock.advance(23 * HOUR);
    assert_eq!(world.revision("v1").await, first);
    world.clock.advance(2 * HOUR);
    assert_eq!(world.revision("v1").await, second);
    repository.tag("v1", &first).unwrap();
    world.clock.advance(HOUR);
    assert_eq!(world.revision("v1").await, second);
    world
        .github
        .refresh(&source("octo/tools", "v1"), &Access::Anonymous);
    assert_eq!(world.revision("v1").await, first);
}

#[tokio::test]
async fn a_name_that_was_missing_is_found_once_it_exists_and_the_floor_is_over() {
    let world = World::new().await;
    world.tools(&one_file());
    let missing = world.failure("later").await;
    let commit = world
        .server
        .repository("octo/tools")
        .unwrap()
        .commit(&Commit::on("later").file("b", "b"))
        .unwrap();
    assert_eq!(world.failure("later").await, missing);
    assert_eq!(world.server.requests().of(RequestKind::Reference), 2);
    world.clock.advance(FLOOR);
    assert_eq!(world.revision("later").await, commit);
}

#[tokio::test]
async fn a_known_commit_of_another_repository_is_not_served() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    world.resolve(&commit).await.unwrap();
    let error = world
        .materialize(&source("octo/other", &commit))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::RepoOrRefNotFound);
}

#[tokio::test]
async fn when_the_look_up_fails_the_last_commit_serves_as_stale() {
    let world = World::new().await;
    world.tools(&one_file());
    let fresh = world.resolve("main").await.unwrap();
    world.clock.advance(FLOOR);
    world.answer(RequestKind::Reference, 500, &[]);
    let text = format!(
        "`{}` answers HTTP 500; it will be asked again",
        world.server.api_host()
    );
    let failure = fault(Reason::FetchFailed, "main", &text);
    let expected = Materialized {
        stale: Some(failure.clone()),
        ..fresh.clone()
    };
    assert_eq!(world.resolve("main").await.unwrap(), expected);
    // One that never had a commit fails.
    assert_eq!(world.failure("refs/heads/main").await.reason, Reason::FetchFailed);
    world.set_switches(Switches::default());
    world.clock.advance(Duration::from_secs(5));
    assert_eq!(world.resolve("main").await.unwrap(), fresh);
}

#[tokio::test]
async fn when_a_new_commit_cannot_be_fetched_the_one_before_serves_as_stale() {
    let world = World::new().await;
    let first = world.tools(&one_file());
    world.resolve("main").await.unwrap();
    let second = world
        .server
        .repository("octo/tools")
        .unwrap()
        .commit(&Commit::on("main").file("a.txt", "b"))
        .unwrap();
    world.clock.advance(FLOOR);
    let cut = Cut {
        percent: 50,
        then: AfterCut::End,
    };
    world.set_switches(Switches {
        body: Body {
            cut: Some(cut),
            ..Body::default()
        },
        ..Switches::default()
    });
    let stale = world.resolve("main").await.unwrap();
    assert_eq!(
        (stale.revision.as_str(), lines(&stale.tree)),
        (first.as_str(), vec!["a.txt: a".to_owned()])
    );
    let text = "the archive ends early; it will be fetched again";
    assert_eq!(stale.stale, Some(fault(Reason::ArchiveTruncated, "main", text)));
    world.set_switches(Switches::default());
    let healed = world.resolve("main").await.unwrap();
    assert_eq!((healed.revision.as_str(), healed.stale), (second.as_str(), None));
}

#[tokio::test]
async fn a_branch_that_was_deleted_is_an_error_and_not_stale() {
    let world = World::new().await;
    world.tools(&one_file());
    world.resolve("main").await.unwrap();
    world
        .server
        .repository("octo/tools")
        .unwrap()
        .delete_reference("refs/heads/main")
        .unwrap();
    world
        .server
        .repository("octo/tools")
        .unwrap()
        .commit(&Commit::on("other").file("b", "b"))
        .unwrap();
    world.clock.advance(FLOOR);
    assert_eq!(world.failure("main").await.reason, Reason::RepoOrRefNotFound);
}

#[tokio::test]
async fn a_failure_that_may_pass_is_shared_for_some_seconds() {
    let world = World::new().await;
    world.tools(&one_file());
    world.answer(RequestKind::Reference, 502, &[]);
    let error = world.failure("refs/heads/main").await;
    world.clock.advance(Duration::from_secs(4));
    assert_eq!(world.failure("refs/heads/main").await, error);
    assert_eq!(world.server.requests().of(RequestKind::Reference), 1);
    world.clock.advance(Duration::from_secs(1));
    world.failure("refs/heads/main").await;
    assert_eq!(world.server.requests().of(RequestKind::Reference), 2);
}

#[tokio::test]
async fn the_tree_cache_keeps_what_was_used_last_within_its_bytes() {
    let world = World::with(|configuration| configuration.tree_cache_bytes = 25_000).await;
    let file = |sign: &str| Commit::on("main").file("a.txt", sign.repeat(10_000));
    let first = world.tools(&file("a"));
    let repository = world.server.repository("octo/tools").unwrap();
    let (second, third) = (
        repository.commit(&file("b")).unwrap(),
        repository.commit(&file("c")).unwrap(),
    );
    for commit in [&first, &second, &first, &third] {
        world.resolve(commit).await.unwrap();
    }
    assert!(world.github.statistics().tree_cache_bytes <= 25_000);
    world.server.reset_requests();
    world.resolve(&first).await.unwrap();
    world.resolve(&third).await.unwrap();
    assert_eq!(world.server.requests().total(), 0);
    world.resolve(&second).await.unwrap();
    assert_eq!(world.server.requests().of(RequestKind::Download), 1);
}

#[tokio::test]
async fn a_tree_larger_than_the_cache_is_served_and_not_kept() {
    let world = World::with(|configuration| configuration.tree_cache_bytes = 10).await;
    let commit = world.tools(&one_file());
    world.resolve(&commit).await.unwrap();
    assert_eq!(world.github.statistics().tree_cache_bytes, 0);
    world.resolve(&commit).await.unwrap();
    assert_eq!(world.github.statistics().download_requests, 2);
}

#[tokio::test]
async fn the_same_commit_gives_the_same_tree_after_a_restart() {
    let world = World::new().await;
    world.tools(&one_file());
    let before = world.resolve("main").await.unwrap();
    let github = Github::new(configuration(&world.server), world.clock.clone()).unwrap();
    assert_eq!(World { github, ..world }.resolve("main").await.unwrap(), before);
}
