//! The documentation names tests, files, reasons and manifests; all of them have to exist.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is test code, also what is not marked as a test"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use codeworkspace_api::{CodeRun, CodeWorkspace, RunnerTemplate, SecretInventory};
use codeworkspace_bundle::{define_code, define_network, define_run, define_runner};
use serde_json::{Value, json};

/// Pages that readers find from the README.
const PAGES: [&str; 4] = ["README.md", "CHANGELOG.md", "docs", "docs/adr"];

fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = checkout().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every page, by its path from the checkout.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for place in PAGES {
        if checkout().join(place).is_file() {
            pages.push(PathBuf::from(place));
            continue;
        }
        let entries = std::fs::read_dir(checkout().join(place)).unwrap();
        let names = entries.map(|entry| Path::new(place).join(entry.unwrap().file_name()));
        pages.extend(names.filter(|name| name.extension().is_some_and(|extension| extension == "md")));
    }
    pages
}

/// `[text](target)` of a page, outside of its code blocks.
fn links(page: &str) -> Vec<(String, String)> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in page.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("](") {
            let text = before.rsplit_once('[').map_or("", |(_, text)| text);
            let Some((target, behind)) = after.split_once(')') else {
                break;
            };
            found.push((text.trim_matches('`').to_owned(), target.to_owned()));
            rest = behind;
        }
    }
    found
}

/// Whether a file of Rust has a test of this name.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let declared = |line: &str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")
            .is_some_and(|rest| rest.starts_with(&format!("{name}(")))
    };
    lines.iter().enumerate().any(|(number, line)| {
        let above = lines[..number].iter().rev();
        let mut attributes = above.take_while(|line| !line.is_empty() && !line.starts_with('}'));
        declared(line)
            && attributes.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

/// The yaml blocks of a page.
fn manifests(page: &str) -> Vec<String> {
    let blocks = page.split("```yaml\n").skip(1);
    blocks
        .map(|block| block.split("\n```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_link_leads_to_a_file() {
    let mut broken = Vec::new();
    for page in pages() {
        for (_, target) in links(&read(&page)) {
            let target = target.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = checkout().join(&page).parent().unwrap().join(target);
            if !path.exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn every_test_that_is_named_exists() {
    for (name, least) in [("docs/aip-26-conformance.md", 100), ("docs/known-faults.md", 40)] {
        let page = read(name);
        let is_test = |(text, target): &(String, String)| {
            let is_rust = Path::new(target)
                .extension()
                .is_some_and(|extension| extension == "rs");
            is_rust && text.contains('_') && !text.contains('/')
        };
        let named: Vec<_> = links(&page).into_iter().filter(is_test).collect();
        let missing: Vec<_> = named
            .iter()
            .filter(|(test, target)| !has_test(&read(Path::new("docs").join(target)), test))
            .map(|(test, target)| format!("{test} in {target}"))
            .collect();
        assert_eq!(missing, [""; 0], "{name}");
        // A page whose links are written otherwise would pass without a look.
        assert!(named.len() >= least, "{name} names {} tests", named.len());
    }
}

#[test]
fn every_reason_that_status_can_show_is_explained() {
    let page = read("docs/workspaces.md");
    let mut reasons: BTreeSet<String> = read("crates/api/src/reason.rs")
        .lines()
        .filter_map(|line| Some(line.strip_prefix("pub const ")?.split('"').nth(1)?.to_owned()))
        .collect();
    for file in ["crates/source/src/error.rs", "crates/bundle/src/select/error.rs"] {
        let source = read(file);
        let arms = source
            .lines()
            .filter_map(|line| line.split_once("=> \"")?.1.split('"').next());
        let words = arms.filter(|word| !word.contains(' ') && word.starts_with(char::is_uppercase));
        reasons.extend(words.map(str::to_owned));
    }
    assert!(reasons.len() > 60, "{reasons:?}");
    let silent: Vec<_> = reasons
        .iter()
        .filter(|reason| !page.contains(&format!("`{reason}`")))
        .collect();
    assert_eq!(silent, [""; 0], "docs/workspaces.md does not say what these mean");
}

#[test]
fn every_manifest_of_the_guide_is_understood() {
    let manifests = manifests(&read("docs/workspaces.md"));
    assert!(manifests.len() >= 10, "{}", manifests.len());
    for text in manifests {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for document in documents {
            match document["kind"].as_str() {
                Some("CodeWorkspace") => understand(&document["spec"], &text),
                Some("CodeRun") => drop(serde_json::from_value::<CodeRun>(document).unwrap()),
                Some("RunnerTemplate") => drop(serde_json::from_value::<RunnerTemplate>(document).unwrap()),
                Some("SecretInventory") => {
                    let inventory: SecretInventory = serde_json::from_value(document).unwrap();
                    assert!(inventory.spec.unknown.is_empty(), "{text}");
                }
                Some("Secret" | "ConfigMap" | "Namespace") => {}
                Some(kind) => panic!("a manifest of kind {kind}: {text}"),
                // A part of `spec`.
                None => understand(&document, &text),
            }
        }
    }
}

/// Reads a `spec`, or a part of one, as the operator does.
fn understand(spec: &Value, text: &str) {
    let mut spec = spec.clone();
    let object = spec.as_object_mut().unwrap();
    object
        .entry("code")
        .or_insert(json!({"sources": [{"inline": {"path": "a", "content": ""}}]}));
    let object = json!({"apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeWorkspace", "metadata": {"name": "a"}, "spec": spec});
    let spec = serde_json::from_value::<CodeWorkspace>(object).unwrap().spec;
    assert!(spec.unknown.is_empty(), "{text}: {:?}", spec.unknown);
    let root = spec
        .root
        .as_ref()
        .map(codeworkspace_api::Root::unknown_keys)
        .unwrap_or_default();
    assert_eq!(root, [""; 0], "{text}");
    for source in define_code(&spec.code).unwrap().sources {
        source.source.unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
    }
    if let Some(run) = &spec.run {
        define_run(run).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
    }
    if let Some(runner) = &spec.runner {
        define_runner(runner).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
    }
    if let Some(network) = &spec.network {
        define_network(network).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
    }
}
