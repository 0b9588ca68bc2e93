use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::{fixtures::report, secrets::SecretSource};

fn errors(block: &Value) -> Vec<String> {
    define_sandbox(block)
        .unwrap_err()
        .iter()
        .map(FieldError::to_string)
        .collect()
}

/// A block with the required fields and these.
fn block(more: Value) -> Value {
    let mut block = json!({ "provider": "kubernetes", "config": {} });
    if let (Value::Object(block), Value::Object(more)) = (&mut block, more) {
        block.extend(more);
    }
    block
}

fn read(more: Value) -> Sandbox {
    match define_sandbox(&block(more)).unwrap() {
        SandboxDefinition::Block(sandbox) => *sandbox,
        SandboxDefinition::File(path) => panic!("{path}"),
    }
}

#[test]
fn every_field_is_mapped_onto_the_other_blocks() {
    let sandbox = read(json!({
        "limits": { "timeout_ms": 30_000, "memory_mb": 1_024, "cpu_ms": 20_000 },
        "env": {
            "auth": { "ref": "./SECRETS.md", "state": { "env": ["OPENAI_API_KEY"] } },
            "passthrough": ["NODE_ENV"],
        },
        "network": { "egress": ["API.openai.com", "*.anthropic.com"] },
        "mounts": [
            { "source": "workspace", "at": "/data/" },
            { "source": "workspace", "at": "/vendor/libs", "mode": "read-only" },
        ],
        "lifecycle": { "pause_after_idle": "idle-600", "destroy_on": "workspace-close" },
        "read_only": true,
        "metadata": { "x": 1 },
    }));
    let mount = |at: &str, read_only| Mount {
        at: at.parse().unwrap(),
        read_only,
    };
    let expected = Sandbox {
        limits: Limits {
            memory_mb: Some(1_024),
            timeout_ms: Some(30_000),
            cpu_ms: Some(20_000),
            ..Limits::default()
        },
        egress: vec!["api.openai.com".to_owned(), "*.anthropic.com".to_owned()],
        secrets: Secrets {
            bindings: BTreeMap::from([(
                "OPENAI_API_KEY".to_owned(),
                SecretSource::Vault("openai-api-key".to_owned()),
            )]),
        },
        passthrough: vec!["NODE_ENV".to_owned()],
        mounts: vec![mount("data", false), mount("vendor/libs", true)],
        idle_timeout_ms: Some(600_000),
        read_only: true,
        warnings: vec![],
    };
    assert_eq!(sandbox, expected);
}

#[test]
fn without_a_network_nothing_can_be_reached() {
    assert_eq!(read(json!({})).egress, [""; 0]);
    assert_eq!(read(json!({ "network": {} })).egress, [""; 0]);
}

#[test]
fn both_spellings_of_the_lifecycle_are_read() {
    let idle = |lifecycle| read(json!({ "lifecycle": lifecycle })).idle_timeout_ms;
    assert_eq!(idle(json!({ "pause_after_idle": "idle-600" })), Some(600_000));
    assert_eq!(idle(json!({ "pause_after_idle_ms": 300_000 })), Some(300_000));
    assert_eq!(
        idle(json!({ "pause_after_idle": "idle-600", "pause_after_idle_ms": 1_000 })),
        Some(1_000)
    );
    assert_eq!(idle(json!({ "destroy_on_workspace_close": true })), None);
}

#[test]
fn what_a_cluster_cannot_do_is_a_warning() {
    let sandbox = read(json!({
        "lifecycle": { "pause_after_idle": "full-moon", "destroy_on": "session-end", "destroy_on_workspace_close": false },
        "identity": { "ref": "bot://agentik" },
        "policy": { "ref": "@acme/policy" },
    }));
    insta::assert_snapshot!(sandbox.warnings.join("\n"));
}

#[test]
fn a_block_may_stand_below_inline_or_in_a_file() {
    let direct = block(json!({ "read_only": true }));
    assert_eq!(
        define_sandbox(&json!({ "inline": direct })),
        define_sandbox(&direct)
    );
    let file = SandboxDefinition::File("sandbox/main.SANDBOX.md".parse().unwrap());
    for form in [
        json!({ "file": "./sandbox/main.SANDBOX.md" }),
        json!({ "ref": "./sandbox/main.SANDBOX.md" }),
    ] {
        assert_eq!(define_sandbox(&form), Ok(file.clone()));
    }
}

#[test]
fn every_other_provider_is_refused_by_name() {
    for provider in [
        "local",
        "mastra-e2b",
        "mastra-modal",
        "node-permission",
        "Kubernetes",
        "",
    ] {
        let block = json!({ "provider": provider, "config": { "template": "x", "api_key": "hunter2" } });
        let [error] = &errors(&block)[..] else {
            panic!("one error for {provider}")
        };
        assert!(error.starts_with("sandbox.provider: "), "{error}");
        assert!(
            error.contains("`kubernetes`") && error.contains(provider),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn every_fault_is_named_with_its_field() {
    insta::assert_snapshot!(report(
        &[
            json!(null),
            json!("kubernetes"),
            json!({}),
            json!({ "provider": "kubernetes" }),
            json!({ "provider": "kubernetes", "config": { "api_key": "hunter2" } }),
            json!({ "provider": "kubernetes", "config": null }),
            block(json!({ "readOnly": true, "image": "x", "timeout_ms": 1 })),
            block(json!({ "read_only": "yes" })),
            block(json!({ "limits": { "timeout_ms": 0, "vcpus": 2, "memory": 1 } })),
            block(json!({ "env": { "OPENAI_API_KEY": "hunter2" } })),
            block(
                json!({ "env": { "vars": {}, "auth": { "env": [], "ref": 3 }, "passthrough": ["A=b", "PATH"] } })
            ),
            block(json!({ "env": { "auth": { "state": { "env": ["_", 3] } } } })),
            block(json!({ "network": { "egress": ["https://x.y"], "ingress": [] } })),
            block(json!({ "mounts": {} })),
            block(json!({ "mounts": [
                { "source": { "ref": "@agentik/python-libs" }, "at": "/vendor" },
                { "source": { "file": "./STORAGE.md" }, "at": "/a" },
                { "source": { "inline": { "provider": "cloud-bucket", "config": { "key": "hunter2" } } }, "at": "/b" },
                { "source": "home", "at": "/c", "mode": "rw" },
            ] })),
            block(json!({ "mounts": [
                { "source": "workspace" },
                { "at": "relative", "source": "workspace" },
                { "source": "workspace", "at": "/" },
                { "source": "workspace", "at": "/a/../etc" },
                { "source": "workspace", "at": "/x" },
                { "source": "workspace", "at": "/x/" },
                { "source": 3, "at": "/y" },
            ] })),
            block(
                json!({ "lifecycle": { "pause_after_idle": 600, "pause_after_idle_ms": "1", "destroy_on_workspace_close": 1 } })
            ),
            json!({ "ref": "@acme-corp/shared-modal-policy" }),
            json!({ "ref": "../shared/team.SANDBOX.md" }),
            json!({ "ref": "team" }),
            json!({ "file": "@acme-corp/x" }),
            json!({ "inline": {}, "provider": "kubernetes" }),
            json!({ "inline": { "ref": "x" } }),
        ],
        errors
    ));
}
