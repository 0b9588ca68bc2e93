use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::manifest::Blocks;

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
