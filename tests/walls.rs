//! The walls between crates: what a crate must never depend on, not even through others. They keep the pure middle pure and the
//! in-pod runner small, and a manifest that breaks one fails here instead of in a review.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::collections::BTreeSet;
use std::process::Command;

/// Everything that a package needs to run, directly or not. Asked for each package by itself: the graph of the whole workspace
/// would show what other members switch on in a shared dependency.
fn reachable(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package",
            package,
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .args(["--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8(output.stdout).unwrap();
    let names: BTreeSet<_> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect();
    assert!(
        names.contains(package),
        "{package} is not in its own tree:\n{tree}"
    );
    names
}

#[test]
fn no_crate_reaches_over_its_wall() {
    let walls: [(&str, &[&str]); 6] = [
        (
            "codeworkspace-agentcore",
            &[
                "kube",
                "kube-core",
                "k8s-openapi",
                "tokio",
                "reqwest",
                "hyper",
                "axum",
                "rustix",
            ],
        ),
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
            // It serves sessions over TLS, but calls nothing by a client for everything, and links no library of C but the one for TLS.
            &[
                "kube",
                "kube-core",
                "k8s-openapi",
                "reqwest",
                "h2",
                "ring",
                "zmq-sys",
                "openssl-sys",
            ],
        ),
    ];
    for (package, forbidden) in walls {
        let reachable = reachable(package);
        let over: Vec<_> = forbidden
            .iter()
            .filter(|name| reachable.contains(**name))
            .collect();
        assert!(over.is_empty(), "{package} depends on {over:?}");
    }
}

#[test]
fn nothing_that_ships_depends_on_development_tools() {
    for package in ["codeworkspace-operator", "codeworkspace-runner"] {
        let reachable = reachable(package);
        for tool in ["xtask", "github-server"] {
            assert!(!reachable.contains(tool), "{package} depends on {tool}");
        }
    }
}
