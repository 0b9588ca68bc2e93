use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    fixtures::{path, report, tree},
    tree::{Entry, FileTree},
};

const SHA_1: &str = "4f3a2b1ca73b5e9f8d2c1a0b3e6f7d4c8b1a2e3f";

/// The only source of a block, which is expected to be right.
fn one(source: &Value) -> Source {
    let code = define_code(&json!({ "sources": [source] })).unwrap();
    assert_eq!(code.errors, []);
    let [entry] = &code.sources[..] else {
        panic!("one source")
    };
    entry.source.clone().unwrap()
}

/// Everything that is wrong in a block, as it would be shown.
fn errors(block: &Value) -> Vec<String> {
    let show = |errors: &mut dyn Iterator<Item = &FieldError>| errors.map(FieldError::to_string).collect();
    match define_code(block) {
        Ok(code) => show(&mut code.all_errors()),
        Err(errors) => show(&mut errors.iter()),
    }
}

/// The same for a block with one source.
fn source_errors(source: &Value) -> Vec<String> {
    errors(&json!({ "sources": [source] }))
}

#[test]
fn all_four_kinds_are_read_in_their_order() {
    let code = define_code(&json!({ "sources": [
        { "inline": { "path": "./tool.ts", "content": "export {}" } },
        { "local": { "path": "shared/templates/", "as": "templates/", "glob": "*.html" } },
        { "github": { "repo": "mycompany/render-utils", "ref": SHA_1, "path": "src/", "as": "vendor/" } },
        { "ref": { "path": "./shared/template-engine" } },
    ] }))
    .unwrap();
    let entry = |index: usize, kind, summary: &str, source| SourceEntry {
        field: format!("code.sources[{index}]"),
        kind: Some(kind),
        summary: summary.to_owned(),
        source: Ok(source),
    };
    let inline = InlineSource {
        path: path("tool.ts"),
        content: "export {}".into(),
    };
    let local = LocalSource {
        pattern: "shared/templates/".parse().unwrap(),
        glob: Some("*.html".parse().unwrap()),
        target: Target::Folder(Some(path("templates"))),
    };
    let github = GithubSource {
        repository: "mycompany/render-utils".parse().unwrap(),
        reference: GitReference::Commit(SHA_1.parse().unwrap()),
        path: Some(path("src")),
        target: Target::Folder(Some(path("vendor"))),
    };
    let reference = RefSource {
        path: "shared/template-engine".parse().unwrap(),
    };
    assert_eq!(
        code,
        Code {
            sources: vec![
                entry(0, SourceKind::Inline, "inline ./tool.ts", Source::Inline(inline)),
                entry(
                    1,
                    SourceKind::Local,
                    "local shared/templates/",
                    Source::Local(local)
                ),
                entry(
                    2,
                    SourceKind::Github,
                    "github mycompany/render-utils@4f3a2b1ca73b5e9f8d2c1a0b3e6f7d4c8b1a2e3f:src/",
                    Source::Github(github)
                ),
                entry(
                    3,
                    SourceKind::Ref,
                    "ref ./shared/template-engine",
                    Source::Ref(reference)
                ),
            ],
            errors: vec![],
        }
    );
}

#[test]
fn a_string_is_short_for_one_ref() {
    for text in [
        "./shared/render-utils",
        "shared/render-utils",
        "shared/render-utils/",
    ] {
        let code = define_code(&json!(text)).unwrap();
        let [
            SourceEntry {
                field, kind, source, ..
            },
        ] = &code.sources[..]
        else {
            panic!("one source")
        };
        assert_eq!((field.as_str(), *kind), ("code", Some(SourceKind::Ref)));
        assert_eq!(
            source,
            &Ok(Source::Ref(RefSource {
                path: "shared/render-utils".parse().unwrap()
            }))
        );
    }
}

#[test]
fn local_and_ref_have_string_forms() {
    assert_eq!(
        one(&json!({ "local": "package.json" })),
        one(&json!({ "local": { "path": "./package.json" } }))
    );
    assert_eq!(
        one(&json!({ "ref": "./shared/x" })),
        one(&json!({ "ref": { "path": "shared/x" } }))
    );
}

#[test]
fn a_local_path_is_a_folder_by_its_slash_and_a_pattern_by_its_characters() {
    let pattern = |text: &str| {
        let Source::Local(LocalSource { pattern, .. }) = one(&json!({ "local": text })) else {
            panic!("local")
        };
        let glob = pattern.glob.map(|glob| glob.to_string());
        (pattern.path.to_string(), pattern.must_be_folder, glob)
    };
    assert_eq!(pattern("lib"), ("./lib".to_owned(), false, None));
    assert_eq!(pattern("lib/"), ("./lib".to_owned(), true, None));
    assert_eq!(pattern("./"), ("./".to_owned(), true, None));
    let glob = Some("lib/**/*.ts".to_owned());
    assert_eq!(pattern("lib/**/*.ts"), ("./lib/**/*.ts".to_owned(), false, glob));
    assert_eq!(pattern("app/[id]/"), ("./app/[id]".to_owned(), true, None));
}

#[test]
fn equal_spellings_of_a_repository_path_are_equal() {
    let read = |text: &str| match one(&json!({ "github": { "repo": "o/r", "ref": "main", "path": text } })) {
        Source::Github(github) => github.path,
        other => panic!("{other:?}"),
    };
    for whole in ["", ".", "./"] {
        assert_eq!(read(whole), None, "{whole:?}");
    }
    for folder in ["src/lib", "./src/lib", "src/lib/", "./src/lib/"] {
        assert_eq!(read(folder), Some(path("src/lib")), "{folder:?}");
    }
}

#[test]
fn an_inline_source_is_a_tree_of_one_file() {
    let inline = |content: &str| {
        InlineSource {
            path: path("bin/run"),
            content: content.into(),
        }
        .tree()
    };
    assert_eq!(inline("text"), tree(&[("bin/run", "text")]));
    let mut executable = FileTree::new();
    let contents = Bytes::from_static(b"#!/bin/sh\n");
    executable
        .insert(
            path("bin/run"),
            Entry::File {
                contents,
                executable: true,
            },
        )
        .unwrap();
    assert_eq!(inline("#!/bin/sh\n"), executable);
}

#[test]
fn a_bad_source_does_not_hide_the_others() {
    let code = define_code(&json!({ "sources": [
        { "github": { "repo": "octo/tools", "ref": "-b", "path": "src" } },
        { "inline": { "path": "a.py", "content": "" } },
        { "inline": { "path": "/b.py" } },
        { "local": "./c.py" },
    ] }))
    .unwrap();
    let outline: Vec<_> = code
        .sources
        .iter()
        .map(|entry| (entry.field.as_str(), entry.summary.as_str(), entry.source.is_ok()))
        .collect();
    assert_eq!(
        outline,
        [
            ("code.sources[0]", "github octo/tools@-b:src", false),
            ("code.sources[1]", "inline a.py", true),
            ("code.sources[2]", "inline /b.py", false),
            ("code.sources[3]", "local ./c.py", true),
        ]
    );
    assert_eq!(
        code.all_errors()
            .map(|error| error.field.as_str())
            .collect::<Vec<_>>(),
        [
            "code.sources[0].github.ref",
            "code.sources[2].inline.content",
            "code.sources[2].inline.path"
        ]
    );
}

#[test]
fn a_block_without_a_list_of_sources_is_refused_as_a_whole() {
    insta::assert_snapshot!(report(
        &[
            json!(null),
            json!(7),
            json!([]),
            json!({}),
            json!({ "sources": null }),
            json!({ "sources": [] }),
            json!({ "sources": "./x" }),
            json!({ "source": [] }),
            json!({ "inline": { "path": "a", "content": "" } }),
            json!({ "kind": "tool", "name": "x", "code": { "sources": [] }, "run": "a.py" }),
        ],
        errors
    ));
}

#[test]
fn every_fault_of_an_entry_is_named_with_its_field() {
    insta::assert_snapshot!(report(
        &[
            json!("./x"),
            json!(null),
            json!({}),
            json!({ "inlin": {} }),
            json!({ "git": { "repo": "o/r" } }),
            json!({ "kind": "github", "repo": "o/r" }),
            json!({ "a b": 1, "\u{1}": 2, "": 3 }),
            json!({ "inline": null }),
            json!({ "inline": { "path": "a", "content": "" }, "github": { "repo": "o/r", "ref": "main" } }),
            json!({ "inline": { "path": "a" }, "github": { "repo": "o" } }),
            json!({ "github": null, "repo": "o/r", "ref": "main" }),
        ],
        source_errors
    ));
}

#[test]
fn every_fault_of_an_inline_source_is_named_with_its_field() {
    insta::assert_snapshot!(report(
        &[
            json!({}),
            json!({ "path": "a", "contents": "x" }),
            json!({ "path": null, "content": null }),
            json!({ "path": 1, "content": 2.5 }),
            json!({ "path": ["a"], "content": { "a": 1 } }),
            json!({ "path": "", "content": "" }),
            json!({ "path": "/etc/passwd", "content": "" }),
            json!({ "path": "../x", "content": "" }),
            json!({ "path": "a\u{0}b", "content": "a\u{0}b" }),
            json!({ "path": "folder/", "content": "" }),
            json!({ "path": "a", "content": "", "mode": "0755", "as": "b" }),
        ],
        |body| source_errors(&json!({ "inline": body }))
    ));
}

#[test]
fn every_fault_of_a_local_source_is_named_with_its_field() {
    insta::assert_snapshot!(report(
        &[
            json!(null),
            json!(3),
            json!({}),
            json!("/abs"),
            json!("../up"),
            json!({ "path": "a/../b", "as": "/c", "glob": "" }),
            json!({ "path": "a", "globs": "*.ts", "dest": "b" }),
            json!("src/[a.ts"),
            json!({ "path": "src/**.ts", "glob": "{a\\,b}" }),
        ],
        |body| source_errors(&json!({ "local": body }))
    ));
}

#[test]
fn every_fault_of_a_github_source_is_named_with_its_field() {
    insta::assert_snapshot!(report(
        &[
            json!("octo/tools"),
            json!({}),
            json!({ "repo": "octo", "ref": "main^{}", "path": "../x", "as": "/y" }),
            json!({ "repo": "https://github.com/octo/tools", "ref": "refs/pull/1/head" }),
            json!({ "repo": "octo/tools@v1", "branch": "main" }),
            json!({ "repo": "o/r", "ref": 1.5 }),
            json!({ "repo": "o/r", "ref": true, "path": null, "as": "" }),
            json!({ "repo": "o/r", "ref": "main", "path": "/", "token": "secret" }),
            json!({ "repo": "o/r", "ref": "x".repeat(300) }),
        ],
        |body| source_errors(&json!({ "github": body }))
    ));
}

#[test]
fn every_fault_of_a_ref_source_is_named_with_its_field() {
    insta::assert_snapshot!(report(
        &[
            json!(null),
            json!({}),
            json!("/abs"),
            json!("../up"),
            json!("./libs/base@4f3a2b1c"),
            json!({ "path": "./libs/base@v1/", "ref": "v1" }),
            json!({ "path": "" }),
        ],
        |body| source_errors(&json!({ "ref": body }))
    ));
    assert_eq!(errors(&json!("/abs")).len(), 1);
    assert!(errors(&json!("../up"))[0].starts_with("code: "));
}

#[test]
fn a_scope_is_not_a_version() {
    let Source::Ref(source) = one(&json!({ "ref": "./packages/@acme" })) else {
        panic!("ref")
    };
    assert_eq!(source.path.to_string(), "./packages/@acme");
}

#[test]
fn secrets_of_a_wrong_field_are_not_repeated() {
    let shown =
        source_errors(&json!({ "github": { "repo": "o/r", "ref": "main", "token": "hunter2" } })).concat();
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn more_than_64_sources_are_an_error_of_the_block() {
    let block = |count| json!({ "sources": vec![json!({ "local": "a" }); count] });
    let code = define_code(&block(64)).unwrap();
    assert_eq!((code.sources.len(), code.errors.len()), (64, 0));
    let code = define_code(&block(65)).unwrap();
    assert_eq!(code.sources.len(), 64);
    let message = "has 65 sources; at most 64 are allowed";
    assert_eq!(code.errors, [FieldError::new("code.sources", message)]);
}

#[test]
fn inline_content_is_limited_in_all() {
    let block = |bytes: [usize; 2]| {
        let sources: Vec<_> = bytes
            .iter()
            .map(|bytes| json!({ "inline": { "path": "a", "content": "x".repeat(*bytes) } }))
            .collect();
        json!({ "sources": sources })
    };
    assert_eq!(errors(&block([262_144, 262_144])), [""; 0]);
    assert_eq!(
        errors(&block([262_144, 262_145])),
        [
            "code.sources: has 524289 bytes of inline content; at most 524288 are allowed, since the API server refuses \
          objects of about 1.5 MiB. Take large files from a `github` or `local` source; above 256 KiB `kubectl apply` \
          also needs `--server-side`"
        ]
    );
}

#[test]
fn a_flood_of_unknown_fields_is_not_repeated_one_by_one() {
    let flood: Map = (0..1_000)
        .map(|index| (format!("field{index}"), json!(1)))
        .collect();
    assert_eq!(source_errors(&json!(flood)).len(), 16);
    let mut inline = flood;
    inline.insert("path".to_owned(), json!("a"));
    inline.insert("content".to_owned(), json!(""));
    assert_eq!(source_errors(&json!({ "inline": inline })).len(), 16);
}

type Map = serde_json::Map<String, Value>;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z./@\\\\:~\0\n ]{0,12}".prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "sources", "inline", "local", "github", "ref", "path", "content", "repo", "as", "glob", "x",
    ]);
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read_or_refused_without_panic(block in any_json()) {
        match define_code(&block) {
            Ok(code) => {
                prop_assert!(!code.sources.is_empty());
                for entry in &code.sources {
                    if let Err(errors) = &entry.source {
                        prop_assert!(!errors.is_empty());
                        prop_assert!(errors.iter().all(|error| error.field.starts_with(&entry.field)));
                    }
                }
            }
            Err(errors) => prop_assert!(!errors.is_empty()),
        }
    }
}
