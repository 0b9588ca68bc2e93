use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::{
    code::{Source, define_code},
    fixtures::{entry, path, tree},
    path::MAX_PATH_BYTES,
};

mod properties;

fn local(body: &Value) -> LocalSource {
    let code = define_code(&json!({ "sources": [{ "local": body }] })).unwrap();
    match code.sources.into_iter().next().unwrap().source {
        Ok(Source::Local(local)) => local,
        other => panic!("{other:?}"),
    }
}

/// Entries of a root in which links may lead anywhere.
fn root(entries: &[(&str, &str)]) -> Entries {
    entries.iter().map(|(at, text)| (path(at), entry(text))).collect()
}

fn taken(root: &impl Borrow<Entries>, body: &Value) -> FileTree {
    select(root, &local(body), LinkPolicy::Keep).unwrap().tree
}

fn places(root: &impl Borrow<Entries>, body: &Value) -> Vec<String> {
    taken(root, body).paths().map(ToString::to_string).collect()
}

/// The reason and message of a refusal.
fn refused(root: &impl Borrow<Entries>, body: &Value) -> (&'static str, String) {
    let error = select(root, &local(body), LinkPolicy::Keep).unwrap_err();
    (error.reason(), error.to_string())
}

fn templates() -> FileTree {
    tree(&[
        ("package.json", "{}"),
        ("shared/email-templates/.hidden.html", "hidden"),
        ("shared/email-templates/README.md", "read me"),
        ("shared/email-templates/de/welcome.html", "Hallo"),
        ("shared/email-templates/welcome.html", "Hello"),
        ("shared/lib/format-iban.ts", "iban"),
        ("shared/lib/index.ts", "index"),
        ("shared/other/index.ts", "other"),
    ])
}

#[test]
fn a_file_a_folder_and_a_filtered_folder_land_as_the_specifications_examples_say() {
    let root = templates();
    for (body, expected) in [
        (json!("package.json"), &["package.json"][..]),
        (
            json!({ "path": "shared/lib/format-iban.ts", "as": "lib/format-iban.ts" }),
            &["lib/format-iban.ts"],
        ),
        (
            json!({ "path": "shared/lib/format-iban.ts", "as": "lib/" }),
            &["lib/format-iban.ts"],
        ),
        (
            json!("shared/lib/"),
            &["shared/lib/format-iban.ts", "shared/lib/index.ts"],
        ),
        (
            json!({ "path": "shared/lib", "as": "vendor" }),
            &["vendor/format-iban.ts", "vendor/index.ts"],
        ),
        (
            json!({ "path": "shared/email-templates/", "as": "templates/", "glob": "*.html" }),
            &["templates/de/welcome.html", "templates/welcome.html"],
        ),
        (
            json!({ "path": "shared/email-templates/", "as": "./", "glob": "./*.html" }),
            &["welcome.html"],
        ),
        (
            json!({ "path": "./", "as": "all/", "glob": "**/index.ts" }),
            &["all/shared/lib/index.ts", "all/shared/other/index.ts"],
        ),
    ] {
        assert_eq!(places(&root, &body), expected, "{body}");
    }
}

#[test]
fn matches_of_a_pattern_keep_their_paths_or_land_by_name_in_the_folder_of_as() {
    let root = templates();
    for (body, expected) in [
        (
            json!("shared/*/index.ts"),
            &["shared/lib/index.ts", "shared/other/index.ts"][..],
        ),
        (json!("*.json"), &["package.json"]),
        (
            json!({ "path": "shared/lib/*.ts", "as": "all/" }),
            &["all/format-iban.ts", "all/index.ts"],
        ),
        (
            json!({ "path": "**/lib/*.ts", "as": "." }),
            &["format-iban.ts", "index.ts"],
        ),
    ] {
        assert_eq!(places(&root, &body), expected, "{body}");
    }
    assert_eq!(
        refused(&root, &json!({ "path": "shared/*/*.ts", "as": "all/" })),
        (
            "AsRefused",
            "`shared/lib/index.ts` and `shared/other/index.ts` have the same name, and would land in one place below \
             `as`: to keep their folders, write the folder that holds both in `path` and the pattern in `glob`"
                .to_owned()
        )
    );
    assert_eq!(
        refused(&root, &json!({ "path": "*.json", "as": "all" })),
        (
            "AsRefused",
            "`as` `all` is the place of one file, but `path` `*.json` is a pattern: end `as` in `/` to make it the folder \
             that receives the matches"
                .to_owned()
        )
    );
}

#[test]
fn a_path_that_is_there_as_it_is_written_is_no_pattern() {
    let root = tree(&[
        ("a1.txt", "matched"),
        ("a[1].txt", "named"),
        ("app/[id]/page.tsx", "page"),
        ("app/i/page.tsx", "no page"),
    ]);
    assert_eq!(taken(&root, &json!("a[1].txt")), tree(&[("a[1].txt", "named")]));
    assert_eq!(
        taken(&root, &json!("a[2-9a1].txt")),
        tree(&[("a1.txt", "matched")])
    );
    for text in ["app/[id]", "app/[id]/"] {
        assert_eq!(taken(&root, &json!(text)), tree(&[("app/[id]/page.tsx", "page")]));
    }
    assert_eq!(
        taken(&root, &json!({ "path": "a[1].txt", "as": "b.txt" })),
        tree(&[("b.txt", "named")])
    );
}

#[test]
fn a_folder_brings_its_hidden_files_but_never_a_git_folder() {
    let root = tree(&[
        (".DS_Store", ""),
        (".env", "A=1"),
        (".git/config", "[remote]"),
        (".github/ci.yml", ""),
        ("lib/.git", "gitdir: elsewhere"),
        ("lib/a.py", ""),
        ("lib/deep/.git/HEAD", ""),
        ("lib/x.git/y", ""),
    ]);
    let all = [".DS_Store", ".env", ".github/ci.yml", "lib/a.py", "lib/x.git/y"];
    for text in [".", "./"] {
        assert_eq!(places(&root, &json!(text)), all);
    }
    assert_eq!(places(&root, &json!("lib")), ["lib/a.py", "lib/x.git/y"]);
    assert_eq!(places(&root, &json!("**")), ["lib/a.py", "lib/x.git/y"]);
    assert_eq!(places(&root, &json!(".*")), [".DS_Store", ".env"]);
    let message = |path: &str| {
        let text = format!(
            "`path` `{path}` is refused: what is in `.git` is never taken, since it may hold credentials"
        );
        ("PathRefused", text)
    };
    for (written, shown) in [
        (".git/config", ".git/config"),
        (".git/", ".git"),
        ("lib/.git", "lib/.git"),
        (".git/*", ".git/*"),
    ] {
        assert_eq!(refused(&root, &json!(written)), message(shown));
    }
    assert_eq!(
        refused(&root, &json!({ "path": "lib/deep" })),
        (
            "NoMatch",
            "`path` `./lib/deep` has no files that can be taken".to_owned()
        )
    );
}

#[test]
fn what_is_not_there_is_refused_with_what_may_have_been_meant() {
    let root = templates();
    for (body, reason, message) in [
        (
            json!("shared/lib/format-ibn.ts"),
            "PathNotFound",
            "`path` `shared/lib/format-ibn.ts` does not exist in the workspace; did you mean \
             `shared/lib/format-iban.ts`?",
        ),
        (
            json!("shard/lib/"),
            "PathNotFound",
            "`path` `shard/lib` does not exist in the workspace; did you mean `shared/lib`?",
        ),
        (
            json!("elsewhere"),
            "PathNotFound",
            "`path` `elsewhere` does not exist in the workspace",
        ),
        (
            json!("shared/*/"),
            "PathNotFound",
            "`path` `shared/*` does not exist in the workspace; a pattern takes files, so write `/**` at its end for \
             everything below the folders that match",
        ),
        (
            json!("package.json/"),
            "NotAFolder",
            "`path` `package.json/` ends in `/`, so it has to be a folder, but it is a file: leave out the `/`",
        ),
        (
            json!("package.json/x"),
            "PathNotFound",
            "`path` `package.json/x` does not exist in the workspace; did you mean `package.json`?",
        ),
        (
            json!({ "path": "shared/email-templates", "glob": "*.htm" }),
            "NoMatch",
            "`glob` `*.htm` matches none of the 4 files of `shared/email-templates`: there are `.hidden.html`, \
             `README.md`, `de/welcome.html` and 1 more",
        ),
        (
            json!("shared/lib/*.js"),
            "NoMatch",
            "`path` `shared/lib/*.js` matches none of the 8 files of the workspace: there are `package.json`, \
             `shared/email-templates/.hidden.html`, `shared/email-templates/README.md` and 5 more",
        ),
        (
            json!({ "path": "package.json", "glob": "*" }),
            "GlobRefused",
            "`glob` chooses among the files of a folder, but `path` `package.json` is a file: leave out `glob`",
        ),
        (
            json!({ "path": "shared/*", "glob": "*" }),
            "GlobRefused",
            "`glob` chooses among the files of a folder, but `path` `shared/*` is a pattern itself: write the folder in \
             `path` and one pattern in `glob`",
        ),
    ] {
        assert_eq!(refused(&root, &body), (reason, message.to_owned()), "{body}");
    }
    assert_eq!(
        refused(&FileTree::new(), &json!("./")),
        ("NoMatch", "`path` `./` has no files that can be taken".to_owned())
    );
}

#[test]
fn a_link_from_the_chosen_folder_to_a_neighbour_says_that_it_is_outside_path() {
    let root = tree(&[
        ("a/x.yaml", "-> ../shared/x.yaml"),
        ("a/y", "y"),
        ("shared/x.yaml", "x"),
    ]);
    let sentence = "link `a/x.yaml` to `../shared/x.yaml` leads to something in the workspace but outside `path` `a`; take a \
                    folder that holds both";
    assert_eq!(
        refused(&root, &json!("a")),
        (
            "LinkRefused",
            format!("{sentence}; mend the workspace, or set `links: Skip` to leave such links out")
        )
    );
    let skipped = select(&root, &local(&json!("a")), LinkPolicy::Skip).unwrap();
    assert_eq!(skipped.tree, tree(&[("a/y", "y")]));
    assert_eq!(
        skipped.warnings,
        [format!("{sentence}, left out since `links` is `Skip`")]
    );
    assert_eq!(taken(&root, &json!("./")), root);
    assert_eq!(places(&root, &json!("shared")), ["shared/x.yaml"]);
}

#[test]
fn links_that_no_source_takes_may_lead_anywhere() {
    let root = root(&[
        ("elsewhere/passwd", "-> /etc/passwd"),
        ("lib/a", "x"),
        ("lib/b", "-> a"),
    ]);
    assert_eq!(
        taken(&root, &json!("lib")),
        tree(&[("lib/a", "x"), ("lib/b", "-> a")])
    );
    assert_eq!(
        refused(&root, &json!("elsewhere")),
        (
            "LinkRefused",
            "link `elsewhere/passwd` to `/etc/passwd` is absolute: only links to places inside the bundle are kept; mend \
             the workspace, or set `links: Skip` to leave such links out"
                .to_owned()
        )
    );
}

#[test]
fn a_link_is_refused_for_its_own_reason() {
    let root = root(&[
        ("a/chosen.ts", "-> other.js"),
        ("a/config", "-> .git/config"),
        ("a/.git/config", "[remote]"),
        ("a/detour", "-> ../a/other.js"),
        ("a/nothing", "-> missing"),
        ("a/other.js", "x"),
        ("a/out", "-> ../../etc"),
        ("link", "-> a"),
    ]);
    for (body, sentence) in [
        (
            json!({ "path": "a", "glob": "*.ts" }),
            "link `a/chosen.ts` to `other.js` leads to something in the workspace that the source does not take",
        ),
        (
            json!("**/*.ts"),
            "link `a/chosen.ts` to `other.js` leads to something in the workspace that the source does not take",
        ),
        (
            json!({ "path": "a", "glob": "config" }),
            "link `a/config` to `.git/config` leads to something in the workspace that the source does not take",
        ),
        (
            json!({ "path": "a", "glob": "[do]*" }),
            "link `a/detour` to `../a/other.js` leaves `path` `a` and comes back, by folders that are not in the bundle; \
             write it without the detour; link `a/out` to `../../etc` leads out of the workspace",
        ),
        (
            json!({ "path": "a", "glob": "n*" }),
            "link `a/nothing` to `missing` leads to nothing in the workspace",
        ),
        (
            json!({ "path": "a/*.ts", "as": "all/" }),
            "link `a/chosen.ts` to `other.js` would lead elsewhere from the folder that `as` names",
        ),
    ] {
        let message = format!("{sentence}; mend the workspace, or set `links: Skip` to leave such links out");
        assert_eq!(refused(&root, &body), ("LinkRefused", message), "{body}");
    }
    assert_eq!(
        refused(&root, &json!("link")),
        (
            "LinkRefused",
            "`path` `link` is a symbolic link to `a`; write what it leads to as `path`".to_owned()
        )
    );
    assert_eq!(
        refused(&root, &json!("link/other.js")),
        (
            "PathNotFound",
            "`path` `link/other.js` goes through the symbolic link `link` to `a`; write the path that it leads to"
                .to_owned()
        )
    );
}

#[test]
fn compressed_files_arrive_unchanged() {
    let gzip = Bytes::from_static(b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0");
    let mut root = FileTree::new();
    for at in ["data/model.tar.gz", "data/x.json.gz"] {
        root.insert(path(at), Entry::from_contents(gzip.clone())).unwrap();
    }
    assert_eq!(taken(&root, &json!("data/")), root);
    assert_eq!(taken(&root, &json!("*.gz")), root);
}

#[test]
fn paths_of_every_length_arrive_whole_and_distinct_and_longer_ones_are_refused() {
    let long = |bytes: usize, last: char| {
        let mut text = "folder/".repeat(bytes / 7);
        text.extend(std::iter::repeat_n('x', bytes - text.len() - 1));
        text.push(last);
        assert_eq!(text.len(), bytes);
        text
    };
    let mut root = FileTree::new();
    for bytes in [99, 100, 101, 155, 256, 300] {
        for last in ['a', 'b'] {
            let contents = Bytes::from(format!("{bytes}{last}"));
            root.insert(path(&long(bytes, last)), Entry::from_contents(contents))
                .unwrap();
        }
    }
    let many_bytes = format!("{}/{}", "é".repeat(100), "日".repeat(33));
    root.insert(
        path(&many_bytes),
        Entry::from_contents(Bytes::from_static(b"300")),
    )
    .unwrap();
    assert_eq!(many_bytes.len(), 300);
    assert_eq!(taken(&root, &json!("./")), root);

    // The name of a path of 300 bytes has 6.
    let folder = ["x".repeat(203).as_str(); 5].join("/");
    assert_eq!(folder.len(), MAX_PATH_BYTES - 5);
    for body in [
        json!({ "path": "./", "as": folder }),
        json!({ "path": long(300, 'a'), "as": format!("{folder}/") }),
        json!({ "path": "**/xxxxx?", "as": format!("{folder}/") }),
    ] {
        let (reason, message) = refused(&root, &body);
        assert_eq!(reason, "AsRefused");
        assert!(message.ends_with("at most 1024 are allowed"), "{message}");
    }
}

#[test]
fn names_that_begin_with_a_dash_are_names() {
    let root = tree(&[
        ("--help.py", "help"),
        ("-rf", "no option"),
        ("@x", "at"),
        ("a", ""),
    ]);
    for name in ["--help.py", "-rf", "@x"] {
        assert_eq!(places(&root, &json!(name)), [name]);
    }
    assert_eq!(places(&root, &json!("-*")), ["--help.py", "-rf"]);
    assert_eq!(places(&root, &json!("./")), ["--help.py", "-rf", "@x", "a"]);
}

#[test]
fn the_warnings_of_files_come_with_them() {
    let root = tree(&[("lib/run.sh", "#!/bin/sh\r\n"), ("other.sh", "#!/bin/sh\r\n")]);
    let selected = select(
        &root,
        &local(&json!({ "path": "lib", "as": "bin/" })),
        LinkPolicy::Keep,
    )
    .unwrap();
    assert_eq!(
        selected.warnings,
        [
            "`bin/run.sh` have a Windows line end after `#!`, which makes the name of an interpreter that does not exist: \
             save with LF instead of CRLF"
        ]
    );
}

#[test]
fn a_root_that_no_file_system_has_is_refused() {
    let root = root(&[("a/b", "file"), ("a/b/c", "below a file")]);
    assert_eq!(refused(&root, &json!("a")).0, "RootRefused");
}
