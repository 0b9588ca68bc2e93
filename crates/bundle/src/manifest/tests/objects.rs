//! Manifests from the blocks of objects.

use std::borrow::Borrow as _;

use serde_json::json;

use super::*;

/// The blocks of an object in JSON.
fn from_blocks(blocks: &Value, root: Option<&Entries>) -> Manifest {
    Manifest::from_blocks(&blocks_of(blocks), root)
}

fn blocks_of(blocks: &Value) -> Blocks<'_> {
    Blocks {
        code: blocks.get("code"),
        run: blocks.get("run"),
        runner: blocks.get("runner"),
        runtime: blocks.get("runtime"),
        sandbox: blocks.get("sandbox"),
        secrets: blocks.get("secrets"),
        network: blocks.get("network"),
    }
}

fn block_faults(blocks: &Value, root: Option<&Entries>) -> Vec<String> {
    let manifest = from_blocks(blocks, root);
    let runner = manifest.runner.err().into_iter().flatten();
    runner
        .chain(manifest.errors)
        .map(|error| error.to_string())
        .collect()
}

#[test]
fn an_object_and_a_file_make_the_same_blocks() {
    let blocks = json!({
        "code": { "sources": [{ "local": "a.py" }] },
        "run": "a.py",
        "runner": { "engine": "sandbox", "needs": { "pip": ["x==1"] } },
        "secrets": { "KEY": { "vault": "a-key" } },
        "network": { "egress": ["x.y"] },
    });
    let object = from_blocks(&blocks, None);
    let mut text: serde_json::Map<_, _> = blocks.as_object().unwrap().clone();
    text.insert("kind".to_owned(), json!("code-workspace"));
    let file = read(&[("x/manifest.yaml", &json!(text).to_string())]);
    let expected = Manifest {
        file: Some(path("x/manifest.yaml")),
        ..object
    };
    assert_eq!(file, expected);
}

#[test]
fn files_that_an_object_names_are_read_from_its_root() {
    let blocks = json!({
        "code": "./x",
        "runner": { "file": "./runners/RUNNER.md" },
        "sandbox": { "ref": "./SANDBOX.yaml" },
        "secrets": { "file": "secrets.yaml" },
    });
    let files: Vec<_> = block_files(&blocks_of(&blocks))
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(files, ["./runners/RUNNER.md", "./SANDBOX.yaml", "./secrets.yaml"]);
    let root = tree(&[
        ("runners/RUNNER.md", "---\nlimits: {memory_mb: 99}\n---\n"),
        (
            "SANDBOX.yaml",
            "schema: sandbox/v1\nid: '@a/b'\nversion: 1.0.0\nprovider: kubernetes\nconfig: {}\nread_only: true\n",
        ),
        ("secrets.yaml", "KEY: {vault: a-key}\n"),
    ]);
    let manifest = from_blocks(&blocks, Some(root.borrow()));
    assert_eq!(manifest.errors, []);
    assert_eq!(manifest.runner.unwrap().limits.memory_mb, Some(99));
    assert!(manifest.sandbox.unwrap().read_only);
    assert!(manifest.secrets.bindings.contains_key("KEY"));
    assert_eq!(
        block_files(&blocks_of(
            &json!({ "runner": {}, "secrets": { "file": { "vault": "a-key" } } })
        )),
        []
    );
}

#[test]
fn a_template_is_named_without_a_root() {
    let manifest = from_blocks(
        &json!({ "code": "./x", "runner": { "ref": "python-3.12" } }),
        None,
    );
    let runner = manifest.runner.unwrap();
    assert_eq!(
        (runner.engine, runner.image.as_deref()),
        (Some(Engine::Sandbox), Some("python-3.12"))
    );
}

#[test]
fn every_form_that_cannot_be_resolved_says_what_to_write() {
    let root = tree(&[
        ("RUNNER.md", "---\nengine: x\nref: y\nlimits: []\n---\n"),
        ("list.yaml", "[a]"),
        ("bad.yaml", "{"),
        ("SANDBOX.md", "---\nprovider: local\nconfig: {}\n---\n"),
        ("SECRETS.md", "---\nsecrets: {KEY: {}}\n---\n"),
        ("shared/RUNNER.md", "---\n---\n"),
    ]);
    let code = |mut blocks: Value| {
        blocks["code"] = json!("./x");
        blocks
    };
    let blocks = [
        json!({ "runner": { "file": "./RUNNER.md" } }),
        json!({ "runner": { "file": "./list.yaml" } }),
        json!({ "runner": { "file": "./bad.yaml" } }),
        json!({ "runner": { "ref": "./RUNER.md" } }),
        json!({ "runner": { "file": "./" } }),
        json!({ "runner": { "ref": "@agentik/runners/python-3.12" } }),
        json!({ "runner": { "file": "../RUNNER.md" } }),
        json!({ "runner": { "file": "./RUNNER.md", "engine": "sandbox" } }),
        json!({ "sandbox": { "file": "./SANDBOX.md" } }),
        json!({ "sandbox": { "ref": "./none.yaml" } }),
        json!({ "sandbox": { "ref": "@agentik/python-mcp" } }),
        json!({ "secrets": { "ref": "./SECRETS.md" } }),
        json!({ "secrets": { "ref": "./none.md" } }),
        json!({ "secrets": { "ref": "@acme/secrets" } }),
        json!({ "secrets": { "ref": "../SECRETS.md" } }),
        json!({ "secrets": { "ref": "team" } }),
        json!({ "secrets": { "ref": "./SECRETS.md", "KEY": { "vault": "a-key" } } }),
        json!({ "secrets": { "inline": { "KEY": {} } } }),
        json!({ "secrets": { "inline": { "vault": "A" } } }),
    ]
    .map(code);
    insta::assert_snapshot!(report(&blocks, |blocks| block_faults(
        blocks,
        Some(root.borrow())
    )));
}

#[test]
fn a_file_without_a_root_asks_for_one() {
    let blocks = json!({
        "code": "./x",
        "runner": { "ref": "./RUNNER.md" },
        "sandbox": { "file": "./SANDBOX.md" },
        "secrets": { "ref": "./SECRETS.md" },
    });
    insta::assert_snapshot!(block_faults(&blocks, None).join("\n"));
}

#[test]
fn the_legacy_block_fills_what_todays_blocks_leave_open() {
    let manifest = from_blocks(
        &json!({
            "code": "./x",
            "runner": { "limits": { "memory_mb": 512 } },
            "runtime": {
                "mode": "sandbox", "env": ["A_KEY", "B_KEY"], "memory_mb_max": 64, "timeout_ms": 1_000,
                "network": { "egress": ["x.y", "a.b"] }, "fs": { "read": ["r"], "write": ["w"] },
            },
            "secrets": { "A_KEY": { "value": "1" } },
            "network": { "egress": ["a.b"] },
        }),
        None,
    );
    let runner = manifest.runner.unwrap();
    assert_eq!(
        (runner.engine, runner.limits.memory_mb, runner.limits.timeout_ms),
        (Some(Engine::Subprocess), Some(512), Some(1_000))
    );
    assert_eq!(
        manifest.secrets.bindings,
        [
            ("A_KEY".to_owned(), SecretSource::Value("1".to_owned())),
            ("B_KEY".to_owned(), SecretSource::Vault("b-key".to_owned())),
        ]
        .into()
    );
    assert_eq!(manifest.network.egress, ["a.b", "x.y"]);
    assert_eq!(
        manifest.legacy_files,
        (vec!["r".to_owned()], vec!["w".to_owned()])
    );
    assert_eq!(manifest.warnings.len(), 3);
}

#[test]
fn a_bad_block_does_not_hide_the_others() {
    let manifest = from_blocks(
        &json!({ "code": [], "run": 3, "runner": [], "secrets": [], "network": { "egress": ["x.y"] }, "sandbox": 1, "runtime": 2 }),
        None,
    );
    assert!(manifest.code.is_err() && manifest.runner.is_err() && manifest.run.unwrap().is_err());
    let fields: Vec<_> = manifest.errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["sandbox", "secrets", "runtime"]);
    assert_eq!(manifest.network.egress, ["x.y"]);
}
