use serde_json::json;

use super::*;
use crate::{fixtures::report, secrets::SecretSource};

#[test]
fn every_field_is_converted_to_the_block_that_has_replaced_it() {
    let runtime = define_runtime(&json!({
        "mode": "sandbox",
        "env": ["STRIPE_API_KEY"],
        "fs": { "read": ["data/*.csv"], "write": ["out/"] },
        "network": { "egress": ["api.stripe.com"] },
        "cpu_ms_max": 30_000,
        "memory_mb_max": 512,
        "timeout_ms": 60_000,
    }))
    .unwrap();
    let limits = Limits {
        memory_mb: Some(512),
        timeout_ms: Some(60_000),
        cpu_ms: Some(30_000),
        ..Limits::default()
    };
    let secret = SecretSource::Vault("stripe-api-key".to_owned());
    let expected = Runtime {
        runner: RunnerBlock {
            field: "runtime".into(),
            engine: Some(Engine::Subprocess),
            limits,
            ..RunnerBlock::default()
        },
        secrets: Secrets {
            bindings: [("STRIPE_API_KEY".to_owned(), secret)].into(),
        },
        network: Network {
            egress: vec!["api.stripe.com".to_owned()],
        },
        reads: vec!["data/*.csv".to_owned()],
        writes: vec!["out/".to_owned()],
        warnings: vec![
            "runtime is the form of an old draft: write `runner`, `secrets` and `network` instead".to_owned(),
            "runtime.fs.read gives no keys for its files: list them in `inputsFiles`, one by one".to_owned(),
            "runtime.fs.write gives no keys for its files: list them in `outputsFiles`, one by one"
                .to_owned(),
        ],
    };
    assert_eq!(runtime, expected);
}

#[test]
fn the_old_sandbox_was_a_process_of_the_host() {
    let engine = |mode: &str| define_runtime(&json!({ "mode": mode })).map(|runtime| runtime.runner.engine);
    assert_eq!(engine("sandbox"), Ok(Some(Engine::Subprocess)));
    assert_eq!(engine("subprocess"), Ok(Some(Engine::Subprocess)));
    assert_eq!(engine("in-process"), Ok(Some(Engine::InProcess)));
}

#[test]
fn limits_are_read_in_both_spellings() {
    let limits = |block: &Value| define_runtime(block).unwrap().runner.limits;
    let expected = Limits {
        memory_mb: Some(256),
        timeout_ms: Some(1_000),
        cpu_ms: Some(500),
        ..Limits::default()
    };
    assert_eq!(
        limits(&json!({ "resources": { "memoryMb": 256, "timeoutMs": 1_000, "cpuMs": 500 } })),
        expected
    );
    assert_eq!(
        limits(
            &json!({ "memory_mb_max": 256, "timeout_ms": 9_000, "cpu_ms_max": 500, "resources": { "timeoutMs": 1_000 } })
        ),
        expected
    );
}

#[test]
fn every_fault_is_named_with_its_field() {
    insta::assert_snapshot!(report(
        &[
            json!("sandbox"),
            json!({ "mode": "docker" }),
            json!({ "engine": "sandbox", "needs": {}, "limits": {} }),
            json!({ "env": { "A": "b" } }),
            json!({ "env": ["1A", "PATH", "AB"] }),
            json!({ "fs": { "read": "x", "exec": [] } }),
            json!({ "network": ["x.y"] }),
            json!({ "network": { "egress": ["http://x.y"] } }),
            json!({ "cpu_ms_max": 0, "memory_mb_max": "1Gi", "timeout_ms": -1, "resources": { "memoryMb": 0.5, "cpu": 1 } }),
        ],
        |block| define_runtime(block)
            .unwrap_err()
            .iter()
            .map(FieldError::to_string)
            .collect()
    ));
}
