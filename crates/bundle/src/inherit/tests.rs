use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    expand::{Catalog, Expanded, Expansion, Lookup, expand},
    manifest::Blocks,
    runner::{Engine, Limits},
    secrets::SecretSource,
};

/// An object; `code` lists the names of those that it refers to.
fn manifest(object: &Value) -> Manifest {
    let names = object["code"].as_array().cloned().unwrap_or_default();
    let inline = json!({ "inline": { "path": "a.py", "content": "" } });
    let refs = names
        .iter()
        .filter_map(Value::as_str)
        .map(|name| json!({ "ref": name }));
    let code = json!({ "sources": refs.chain([inline]).collect::<Vec<_>>() });
    let blocks = Blocks {
        code: Some(&code),
        run: object.get("run"),
        runner: object.get("runner"),
        runtime: object.get("runtime"),
        sandbox: object.get("sandbox"),
        secrets: object.get("secrets"),
        network: object.get("network"),
    };
    Manifest::from_blocks(&blocks, None)
}

/// The object `top` of a namespace after everything is found.
fn expanded(objects: &Value) -> Expanded {
    let mut catalog = Catalog::new();
    loop {
        match expand(&manifest(&objects["top"]), "top", &catalog) {
            Expansion::Complete(expanded) => return *expanded,
            Expansion::Wanted(wanted) => {
                for key in wanted {
                    let name = key.path.below_root().unwrap().to_string();
                    let manifest = Arc::new(manifest(&objects[&name]));
                    catalog.insert(key, Lookup::Object { name, manifest });
                }
            }
        }
    }
}

fn inherited(objects: &Value) -> Inherited {
    expanded(objects).inherited
}

fn errors(inherited: &Inherited) -> Vec<String> {
    inherited.errors().iter().map(ToString::to_string).collect()
}

#[test]
fn a_workspace_without_references_has_its_own_blocks() {
    let own = json!({
        "runner": { "engine": "sandbox", "limits": { "memory_mb": 1 } },
        "secrets": { "KEY": { "value": "x" } },
        "network": { "egress": ["x.y"] },
    });
    let inherited = inherited(&json!({ "top": own }));
    assert_eq!((inherited.origins.len(), inherited.errors().len()), (0, 0));
    let manifest = manifest(&own);
    assert_eq!(inherited.runner, manifest.runner.unwrap());
    assert_eq!(
        (inherited.secrets, inherited.network),
        (manifest.secrets, manifest.network)
    );
}

#[test]
fn runner_secrets_and_network_are_inherited() {
    let utils = json!({
        "runner": {
            "engine": "sandbox",
            "image": "node-render",
            "needs": { "language": "node", "native": ["weasyprint", "ffmpeg"] },
            "limits": { "memory_mb": 2048, "timeout_ms": 120_000 },
        },
        "secrets": { "CLOUDINARY_KEY": { "vault": "cloudinary-api-key" } },
        "network": { "egress": ["api.cloudinary.com"] },
    });
    let inherited = inherited(&json!({ "top": { "code": ["render-utils"] }, "render-utils": utils }));
    let manifest = manifest(&utils);
    assert_eq!(inherited.runner, manifest.runner.unwrap());
    assert_eq!(
        (inherited.secrets, inherited.network),
        (manifest.secrets, manifest.network)
    );
    let fields: Vec<_> = inherited.origins.keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "network.egress[api.cloudinary.com]",
            "runner.engine",
            "runner.image",
            "runner.limits.memory_mb",
            "runner.limits.timeout_ms",
            "runner.needs.language",
            "runner.needs.native[ffmpeg]",
            "runner.needs.native[weasyprint]",
            "secrets.CLOUDINARY_KEY",
        ]
    );
    assert!(
        inherited
            .origins
            .values()
            .all(|origin| origin == "code.sources[0] > render-utils")
    );
}

#[test]
fn scalars_override_field_by_field_and_the_child_is_last() {
    let inherited = inherited(&json!({
        "top": { "code": ["a", "b"], "runner": { "limits": { "timeout_ms": 3 } } },
        "a": { "runner": { "engine": "sandbox", "image": "one", "limits": { "memory_mb": 1, "timeout_ms": 1, "cpu_ms": 1 } } },
        "b": { "runner": { "image": "two", "limits": { "memory_mb": 2, "timeout_ms": 2 } } },
    }));
    assert_eq!(
        (inherited.runner.engine, inherited.runner.image.as_deref()),
        (Some(Engine::Sandbox), Some("two"))
    );
    let limits = Limits {
        memory_mb: Some(2),
        timeout_ms: Some(3),
        cpu_ms: Some(1),
        ..Limits::default()
    };
    assert_eq!(inherited.runner.limits, limits);
    let expected = [
        ("runner.engine", "code.sources[0] > a"),
        ("runner.image", "code.sources[1] > b"),
        ("runner.limits.cpu_ms", "code.sources[0] > a"),
        ("runner.limits.memory_mb", "code.sources[1] > b"),
    ];
    assert_eq!(
        inherited.origins,
        expected
            .map(|(field, origin)| (field.to_owned(), origin.to_owned()))
            .into()
    );
}

#[test]
fn needs_are_joined_in_order_and_once() {
    let needs = |native: &[&str], npm: &[&str], pip: &[&str]| json!({ "needs": { "native": native, "npm": npm, "pip": pip } });
    let inherited = inherited(&json!({
        "top": { "code": ["a", "b"], "runner": needs(&["jq", "ffmpeg"], &[], &["x"]) },
        "a": { "runner": needs(&["weasyprint", "ffmpeg"], &["stripe@1"], &[]) },
        "b": { "runner": needs(&["ffmpeg", "zip"], &["stripe@1", "zod"], &["y"]) },
    }));
    let needs = &inherited.runner.needs;
    assert_eq!(needs.native, ["weasyprint", "ffmpeg", "zip", "jq"]);
    assert_eq!(needs.npm, ["stripe@1", "zod"]);
    assert_eq!(needs.pip, ["y", "x"]);
    assert_eq!(
        inherited.origins.get("runner.needs.native[zip]").unwrap(),
        "code.sources[1] > b"
    );
    assert_eq!(inherited.origins.get("runner.needs.native[ffmpeg]"), None);
}

#[test]
fn secrets_are_merged_by_name_and_the_child_wins() {
    let bound = |name: &str, value: &str| json!({ name: { "value": value }, "SHARED": { "value": value } });
    let inherited = inherited(&json!({
        "top": { "code": ["a", "b"], "secrets": { "OWN": { "value": "top" }, "A": { "vault": "a-key" } } },
        "a": { "secrets": bound("A", "a") },
        "b": { "secrets": bound("B", "b") },
    }));
    let value = |text: &str| SecretSource::Value(text.to_owned());
    assert_eq!(
        inherited.secrets.bindings,
        [
            ("A", SecretSource::Vault("a-key".to_owned())),
            ("B", value("b")),
            ("OWN", value("top")),
            ("SHARED", value("b")),
        ]
        .map(|(name, source)| (name.to_owned(), source))
        .into()
    );
    let origins: Vec<_> = inherited
        .origins
        .iter()
        .map(|(field, origin)| format!("{field} {origin}"))
        .collect();
    assert_eq!(
        origins,
        [
            "secrets.B code.sources[1] > b",
            "secrets.SHARED code.sources[1] > b"
        ]
    );
}

#[test]
fn egress_adds_and_cannot_narrow() {
    let inherited = inherited(&json!({
        "top": { "code": ["a", "b"], "network": { "egress": [] } },
        "a": { "network": { "egress": ["x.y", "*.z"] } },
        "b": { "network": { "egress": ["x.y", "b.c:8443"] } },
    }));
    assert_eq!(inherited.network.egress, ["x.y", "*.z", "b.c:8443"]);
}

#[test]
fn a_referenced_manifest_inherits_from_its_own_references_first() {
    let inherited = inherited(&json!({
        "top": { "code": ["a"] },
        "a": { "code": ["b"], "runner": { "limits": { "memory_mb": 2 } } },
        "b": { "code": ["c"], "runner": { "limits": { "memory_mb": 1, "timeout_ms": 1 } }, "network": { "egress": ["b"] } },
        "c": { "runner": { "limits": { "cpu_ms": 9 } }, "network": { "egress": ["c"] } },
    }));
    assert_eq!(inherited.runner.limits.memory_mb, Some(2));
    assert_eq!(inherited.network.egress, ["c", "b"]);
    let expected = [
        ("network.egress[b]", "code.sources[0] > a > code.sources[0] > b"),
        (
            "network.egress[c]",
            "code.sources[0] > a > code.sources[0] > b > code.sources[0] > c",
        ),
        (
            "runner.limits.cpu_ms",
            "code.sources[0] > a > code.sources[0] > b > code.sources[0] > c",
        ),
        ("runner.limits.memory_mb", "code.sources[0] > a"),
        (
            "runner.limits.timeout_ms",
            "code.sources[0] > a > code.sources[0] > b",
        ),
    ];
    assert_eq!(
        inherited.origins,
        expected
            .map(|(field, origin)| (field.to_owned(), origin.to_owned()))
            .into()
    );
}

#[test]
fn two_languages_are_a_conflict_that_names_both_places() {
    let language = |language: &str| json!({ "needs": { "language": language } });
    let objects = json!({
        "top": { "code": ["a", "b"], "runner": language("multi") },
        "a": { "code": ["c"] },
        "b": { "runner": language("python") },
        "c": { "runner": language("node") },
    });
    let own = json!({
        "top": { "code": ["a"], "runner": language("python") },
        "a": { "runner": language("node") },
    });
    let deep = json!({
        "top": { "code": ["a"] },
        "a": { "code": ["b"], "runner": language("python") },
        "b": { "runner": language("node") },
    });
    insta::assert_snapshot!(
        [objects, own, deep]
            .map(|objects| errors(&inherited(&objects)).join("\n"))
            .join("\n\n")
    );
}

#[test]
fn multi_goes_with_every_language() {
    let language = |language: &str| json!({ "needs": { "language": language } });
    let inherited = inherited(&json!({
        "top": { "code": ["a", "b"] },
        "a": { "runner": language("node") },
        "b": { "runner": language("multi") },
    }));
    assert_eq!(
        (inherited.runner.needs.language, errors(&inherited)),
        (Some(Language::Multi), vec![])
    );
}

#[test]
fn what_belongs_to_a_call_is_never_inherited() {
    let expanded = expanded(
        &json!({ "top": { "code": ["a"] }, "a": { "run": "a.py", "sandbox": {
        "provider": "kubernetes", "config": {}, "read_only": true, "mounts": [{ "source": "workspace", "at": "/data" }],
    } } }),
    );
    // What is inherited has no field for a command, inputs, outputs, origin, capabilities, mounts or `read_only`.
    let Inherited {
        runner,
        secrets,
        network,
        origins,
        faults,
        language,
    } = expanded.inherited;
    assert_eq!(
        (runner, secrets, network),
        (RunnerBlock::default(), Secrets::default(), Network::default())
    );
    assert_eq!((origins.len(), faults.len(), language), (0, 0, None));
}

#[test]
fn an_image_goes_with_the_engine_that_has_images() {
    let objects = |runner: Value| json!({ "top": { "code": ["a"], "runner": runner }, "a": { "runner": { "engine": "sandbox", "image": "node" } } });
    let merged = inherited(&objects(json!({ "engine": "subprocess" })));
    assert_eq!((merged.runner.image.as_deref(), merged.origins.len()), (None, 0));
    assert!(merged.resolve_runner(Language::Node).is_ok());
    let merged = inherited(&objects(json!({ "ref": "python" })));
    assert_eq!(merged.runner.image.as_deref(), Some("python"));
}

#[test]
fn a_sandbox_lowers_what_is_inherited_too() {
    let inherited = inherited(&json!({
        "top": {
            "code": ["a"],
            "sandbox": {
                "provider": "kubernetes", "config": {}, "limits": { "memory_mb": 512, "timeout_ms": 9_000 },
                "network": { "egress": ["own"] }, "env": { "auth": { "state": { "env": ["A_KEY"] } } },
            },
        },
        "a": { "runner": { "limits": { "memory_mb": 1_024, "timeout_ms": 1_000 } }, "network": { "egress": ["a"] } },
    }));
    assert_eq!(
        (
            inherited.runner.limits.memory_mb,
            inherited.runner.limits.timeout_ms
        ),
        (Some(512), Some(1_000))
    );
    assert_eq!(inherited.network.egress, ["a", "own"]);
    assert!(inherited.secrets.bindings.contains_key("A_KEY"));
    let origins: Vec<_> = inherited.origins.keys().map(String::as_str).collect();
    assert_eq!(origins, ["network.egress[a]", "runner.limits.timeout_ms"]);
}

#[test]
fn faults_of_others_blocks_are_told_with_the_way_to_them() {
    let inherited = inherited(&json!({
        "top": { "code": ["a"], "runner": 3, "network": 4 },
        "a": { "code": ["b"], "runner": { "engine": "x" } },
        "b": { "secrets": { "PATH": { "value": "" } }, "network": { "egress": ["ok", "http://x"] }, "run": 3 },
    }));
    insta::assert_snapshot!(errors(&inherited).join("\n"));
}

#[test]
fn an_error_about_a_value_says_where_it_comes_from() {
    let inherited = inherited(&json!({
        "top": { "code": ["a"], "runner": { "image": "own" } },
        "a": { "runner": { "engine": "in-process", "needs": { "language": "node" } } },
    }));
    let errors = inherited.resolve_runner(Language::Python).unwrap_err();
    insta::assert_snapshot!(
        errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn a_diamond_merges_the_same_blocks_twice_without_harm() {
    let inherited = inherited(&json!({
        "top": { "code": ["a", "b"] },
        "a": { "code": ["c"] },
        "b": { "code": ["c"] },
        "c": { "runner": { "needs": { "language": "node", "npm": ["zod"] } }, "network": { "egress": ["x.y"] } },
    }));
    assert_eq!(inherited.runner.needs.npm, ["zod"]);
    assert_eq!(
        (inherited.network.egress.clone(), inherited.errors()),
        (vec!["x.y".to_owned()], vec![])
    );
}

#[test]
fn what_is_fine_in_each_may_be_too_much_together() {
    let hosts = |name: &str| (0..200).map(|index| format!("{name}{index}")).collect::<Vec<_>>();
    let secrets = |name: &str| -> serde_json::Map<_, _> {
        (0..40)
            .map(|index| (format!("{name}{index}"), json!({ "value": "" })))
            .collect()
    };
    let one = |name: &str| {
        json!({
            "runner": { "needs": { "pip": hosts(name) } },
            "network": { "egress": hosts(name) },
            "secrets": secrets(name),
        })
    };
    let mut top = one("A");
    top["code"] = json!(["b"]);
    let inherited = inherited(&json!({ "top": top, "b": one("B") }));
    assert_eq!(
        errors(&inherited),
        [
            "runner.needs.pip: has more than 256 entries with what is inherited",
            "network.egress: has more than 256 entries with what is inherited",
            "secrets: has more than 64 entries with what is inherited",
        ]
    );
    assert_eq!(
        (
            inherited.runner.needs.pip.len(),
            inherited.network.egress.len(),
            inherited.secrets.bindings.len()
        ),
        (256, 256, 64)
    );
}

#[test]
fn faults_do_not_multiply_without_bound() {
    let bad: Vec<_> = (0..16).map(|index| format!("http://{index}")).collect();
    let names = vec!["b"; 60];
    let inherited = inherited(&json!({ "top": { "code": names }, "b": { "network": { "egress": bad } } }));
    assert_eq!(inherited.errors().len(), MOST_FAULTS);
}
