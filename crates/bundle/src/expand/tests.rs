mod random;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::manifest::{Blocks, ManifestError};

/// An object that consists of these sources.
fn object(sources: &Value) -> Manifest {
    let code = json!({ "sources": sources });
    let blocks = Blocks {
        code: Some(&code),
        ..Blocks::default()
    };
    Manifest::from_blocks(&blocks, None)
}

fn key(context: &str, path: &str) -> NodeKey {
    NodeKey {
        context: context.to_owned(),
        path: path.parse().unwrap(),
    }
}

/// A namespace of objects, each of which is `./<name>` and refers to others by that path, or to a file `x`.
fn expand_objects(objects: &[(&str, &[&str])], top: &str) -> Expanded {
    let manifest = |names: &[&str]| {
        let sources: Vec<_> = names
            .iter()
            .map(|name| match name.strip_prefix('+') {
                Some(file) => json!({ "inline": { "path": file, "content": "" } }),
                None => json!({ "ref": format!("./{name}") }),
            })
            .collect();
        Arc::new(object(&json!(sources)))
    };
    let find = |name: &str| {
        objects
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, names)| manifest(names))
    };
    let mut catalog = Catalog::new();
    loop {
        match expand(&find(top).unwrap(), top, &catalog) {
            Expansion::Complete(expanded) => return *expanded,
            Expansion::Wanted(wanted) => {
                for key in wanted {
                    let name = key.path.below_root().unwrap().to_string();
                    let found = match find(&name) {
                        Some(manifest) => Lookup::Object { name, manifest },
                        None => Lookup::Missing {
                            has_root: false,
                            near: None,
                        },
                    };
                    catalog.insert(key, found);
                }
            }
        }
    }
}

/// Each leaf's path, with its file or its error.
fn outline(expanded: &Expanded) -> Vec<String> {
    let what = |leaf: &Leaf| match &leaf.source {
        Ok(LeafSource::Inline(inline)) => inline.path.to_string(),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("! {error}"),
    };
    expanded
        .leaves
        .iter()
        .map(|leaf| format!("{} = {}", leaf.path, what(leaf)))
        .collect()
}

#[test]
fn a_manifest_without_references_is_its_own_sources() {
    assert_eq!(
        outline(&expand_objects(&[("a", &["+x", "+y"])], "a")),
        ["code.sources[0] = x", "code.sources[1] = y"]
    );
}

#[test]
fn what_a_reference_leads_to_takes_its_place() {
    let objects: &[(&str, &[&str])] = &[
        ("top", &["+x", "render-utils", "+z"]),
        ("render-utils", &["+a", "base"]),
        ("base", &["+b"]),
    ];
    assert_eq!(
        outline(&expand_objects(objects, "top")),
        [
            "code.sources[0] = x",
            "code.sources[1] > render-utils > code.sources[0] = a",
            "code.sources[1] > render-utils > code.sources[1] > base > code.sources[0] = b",
            "code.sources[2] = z",
        ]
    );
}

#[test]
fn what_is_missing_in_the_catalog_is_wanted_all_at_once() {
    let top = object(&json!([{ "ref": "./a" }, { "ref": "./b" }, { "ref": "a" }]));
    assert_eq!(
        expand(&top, "top", &Catalog::new()),
        Expansion::Wanted(BTreeSet::from([key("top", "./a"), key("top", "./b")]))
    );
}

#[test]
fn a_cycle_is_named_in_full() {
    let objects: &[(&str, &[&str])] = &[("a", &["b", "+x"]), ("b", &["c"]), ("c", &["a"])];
    assert_eq!(
        outline(&expand_objects(objects, "a")),
        [
            "code.sources[0] > b > code.sources[0] > c > code.sources[0] = ! is a cycle: a > b > c > a",
            "code.sources[1] = x",
        ]
    );
}

#[test]
fn a_workspace_that_refers_to_itself_is_a_cycle() {
    assert_eq!(
        outline(&expand_objects(&[("a", &["a"])], "a")),
        ["code.sources[0] = ! is a cycle: a > a"]
    );
}

#[test]
fn a_cycle_below_is_named_without_the_way_to_it() {
    let objects: &[(&str, &[&str])] = &[("top", &["a"]), ("a", &["b"]), ("b", &["a"])];
    assert_eq!(
        outline(&expand_objects(objects, "top")),
        ["code.sources[0] > a > code.sources[0] > b > code.sources[0] = ! is a cycle: a > b > a"]
    );
}

#[test]
fn a_diamond_is_legal_and_its_files_come_in_at_both_places() {
    let objects: &[(&str, &[&str])] = &[
        ("top", &["a", "b"]),
        ("a", &["shared", "+a"]),
        ("b", &["+b", "shared"]),
        ("shared", &["+x"]),
    ];
    assert_eq!(
        outline(&expand_objects(objects, "top")),
        [
            "code.sources[0] > a > code.sources[0] > shared > code.sources[0] = x",
            "code.sources[0] > a > code.sources[1] = a",
            "code.sources[1] > b > code.sources[0] = b",
            "code.sources[1] > b > code.sources[1] > shared > code.sources[0] = x",
        ]
    );
}

#[test]
fn five_references_in_a_row_are_fine_and_six_are_refused() {
    let chain: &[(&str, &[&str])] = &[
        ("a", &["b"]),
        ("b", &["c"]),
        ("c", &["d"]),
        ("d", &["e"]),
        ("e", &["f"]),
        ("f", &["+x", "g"]),
        ("g", &["+y"]),
    ];
    let way = "code.sources[0] > c > code.sources[0] > d > code.sources[0] > e > code.sources[0] > f";
    assert_eq!(
        outline(&expand_objects(chain, "b")),
        [
            format!("{way} > code.sources[0] = x"),
            format!("{way} > code.sources[1] > g > code.sources[0] = y"),
        ]
    );
    let way = format!("code.sources[0] > b > {way}");
    assert_eq!(
        outline(&expand_objects(chain, "a")),
        [
            format!("{way} > code.sources[0] = x"),
            format!(
                "{way} > code.sources[1] = ! is one reference too many in a row, of which there may be 5: a > b > c > d > e > f > g"
            ),
        ]
    );
}

#[test]
fn a_cycle_of_six_is_still_named() {
    let objects: &[(&str, &[&str])] = &[
        ("a", &["b"]),
        ("b", &["c"]),
        ("c", &["d"]),
        ("d", &["e"]),
        ("e", &["f"]),
        ("f", &["a"]),
    ];
    let [leaf] = &outline(&expand_objects(objects, "a"))[..] else {
        panic!("one leaf")
    };
    assert!(
        leaf.ends_with("= ! is a cycle: a > b > c > d > e > f > a"),
        "{leaf}"
    );
}

#[test]
fn every_fault_is_found_and_the_others_are_followed() {
    let objects: &[(&str, &[&str])] = &[("top", &["none", "a", "+x", "gone"]), ("a", &["top", "+a"])];
    insta::assert_snapshot!(outline(&expand_objects(objects, "top")).join("\n"));
}

#[test]
fn what_waits_heals_by_itself_and_what_is_wrong_does_not() {
    let path: WorkspacePath = "x".parse().unwrap();
    let reason = String::new();
    let kind = ManifestError::Kind {
        file: "x/manifest.yaml".parse().unwrap(),
        kind: "skill".to_owned(),
    };
    for (error, name, waits) in [
        (
            RefError::Missing {
                path: path.clone(),
                has_root: true,
                near: None,
            },
            "RefNotFound",
            true,
        ),
        (
            RefError::Waiting {
                path: path.clone(),
                reason: reason.clone(),
            },
            "RefNotReady",
            true,
        ),
        (RefError::Unreadable { path, reason }, "RefUnreadable", false),
        (kind.into(), "KindError", false),
        (ManifestError::Invalid(vec![]).into(), "ManifestInvalid", false),
        (RefError::Cycle(vec![]), "RefCycle", false),
        (RefError::TooDeep(vec![]), "RefTooDeep", false),
        (RefError::TooMany, "TooManySources", false),
    ] {
        assert_eq!((error.as_str(), error.is_waiting()), (name, waits));
    }
}

/// One step: the first reference of `top` leads to this.
fn expand_one(top: &Manifest, found: Lookup) -> Expanded {
    let mut catalog = Catalog::new();
    catalog.insert(key("top", "./x"), found);
    match expand(top, "top", &catalog) {
        Expansion::Complete(expanded) => *expanded,
        Expansion::Wanted(wanted) => panic!("{wanted:?}"),
    }
}

#[test]
fn each_way_to_find_nothing_has_its_own_message() {
    let top = object(&json!([{ "ref": "./x" }]));
    let root = crate::fixtures::tree(&[("x/manifest.yaml", "kind: skill"), ("y/CODE.md", "- a")]);
    let wrong = |at: &str| Lookup::Wrong(crate::read_manifest(&root, &at.parse().unwrap()).unwrap_err());
    let missing = |has_root, near: Option<&str>| Lookup::Missing {
        has_root,
        near: near.map(str::to_owned),
    };
    let found = [
        missing(true, None),
        missing(false, Some("./xy")),
        Lookup::Waiting("the root of `top` is being read".to_owned()),
        Lookup::Unreadable("the volume is in use on another node".to_owned()),
        wrong("./x"),
        wrong("./y"),
        Lookup::Object {
            name: "x".to_owned(),
            manifest: Arc::new(Manifest::from_blocks(&Blocks::default(), None)),
        },
        Lookup::Object {
            name: "x".to_owned(),
            manifest: Arc::new(object(&json!(vec![json!({ "local": "a" }); 65]))),
        },
    ];
    let shown: Vec<_> = found
        .into_iter()
        .map(|found| outline(&expand_one(&top, found)).join("\n"))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_wrong_entry_is_a_leaf_with_its_faults() {
    let expanded = expand_one(
        &object(&json!([{ "ref": "./x" }, { "inline": { "path": "/abs" } }])),
        Lookup::Object {
            name: "x".to_owned(),
            manifest: Arc::new(object(
                &json!([{ "github": { "repo": "o/r", "ref": "-b" } }, { "inline": { "path": "a", "content": "" } }]),
            )),
        },
    );
    insta::assert_debug_snapshot!(expanded.leaves);
}

#[test]
fn an_object_is_a_context_of_its_own_and_a_file_is_not() {
    let root = crate::fixtures::tree(&[
        (
            "shared/x/manifest.yaml",
            "kind: tool\nname: x\ncode: {sources: [{ref: ./lean}, {local: b}]}",
        ),
        (
            "lean/CODE.md",
            "schema: code/v2\nsource: [{local: ./a}, {ref: ./other}]",
        ),
    ]);
    let in_root = |at: &str| {
        Lookup::InRoot(Arc::new(
            crate::read_manifest(&root, &at.parse().unwrap())
                .unwrap()
                .unwrap(),
        ))
    };
    let mut catalog = Catalog::new();
    catalog.insert(key("top", "./shared/x"), in_root("./shared/x"));
    catalog.insert(key("top", "./lean"), in_root("./lean"));
    catalog.insert(
        key("top", "./other"),
        Lookup::Object {
            name: "other".to_owned(),
            manifest: Arc::new(object(&json!([{ "local": "c" }, { "ref": "./lean" }]))),
        },
    );
    let top = object(&json!([{ "ref": "./shared/x" }]));
    assert_eq!(
        expand(&top, "top", &catalog),
        Expansion::Wanted(BTreeSet::from([key("other", "./lean")]))
    );
    catalog.insert(
        key("other", "./lean"),
        Lookup::Missing {
            has_root: true,
            near: None,
        },
    );
    let Expansion::Complete(expanded) = expand(&top, "top", &catalog) else {
        panic!("complete")
    };
    let leaves: Vec<_> = expanded
        .leaves
        .iter()
        .map(|leaf| {
            let (context, base, warnings) = (&leaf.context, &leaf.base, &leaf.warnings);
            format!(
                "{} | {} | {context} | {base} | {warnings:?}",
                leaf.path, leaf.place
            )
        })
        .collect();
    insta::assert_snapshot!(leaves.join("\n"));
    let used = [
        key("top", "./shared/x"),
        key("top", "./lean"),
        key("top", "./other"),
        key("other", "./lean"),
    ];
    assert_eq!(expanded.used, BTreeSet::from(used));
}

#[test]
fn files_that_refer_to_each_other_are_a_cycle_of_folders() {
    let root = crate::fixtures::tree(&[
        ("x/manifest.yaml", "kind: code-workspace\ncode: ./shared/y"),
        (
            "shared/y/CODE.md",
            "schema: code/v2\nsource: {ref: ./x/manifest.yaml}",
        ),
    ]);
    let mut catalog = Catalog::new();
    for at in ["./x", "./shared/y", "./x/manifest.yaml"] {
        let manifest = crate::read_manifest(&root, &at.parse().unwrap())
            .unwrap()
            .unwrap();
        catalog.insert(key("top", at), Lookup::InRoot(Arc::new(manifest)));
    }
    let Expansion::Complete(expanded) = expand(&object(&json!([{ "ref": "./x" }])), "top", &catalog) else {
        panic!("complete")
    };
    assert_eq!(
        outline(&expanded),
        ["code.sources[0] > x > code > y > source = ! is a cycle: ./x > ./shared/y > ./x"]
    );
}

#[test]
fn references_that_multiply_are_refused_at_once() {
    let to = |name: &'static str| vec![name; 64];
    let names = ["a", "b", "c", "d", "e", "f"];
    let ways: Vec<_> = names.iter().skip(1).chain(&["+x"]).map(|name| to(name)).collect();
    let objects: Vec<_> = names.into_iter().zip(ways.iter().map(Vec::as_slice)).collect();
    let expanded = expand_objects(&objects, "a");
    assert_eq!(
        outline(&expanded),
        ["code = ! expands to more than 1024 sources, which is the most that one bundle may be made of"]
    );
}

#[test]
fn the_limit_counts_references_and_sources() {
    // 15 x (1 + 64) + 49 = 1,024
    let sources: Vec<String> = (0..64).map(|index| format!("+{index}")).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let leaves = |own: usize, more: &[&'static str]| {
        let refs = std::iter::repeat_n("b", 15).chain(more.iter().copied());
        let top: Vec<&str> = refs.chain(sources.iter().copied().take(own)).collect();
        expand_objects(&[("a", &top), ("b", &sources), ("c", &["+x"])], "a")
            .leaves
            .len()
    };
    assert_eq!(leaves(49, &[]), 15 * 64 + 49);
    assert_eq!(leaves(48, &["c"]), 1);
}

#[test]
fn short_names_match_the_object_of_that_name() {
    for (path, expected) in [
        ("./x", &["./x"][..]),
        ("./shared/x", &["./shared/x"]),
        ("./.code-workspaces/x", &["./.code-workspaces/x", "./x"]),
        (".code/x/", &["./.code/x", "./x"]),
        ("code-workspaces/x", &["./code-workspaces/x", "./x"]),
        (".code/x/y", &["./.code/x/y"]),
        (".code", &["./.code"]),
        ("./", &["./"]),
    ] {
        let keys: Vec<_> = workspace_keys(&path.parse().unwrap())
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(keys, expected, "{path}");
    }
}
