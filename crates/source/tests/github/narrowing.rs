//! What a source takes of its repository, and where it lands.

use codeworkspace_bundle::code::GithubSource;
use codeworkspace_source::{Access, LinkPolicy, SourceErrorReason as Reason};
use github_server::Commit;

use crate::world::{World, fault, lines, narrowed};

fn placed(path: &str, target: &str) -> GithubSource {
    GithubSource {
        target: target.parse().unwrap(),
        ..narrowed(path)
    }
}

async fn tree(world: &World, source: &GithubSource) -> Vec<String> {
    lines(&world.materialize(source).await.unwrap().tree)
}

#[tokio::test]
async fn a_path_takes_a_folder_or_a_file_and_as_places_it() {
    let world = World::new().await;
    world.tools(
        &Commit::on("main")
            .file("src/a.py", "a")
            .file("src/b/__init__.py", "b")
            .file("src2/c.py", "c"),
    );
    let both = |prefix: &str| [format!("{prefix}a.py: a"), format!("{prefix}b/__init__.py: b")];
    assert_eq!(tree(&world, &narrowed("src")).await, both("src/"));
    assert_eq!(tree(&world, &placed("src", "lib")).await, both("lib/"));
    assert_eq!(tree(&world, &placed("src", "lib/")).await, both("lib/"));
    assert_eq!(tree(&world, &placed("src", "./")).await, both(""));
    assert_eq!(tree(&world, &narrowed("src/a.py")).await, ["src/a.py: a"]);
    assert_eq!(tree(&world, &placed("src/a.py", "tool.py")).await, ["tool.py: a"]);
    assert_eq!(tree(&world, &placed("src/a.py", "lib/")).await, ["lib/a.py: a"]);
}

#[tokio::test]
async fn a_path_that_does_not_exist_names_what_may_have_been_meant() {
    let world = World::new().await;
    world.tools(
        &Commit::on("main")
            .file("src/tool/main.py", "")
            .file("README.md", "")
            .link("latest", "src"),
    );
    let missing = |path: &str, hint: &str| {
        let text = format!("`path` `{path}` does not exist in the repository at this commit{hint}");
        fault(Reason::PathNotFound, "main", &text)
    };
    for (path, hint) in [
        ("src/tool/mian.py", "; did you mean `src/tool/main.py`?"),
        ("readme.md", "; did you mean `README.md`?"),
        ("src/tol", "; did you mean `src/tool`?"),
        ("elsewhere", ""),
    ] {
        assert_eq!(
            world.materialize(&narrowed(path)).await.unwrap_err(),
            missing(path, hint)
        );
    }
    let error = world.materialize(&narrowed("latest/tool")).await.unwrap_err();
    let text = "`path` `latest/tool` goes through the symbolic link `latest` to `src`; write the path that it leads to";
    assert_eq!(error, fault(Reason::PathNotFound, "main", text));
    let error = world.materialize(&narrowed("latest")).await.unwrap_err();
    let text = "`path` `latest` is a symbolic link to `src`; write what it leads to as `path`";
    assert_eq!(error, fault(Reason::LinkRefused, "main", text));
}

#[tokio::test]
async fn a_link_to_a_neighbour_of_the_path_is_refused_and_says_where_its_target_is() {
    let world = World::new().await;
    world.tools(
        &Commit::on("main")
            .link("a/x.yaml", "../shared/x.yaml")
            .file("a/y", "y")
            .file("shared/x.yaml", "x"),
    );
    let error = world.materialize(&narrowed("a")).await.unwrap_err();
    let text = "link `a/x.yaml` to `../shared/x.yaml` leads to something in the repository but outside `path` `a`; take a \
                folder that holds both; mend the repository, or set `links: Skip` to leave such links out";
    assert_eq!(error, fault(Reason::LinkRefused, "main", text));
    assert_eq!(tree(&world, &narrowed("shared")).await, ["shared/x.yaml: x"]);
    let whole = world.resolve("main").await.unwrap();
    assert_eq!(
        lines(&whole.tree),
        ["a/x.yaml -> ../shared/x.yaml", "a/y: y", "shared/x.yaml: x"]
    );

    let skipped = world
        .github
        .materialize(&narrowed("a"), LinkPolicy::Skip, &Access::Anonymous)
        .await
        .unwrap();
    assert_eq!(lines(&skipped.tree), ["a/y: y"]);
    assert_eq!(
        skipped.warnings,
        [
            "link `a/x.yaml` to `../shared/x.yaml` leads to something in the repository but outside `path` `a`; take a \
             folder that holds both, left out since `links` is `Skip`"
        ]
    );
}

#[tokio::test]
async fn links_that_lead_out_or_nowhere_are_refused_by_path_and_target() {
    let world = World::new().await;
    world.tools(
        &Commit::on("main")
            .file("file", "")
            .link("absolute", "/usr/bin")
            .link("broken", "missing")
            .link("chain", "broken")
            .link("loop", "loop")
            .link("out", "../elsewhere"),
    );
    let error = world.failure("main").await;
    let text = "link `absolute` to `/usr/bin` is absolute: only links to places inside the bundle are kept; link `broken` to \
                `missing` leads to nothing in the repository; link `chain` to `broken` leads to nothing in the repository; \
                and 2 more; mend the repository, or set `links: Skip` to leave such links out";
    assert_eq!(error, fault(Reason::LinkRefused, "main", text));
    let skipped = world
        .github
        .materialize(
            &crate::world::source("octo/tools", "main"),
            LinkPolicy::Skip,
            &Access::Anonymous,
        )
        .await
        .unwrap();
    assert_eq!(lines(&skipped.tree), ["file: "]);
}

#[tokio::test]
async fn a_link_to_a_folder_that_only_held_refused_links_is_left_out_with_them() {
    let world = World::new().await;
    world.tools(
        &Commit::on("main")
            .file("file", "")
            .link("folder/broken", "missing")
            .link("to-folder", "folder"),
    );
    let skipped = world
        .github
        .materialize(
            &crate::world::source("octo/tools", "main"),
            LinkPolicy::Skip,
            &Access::Anonymous,
        )
        .await
        .unwrap();
    assert_eq!(lines(&skipped.tree), ["file: "]);
}

#[tokio::test]
async fn the_text_of_a_hostile_link_never_fills_a_message() {
    let world = World::new().await;
    let target = "x\n".repeat(1000);
    world.tools(&(0..10).fold(Commit::on("main"), |commit, number| {
        commit.link(format!("l{number}"), target.clone())
    }));
    let error = world.failure("main").await;
    assert_eq!(error.reason, Reason::LinkRefused);
    assert!(error.message.len() <= codeworkspace_source::MAXIMUM_MESSAGE_BYTES);
    assert!(!error.message.contains('\n'), "{}", error.message);
    assert!(error.message.contains("and 7 more"), "{}", error.message);
}
