//! Which commit a reference leads to.

use std::time::Duration;

use codeworkspace_source::{Github, SourceErrorReason as Reason};
use github_server::{Commit, RequestKind};

use crate::world::{World, configuration, fault, one_file, source};

#[tokio::test]
async fn a_branch_a_tag_and_an_annotated_tag_lead_to_their_commit() {
    let world = World::new().await;
    let first = world.tools(&one_file());
    let repository = world.server.repository("octo/tools").unwrap();
    repository.tag("light", &first).unwrap();
    let tag = repository.annotated_tag("heavy", &first).unwrap();
    repository.annotated_tag("heavier", &tag).unwrap();
    let second = repository.commit(&Commit::on("main").file("b.txt", "b")).unwrap();
    for (reference, commit) in [
        ("main", &second),
        ("refs/heads/main", &second),
        ("light", &first),
        ("heavy", &first),
        ("heavier", &first),
        ("refs/tags/heavy", &first),
        (first.as_str(), &first),
    ] {
        assert_eq!(&world.revision(reference).await, commit, "{reference}");
    }
}

#[tokio::test]
async fn hex_that_is_no_full_commit_id_asks_for_one() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    for reference in [
        &commit[..8],
        &commit[..39],
        &format!("{commit}0"),
        &commit.to_uppercase(),
    ] {
        let text = "no tag or branch has this name; if it is a commit, write its full id: 40 (or 64) hex digits in lower \
                    case";
        assert_eq!(
            world.failure(reference).await,
            fault(Reason::ShortCommitId, reference, text)
        );
    }
}

#[tokio::test]
async fn a_branch_whose_name_looks_like_a_commit_is_a_branch_and_is_followed() {
    let world = World::new().await;
    let branch = || Commit::on("4f3a2b1c");
    let first = world.tools(&branch().file("a.txt", "a"));
    assert_eq!(world.revision("4f3a2b1c").await, first);
    let second = world
        .server
        .repository("octo/tools")
        .unwrap()
        .commit(&branch().file("a.txt", "b"))
        .unwrap();
    world.clock.advance(Duration::from_secs(30));
    assert_eq!(world.revision("4f3a2b1c").await, second);
}

#[tokio::test]
async fn names_with_slashes_and_special_signs_are_looked_up_literally() {
    let world = World::new().await;
    let names = [
        "feat/a#1",
        "x%2Fy",
        "ü",
        "v1/x",
        "a+b",
        "a&b=c",
        "a;b",
        "%",
        "README.md",
        "heads/main",
        "100%25",
    ];
    world.tools(&one_file());
    let repository = world.server.repository("octo/tools").unwrap();
    for name in names {
        let commit = repository.commit(&Commit::on(name).file("name", name)).unwrap();
        repository.tag(&format!("tag/{name}"), &commit).unwrap();
        assert_eq!(world.revision(name).await, commit, "{name}");
        assert_eq!(world.revision(&format!("tag/{name}")).await, commit, "tag/{name}");
    }
}

#[tokio::test]
async fn a_branch_with_the_name_of_a_file_is_a_branch() {
    let world = World::new().await;
    let commit = world.tools(&Commit::on("README.md").file("README.md", "read me"));
    assert_eq!(world.revision("README.md").await, commit);
}

#[tokio::test]
async fn a_name_that_is_tag_and_branch_is_ambiguous_until_it_is_written_in_full() {
    let world = World::new().await;
    let tagged = world.tools(&Commit::on("x").file("a.txt", "a"));
    let repository = world.server.repository("octo/tools").unwrap();
    repository.tag("x", &tagged).unwrap();
    let branch = repository.commit(&Commit::on("x").file("a.txt", "b")).unwrap();
    let text = "`x` is both a tag and a branch; write `refs/tags/x` or `refs/heads/x` as `ref`";
    assert_eq!(world.failure("x").await, fault(Reason::AmbiguousRef, "x", text));
    assert_eq!(world.revision("refs/tags/x").await, tagged);
    assert_eq!(world.revision("refs/heads/x").await, branch);
}

#[tokio::test]
async fn a_tag_that_leads_to_no_commit_is_refused() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    let repository = world.server.repository("octo/tools").unwrap();
    repository.tag("tree", &format!("{commit}^{{tree}}")).unwrap();
    repository
        .annotated_tag("file", &format!("{commit}:a.txt"))
        .unwrap();
    let mut target = commit;
    for depth in 0..7 {
        target = repository
            .annotated_tag(&format!("deep{depth}"), &target)
            .unwrap();
    }
    let text = |kind| format!("the tag leads to a {kind}, not to a commit; write another `ref`");
    assert_eq!(
        world.failure("tree").await,
        fault(Reason::RefNotACommit, "tree", &text("tree"))
    );
    assert_eq!(
        world.failure("file").await,
        fault(Reason::RefNotACommit, "file", &text("blob"))
    );
    let text = "the tag leads through more than 5 other tags; write another `ref`";
    assert_eq!(
        world.failure("deep6").await,
        fault(Reason::RefNotACommit, "deep6", text)
    );
    world.resolve("deep4").await.unwrap();
}

fn not_found(what: &str) -> String {
    format!(
        "the repository or the {what} does not exist, or the repository is private, which looks the same from outside \
         (no credential was used); check `repo` and `ref`"
    )
}

#[tokio::test]
async fn a_branch_that_does_not_exist_is_never_replaced_by_the_default_branch() {
    let world = World::new().await;
    world.tools(&one_file());
    let expected = fault(
        Reason::RepoOrRefNotFound,
        "no-such-branch",
        &not_found("branch or tag"),
    );
    assert_eq!(world.failure("no-such-branch").await, expected);
    // Nor by an operator that has just started.
    let github = Github::new(configuration(&world.server), world.clock.clone()).unwrap();
    let restarted = World { github, ..world };
    assert_eq!(restarted.failure("no-such-branch").await, expected);
    assert_eq!(restarted.server.requests().of(RequestKind::Tarball), 0);
    for (reference, what) in [
        ("refs/tags/x", "tag"),
        ("refs/heads/x", "branch"),
        ("ma", "branch or tag"),
    ] {
        let expected = fault(Reason::RepoOrRefNotFound, reference, &not_found(what));
        assert_eq!(restarted.failure(reference).await, expected);
    }
}

#[tokio::test]
async fn a_private_repository_looks_as_if_it_did_not_exist() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    world
        .server
        .repository("octo/tools")
        .unwrap()
        .set_private(true)
        .unwrap();
    let expected = fault(Reason::RepoOrRefNotFound, "main", &not_found("branch or tag"));
    assert_eq!(world.failure("main").await, expected);
    let expected = fault(Reason::RepoOrRefNotFound, &commit, &not_found("commit"));
    assert_eq!(world.failure(&commit).await, expected);
}

#[tokio::test]
async fn an_unknown_commit_id_is_not_found() {
    let world = World::new().await;
    world.tools(&one_file());
    let unknown = "0123456789abcdef0123456789abcdef01234567";
    assert_eq!(
        world.failure(unknown).await,
        fault(Reason::RepoOrRefNotFound, unknown, &not_found("commit"))
    );
}

#[tokio::test]
async fn an_empty_repository_says_so() {
    let world = World::new().await;
    world.server.create("octo/tools").unwrap();
    let text = "the repository is empty; push a commit to it";
    assert_eq!(
        world.failure("main").await,
        fault(Reason::EmptyRepository, "main", text)
    );
}

#[tokio::test]
async fn a_renamed_repository_is_followed_with_a_warning() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    world
        .server
        .repository("octo/tools")
        .unwrap()
        .rename("octo/better-tools")
        .unwrap();
    let followed = world.resolve("main").await.unwrap();
    assert_eq!(followed.revision.as_str(), commit);
    assert_eq!(
        followed.warnings,
        [
            "repository `octo/tools` is called `octo/better-tools` now; write that name, the old one may be taken by \
             somebody else"
        ]
    );
    let pinned = Github::new(configuration(&world.server), world.clock.clone()).unwrap();
    let pinned = World {
        github: pinned,
        ..world
    }
    .materialize(&source("octo/tools", &commit))
    .await
    .unwrap();
    assert_eq!(
        pinned.warnings,
        [
            "repository `octo/tools` was renamed; write its new name, the old one may be taken by somebody else"
        ]
    );
}
