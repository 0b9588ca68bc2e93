//! Files arrive as git has them.

use std::io::Write as _;
use std::time::Duration;

use codeworkspace_source::{Access, Github, SourceErrorReason as Reason};
use flate2::Compression;
use flate2::write::GzEncoder;
use github_server::{Archive, Change, Commit, Switches};

use crate::world::{World, configuration, fault, lines, narrowed, one_file};

#[tokio::test]
async fn content_links_and_executable_bits_are_kept() {
    let world = World::new().await;
    world.tools(
        &Commit::on("main")
            .file("cfg.d/v2/app.yaml", "a: 1\n")
            .link("cfg", "cfg.d/v2")
            .link("cfg.d/self", "./v2/app.yaml")
            .executable("run.sh", "#!/bin/sh\n")
            .file("plain.sh", "#!/bin/sh\n")
            .file("empty", ""),
    );
    assert_eq!(
        lines(&world.resolve("main").await.unwrap().tree),
        [
            "cfg -> cfg.d/v2",
            "cfg.d/self -> ./v2/app.yaml",
            "cfg.d/v2/app.yaml: a: 1\n",
            "empty: ",
            // Git's bit decides, not the first line.
            "plain.sh: #!/bin/sh\n",
            "run.sh*: #!/bin/sh\n",
        ]
    );
}

#[tokio::test]
async fn compressed_files_are_not_taken_for_archives() {
    let world = World::new().await;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(b"{}").unwrap();
    let compressed = encoder.finish().unwrap();
    world.tools(
        &Commit::on("main")
            .file("data/model.tar.gz", compressed.clone())
            .file("x.json.gz", compressed.clone()),
    );
    let tree = world.resolve("main").await.unwrap().tree;
    for (path, entry) in tree.iter() {
        let codeworkspace_bundle::Entry::File { contents, .. } = entry else {
            panic!("{path} is a link")
        };
        assert_eq!(contents, &compressed, "{path}");
    }
    assert_eq!(tree.len(), 2);
}

#[tokio::test]
async fn paths_of_any_legal_length_arrive_whole_and_distinct() {
    let world = World::new().await;
    let path_of = |length: usize| {
        let folder = "d".repeat(49) + "/";
        let folders = folder.repeat((length - 10) / 50);
        let name = length - folders.len();
        folders + &"n".repeat(name)
    };
    let mut paths: Vec<String> = [99, 100, 101, 155, 156, 255, 256, 257, 300, 1024]
        .map(path_of)
        .to_vec();
    paths.push(format!("{}/{}", "é".repeat(100), "ü".repeat(49)));
    let commit = paths.iter().fold(Commit::on("main"), |commit, path| {
        commit.file(path, path.as_bytes())
    });
    world.tools(&commit);
    paths.sort();
    let expected: Vec<_> = paths.iter().map(|path| format!("{path}: {path}")).collect();
    assert_eq!(lines(&world.resolve("main").await.unwrap().tree), expected);

    let too_long = path_of(1025);
    world
        .server
        .repository("octo/tools")
        .unwrap()
        .commit(&Commit::on("long").file(too_long, ""))
        .unwrap();
    let error = world.failure("long").await;
    assert_eq!(error.reason, Reason::ArchiveRefused);
    assert!(
        error
            .message
            .ends_with("is 1025 bytes long; at most 1024 are allowed"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn another_compression_or_top_folder_gives_the_same_tree() {
    let world = World::new().await;
    let commit = world.tools(
        &Commit::on("main")
            .file("a/b.txt", "b")
            .link("l", "a")
            .executable("x", "x"),
    );
    let mut trees = Vec::new();
    for switch in [
        Archive::default(),
        Archive {
            level: Some(1),
            ..Archive::default()
        },
        Archive {
            top_folder: Some("tools-main".to_owned()),
            level: Some(9),
            ..Archive::default()
        },
    ] {
        world.set_switches(Switches {
            archive: switch,
            ..Switches::default()
        });
        // A resolver that has just started has no cache.
        let github = Github::new(configuration(&world.server), world.clock.clone()).unwrap();
        let source = crate::world::source("octo/tools", &commit);
        trees.push(
            github
                .materialize(
                    &source,
                    codeworkspace_source::LinkPolicy::Keep,
                    &Access::Anonymous,
                )
                .await
                .unwrap()
                .tree,
        );
    }
    assert_eq!(trees[0], trees[1]);
    assert_eq!(trees[0], trees[2]);
}

#[tokio::test]
async fn what_archives_leave_out_is_a_warning() {
    let world = World::new().await;
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";
    world.tools(
        &Commit::on("main")
            .file(".gitattributes", "tests/ export-ignore\nver.txt export-subst\n")
            .file("tests/x.py", "x")
            .file("ver.txt", "$Format:%H$\n")
            .file("weights.bin", pointer)
            .change(
                "vendor/lib",
                Change::Submodule("0123456789012345678901234567890123456789".to_owned()),
            ),
    );
    let found = world.resolve("main").await.unwrap();
    let paths: Vec<_> = found
        .tree
        .paths()
        .map(codeworkspace_bundle::BundlePath::as_str)
        .collect();
    assert_eq!(paths, [".gitattributes", "ver.txt", "weights.bin"]);
    assert_eq!(
        found.warnings,
        [
            "`vendor/lib` has no files in GitHub's archive: a submodule, which archives leave out, or a folder that \
             export-ignore empties",
            "`weights.bin` only point to files in Git LFS, which GitHub's archives leave out",
            "the repository's .gitattributes leaves paths out of archives (export-ignore)",
            "the repository's .gitattributes has files rewritten in archives (export-subst), so the same commit may give \
             other bytes later",
        ]
    );

    let error = world.materialize(&narrowed("tests/x.py")).await.unwrap_err();
    let text = "`path` `tests/x.py` does not exist in the repository at this commit; its .gitattributes leaves paths out \
                of archives (export-ignore)";
    assert_eq!(error, fault(Reason::PathNotFound, "main", text));
    let error = world.materialize(&narrowed("vendor/lib/src")).await.unwrap_err();
    let text = "`path` `vendor/lib/src` is not in the archive: `vendor/lib` has no files in GitHub's archive: a submodule, \
                which archives leave out, or a folder that export-ignore empties";
    assert_eq!(error, fault(Reason::PathNotFound, "main", text));
}

#[tokio::test]
async fn a_tree_stays_the_same_when_the_branch_moves_away_and_back() {
    let world = World::new().await;
    let first = world.tools(&one_file());
    let before = world.resolve("main").await.unwrap();
    let repository = world.server.repository("octo/tools").unwrap();
    repository.commit(&Commit::on("main").file("a.txt", "b")).unwrap();
    world.clock.advance(Duration::from_secs(30));
    assert_ne!(world.resolve("main").await.unwrap(), before);
    repository.branch("main", &first).unwrap();
    world.clock.advance(Duration::from_secs(30));
    assert_eq!(world.resolve("main").await.unwrap(), before);
}
