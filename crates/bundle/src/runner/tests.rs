use serde_json::json;

use super::*;
use crate::fixtures::report;

fn resolve(block: &Value, run_language: Language) -> Result<RunnerHandle, Vec<String>> {
    let show = |errors: Vec<FieldError>| errors.iter().map(FieldError::to_string).collect::<Vec<_>>();
    define_runner(block)
        .and_then(|runner| runner.resolve(run_language))
        .map_err(show)
}

fn default_handle(language: Language) -> RunnerHandle {
    RunnerHandle {
        engine: Engine::Subprocess,
        image: None,
        needs: ResolvedNeeds {
            language,
            native: vec![],
            npm: vec![],
            pip: vec![],
        },
        limits: ResolvedLimits {
            memory_mb: 256,
            timeout_ms: 600_000,
            cpu_ms: None,
            milli_vcpus: None,
            ephemeral_storage_mb: None,
        },
        downgraded: false,
    }
}

#[test]
fn a_missing_or_empty_block_is_a_subprocess_with_the_default_limits() {
    for language in [Language::Node, Language::Python, Language::Multi] {
        assert_eq!(
            RunnerDefinition::default().resolve(language),
            Ok(default_handle(language))
        );
        assert_eq!(resolve(&json!({}), language), Ok(default_handle(language)));
        assert_eq!(
            resolve(&json!({ "needs": {}, "limits": {} }), language),
            Ok(default_handle(language))
        );
    }
}

#[test]
fn every_field_of_a_block_reaches_the_handle() {
    let fields = json!({
        "engine": "sandbox",
        "image": "python-science",
        "needs": {
            "language": "python",
            "native": ["weasyprint", "libstdc++6"],
            "npm": ["stripe@^11.0.0", "@anthropic-ai/sdk@^0.72.0"],
            "pip": ["requests==2.31.0", "attrs >= 22; python_version < '3.13'"],
        },
        "limits": {
            "memory_mb": 2048, "timeout_ms": 120_000, "cpu_ms": 30_000, "vcpus": 1.5, "ephemeral_storage_mb": 500,
        },
    });
    let handle = RunnerHandle {
        engine: Engine::Sandbox,
        image: Some("python-science".to_owned()),
        needs: ResolvedNeeds {
            language: Language::Python,
            native: vec!["weasyprint".to_owned(), "libstdc++6".to_owned()],
            npm: vec![
                "stripe@^11.0.0".to_owned(),
                "@anthropic-ai/sdk@^0.72.0".to_owned(),
            ],
            pip: vec![
                "requests==2.31.0".to_owned(),
                "attrs >= 22; python_version < '3.13'".to_owned(),
            ],
        },
        limits: ResolvedLimits {
            memory_mb: 2_048,
            timeout_ms: 120_000,
            cpu_ms: Some(30_000),
            milli_vcpus: Some(1_500),
            ephemeral_storage_mb: Some(500),
        },
        downgraded: false,
    };
    assert_eq!(resolve(&fields, Language::Python), Ok(handle.clone()));
    assert_eq!(resolve(&json!({ "inline": fields }), Language::Multi), Ok(handle));
}

#[test]
fn in_process_becomes_subprocess_and_says_so() {
    let expected = RunnerHandle {
        downgraded: true,
        ..default_handle(Language::Python)
    };
    assert_eq!(
        resolve(&json!({ "engine": "in-process" }), Language::Python),
        Ok(expected)
    );
}

#[test]
fn only_a_sandbox_takes_an_image() {
    for (block, engine) in [
        (json!({ "image": "python" }), "subprocess"),
        (json!({ "engine": "subprocess", "image": "python" }), "subprocess"),
        (json!({ "engine": "in-process", "image": "python" }), "in-process"),
    ] {
        let message = format!("runner.image: is only for engine `sandbox`, but the engine is `{engine}`");
        assert_eq!(resolve(&block, Language::Multi), Err(vec![message]));
    }
    assert!(
        resolve(
            &json!({ "engine": "sandbox", "image": "python" }),
            Language::Multi
        )
        .is_ok()
    );
}

#[test]
fn the_language_comes_from_needs_or_from_run_and_must_not_differ() {
    let language =
        |needs: Value, run| resolve(&json!({ "needs": needs }), run).map(|handle| handle.needs.language);
    assert_eq!(language(json!({}), Language::Node), Ok(Language::Node));
    assert_eq!(
        language(json!({ "language": "node" }), Language::Node),
        Ok(Language::Node)
    );
    assert_eq!(
        language(json!({ "language": "python" }), Language::Multi),
        Ok(Language::Python)
    );
    assert_eq!(
        language(json!({ "language": "multi" }), Language::Node),
        Ok(Language::Multi)
    );
    assert_eq!(
        language(json!({ "language": "python" }), Language::Node),
        Err(vec![
            "runner.needs.language: is `python`, but the file in `run` is `node`".to_owned()
        ])
    );
}

#[test]
fn faults_below_inline_name_the_whole_path() {
    let block = json!({ "inline": { "image": "x", "needs": { "language": "node" } } });
    assert_eq!(
        resolve(&block, Language::Python),
        Err(vec![
            "runner.inline.image: is only for engine `sandbox`, but the engine is `subprocess`".to_owned(),
            "runner.inline.needs.language: is `node`, but the file in `run` is `python`".to_owned(),
        ])
    );
}

#[test]
fn processors_are_counted_in_thousandths() {
    for (vcpus, milli) in [
        (json!(1), 1_000),
        (json!(2.0), 2_000),
        (json!(0.1), 100),
        (json!(0.125), 125),
        (json!(1.05), 1_050),
        (json!(16), 16_000),
    ] {
        let handle = resolve(&json!({ "limits": { "vcpus": vcpus } }), Language::Multi).unwrap();
        assert_eq!(handle.limits.milli_vcpus, Some(milli), "{vcpus}");
    }
}

#[test]
fn a_ref_is_a_template_and_what_looks_like_a_file_is_one() {
    let template = define_runner(&json!({ "ref": "python-3.12" })).unwrap();
    assert_eq!(template, RunnerDefinition::Ref("python-3.12".to_owned()));
    let file = RunnerDefinition::File("RUNNER.md".parse().unwrap());
    for block in [
        json!({ "file": "./RUNNER.md" }),
        json!({ "file": "RUNNER.md" }),
        json!({ "ref": "./RUNNER.md" }),
        json!({ "ref": "RUNNER.md" }),
    ] {
        assert_eq!(define_runner(&block), Ok(file.clone()), "{block}");
    }
    let errors = file.resolve(Language::Multi).unwrap_err();
    assert_eq!(
        errors
            .iter()
            .map(|error| error.field.as_str())
            .collect::<Vec<_>>(),
        ["runner.file"]
    );
}

#[test]
fn a_template_is_a_sandbox_with_that_image() {
    assert_eq!(
        resolve(&json!({ "ref": "python-3.12" }), Language::Python),
        resolve(
            &json!({ "engine": "sandbox", "image": "python-3.12" }),
            Language::Python
        )
    );
}

#[test]
fn every_fault_is_named_with_its_field() {
    insta::assert_snapshot!(report(
        &[
            json!(null),
            json!("sandbox"),
            json!({ "engine": "sandbx" }),
            json!({ "engine": "docker" }),
            json!({ "engine": null }),
            json!({ "image": "", "engine": "sandbox" }),
            json!({ "image": "a b" }),
            json!({ "image": 3 }),
            json!({ "mode": "sandbox", "memory_mb": 1, "language": "node", "env": ["X"] }),
            json!({ "kind": "tool", "name": "x" }),
            json!({ "needs": [] }),
            json!({ "needs": { "language": "javascript" } }),
            json!({ "needs": { "language": "Node", "apt": [], "npms": [] } }),
            json!({ "needs": { "native": ["-y", "A", ""], "npm": ["--global", ""], "pip": ["-r x", "a\nb", 3] } }),
            json!({ "needs": { "native": "ffmpeg" } }),
            json!({ "limits": { "memory": 512, "timeoutMs": 1, "cpu": 1 } }),
            json!({ "limits": { "memory_mb": 0, "timeout_ms": -1, "cpu_ms": 1.5 } }),
            json!({ "limits": { "memory_mb": "512Mi", "timeout_ms": null, "ephemeral_storage_mb": 1e18 } }),
            json!({ "limits": { "vcpus": 0 } }),
            json!({ "limits": { "vcpus": 0.0001 } }),
            json!({ "limits": { "vcpus": 1e-7 } }),
            json!({ "limits": { "vcpus": -1 } }),
            json!({ "limits": { "vcpus": "1" } }),
            json!({ "inline": {}, "ref": "x" }),
            json!({ "inline": {}, "engine": "sandbox" }),
            json!({ "ref": "x", "limits": {} }),
            json!({ "inline": null }),
            json!({ "inline": { "inline": {} } }),
            json!({ "ref": "@agentik/runners/python-3.12" }),
            json!({ "ref": "../RUNNER.md" }),
            json!({ "ref": "/RUNNER.md" }),
            json!({ "ref": "Python" }),
            json!({ "ref": "a..b" }),
            json!({ "ref": "" }),
            json!({ "file": "../RUNNER.md" }),
            json!({ "file": "@agentik/runners/python-3.12" }),
            json!({ "file": "/etc/runner.yaml" }),
        ],
        |block| define_runner(block)
            .unwrap_err()
            .iter()
            .map(FieldError::to_string)
            .collect()
    ));
}
