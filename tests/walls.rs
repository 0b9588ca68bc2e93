//! The walls between crates: what a crate must never depend on, not even through others. They keep the pure middle pure and the
//! in-pod runner small, and a manifest that breaks one fails here instead of in a review.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// The normal dependencies of every package, by name.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--offline",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: BTreeMap<&str, &str> = list(&metadata["packages"])
        .map(|package| (package["id"].as_str().unwrap(), package["name"].as_str().unwrap()))
        .collect();
    list(&metadata["resolve"]["nodes"])
        .map(|node| {
            let normal = list(&node["deps"])
                .filter(|dependency| list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null()))
                .map(|dependency| names[dependency["pkg"].as_str().unwrap()].to_owned());
            (names[node["id"].as_str().unwrap()].to_owned(), normal.collect())
        })
        .collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

/// Everything that a package needs, directly or not.
fn reachable(package: &str, dependencies: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![package.to_owned()];
    while let Some(next) = open.pop() {
        for dependency in &dependencies[&next] {
            if found.insert(dependency.clone()) {
                open.push(dependency.clone());
            }
        }
    }
    found
}

#[test]
fn no_crate_reaches_over_its_wall() {
    let dependencies = dependencies();
    let walls: [(&str, &[&str]); 5] = [
        (
            "codeworkspace-api",
            &["kube-client", "kube-runtime", "tokio", "reqwest", "hyper"],
        ),
        (
            "codeworkspace-bundle",
            &[
                "kube",
                "kube-core",
                "k8s-openapi",
                "tokio",
                "reqwest",
                "hyper",
                "rustix",
            ],
        ),
        (
            "codeworkspace-protocol",
            &[
                "kube",
                "kube-core",
                "k8s-openapi",
                "tokio",
                "reqwest",
                "hyper",
                "rustix",
            ],
        ),
        ("codeworkspace-source", &["kube", "kube-core", "k8s-openapi"]),
        (
            "codeworkspace-runner",
            &["kube", "kube-core", "k8s-openapi", "reqwest", "hyper", "rustls"],
        ),
    ];
    for (package, forbidden) in walls {
        let reachable = reachable(package, &dependencies);
        let over: Vec<_> = forbidden
            .iter()
            .filter(|name| reachable.contains(**name))
            .collect();
        assert!(over.is_empty(), "{package} depends on {over:?}");
    }
}

#[test]
fn nothing_that_ships_depends_on_development_tools() {
    let dependencies = dependencies();
    for package in ["codeworkspace-operator", "codeworkspace-runner"] {
        let reachable = reachable(package, &dependencies);
        for tool in ["xtask", "github-server"] {
            assert!(!reachable.contains(tool), "{package} depends on {tool}");
        }
    }
}
