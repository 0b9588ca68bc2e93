//! What users of `kubectl` and tools that keep objects as in git meet in our definitions.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use codeworkspace_api::{CodeRun, CodeWorkspace, crds};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::support::{dry_run, kubectl, namespace, object, resource, server};

async fn create(client: &Client, namespace: &str, plural: &str, spec: &Value) -> Result<DynamicObject> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource(plural));
    Ok(api
        .create(&PostParams::default(), &object(plural, "example", spec))
        .await?)
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn a_new_object_never_counts_as_observed() -> Result<()> {
    let client = server().await?;
    let namespace = namespace(&client, &[]).await?;
    for (plural, spec) in [
        ("codeworkspaces", json!({"code": "./x"})),
        ("coderuns", json!({"workspaceRef": {"name": "example"}})),
        ("secretinventories", json!({})),
    ] {
        let created = create(&client, &namespace, plural, &spec).await?;
        assert_eq!(
            created.data["status"],
            json!({"observedGeneration": -1}),
            "{plural}"
        );
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn a_run_is_what_it_was_made_as() -> Result<()> {
    let client = server().await?;
    let namespace = namespace(&client, &[]).await?;
    create(
        &client,
        &namespace,
        "coderuns",
        &json!({"workspaceRef": {"name": "example"}, "args": ["a"]}),
    )
    .await?;
    let runs: Api<CodeRun> = Api::namespaced(client.clone(), &namespace);

    let changed = json!({"spec": {"args": ["b"]}});
    let refusal = runs
        .patch("example", &PatchParams::default(), &Patch::Merge(&changed))
        .await;
    let Err(kube::Error::Api(refusal)) = refusal else {
        panic!("the change was taken: {refusal:?}");
    };
    assert_eq!(
        refusal.message,
        "CodeRun.codeworkspace.dev \"example\" is invalid: spec: Invalid value: \"object\": spec is immutable: make another CodeRun instead"
    );

    let labelled = json!({"metadata": {"labels": {"team": "a"}}});
    let run = runs
        .patch("example", &PatchParams::default(), &Patch::Merge(&labelled))
        .await?;
    assert_eq!(run.labels()["team"], "a");

    let refusal = dry_run(
        &client,
        "coderuns",
        &json!({"workspaceRef": {"name": "x"}, "args": ["a\0"]}),
    )
    .await?;
    assert!(refusal.is_err_and(|message| message.contains("spec.args[0]")));
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn kubectl_explain_knows_the_blocks() -> Result<()> {
    server().await?;
    let mut explained = String::new();
    for field in [
        "cws.spec",
        "cws.spec.code.sources",
        "cws.spec.run",
        "cws.spec.root",
        "cws.spec.root.configMaps",
        "cws.spec.sandbox",
        "cws.spec.runtime",
        "crun.spec",
        "rtpl.spec",
        "sinv.spec",
        "sinv.spec.secrets",
        "sinv.spec.connectors",
    ] {
        let answer = kubectl(&["explain", field], "")?;
        assert!(answer.succeeded, "{}", answer.stderr);
        writeln!(
            explained,
            "$ kubectl explain {field}\n{}\n",
            answer.stdout.trim_end()
        )?;
    }
    insta::assert_snapshot!(explained);
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn kinds_are_found_by_every_name_and_none_hides_another() -> Result<()> {
    let client = server().await?;
    let namespace = namespace(&client, &[]).await?;
    create(&client, &namespace, "codeworkspaces", &json!({"code": "./x"})).await?;
    create(
        &client,
        &namespace,
        "coderuns",
        &json!({"workspaceRef": {"name": "example"}}),
    )
    .await?;
    let names = |arguments: &[&str]| -> Result<Vec<String>> {
        let finished = kubectl(
            &[&["get", "--output", "name", "--namespace", &namespace], arguments].concat(),
            "",
        )?;
        anyhow::ensure!(finished.succeeded, "{arguments:?}: {}", finished.stderr);
        Ok(finished.stdout.lines().map(str::to_owned).collect())
    };
    for (kind, found) in [
        ("cws", "codeworkspace.codeworkspace.dev/example"),
        ("codeworkspace", "codeworkspace.codeworkspace.dev/example"),
        ("codeworkspaces", "codeworkspace.codeworkspace.dev/example"),
        ("crun", "coderun.codeworkspace.dev/example"),
        ("coderun", "coderun.codeworkspace.dev/example"),
    ] {
        assert_eq!(names(&[kind, "example"])?, [found], "{kind}");
    }
    let all: BTreeSet<String> = names(&["code"])?
        .into_iter()
        .filter(|name| name.ends_with("/example"))
        .collect();
    let expected = [
        "coderun.codeworkspace.dev/example",
        "codeworkspace.codeworkspace.dev/example",
    ];
    assert_eq!(all, expected.map(str::to_owned).into());
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn kubectl_get_shows_what_became_of_it() -> Result<()> {
    let client = server().await?;
    let namespace = namespace(&client, &[]).await?;
    create(&client, &namespace, "codeworkspaces", &json!({"code": "./x"})).await?;
    create(
        &client,
        &namespace,
        "coderuns",
        &json!({"workspaceRef": {"name": "example"}}),
    )
    .await?;
    let digest = format!("sha256:{}", "0".repeat(64));
    let workspace = json!({"status": {
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Materialized", "message": "Two sources, three files.",
            "lastTransitionTime": "2026-01-01T00:00:00Z"
        }],
        "bundle": {"digest": digest, "files": 3, "sizeBytes": 10, "compressedBytes": 5, "delivery": "ConfigMap"},
        "lastRun": {"key": "1", "name": "example", "outcome": "Failed", "exitCode": 3}
    }});
    let run = json!({"status": {
        "outcome": "Failed", "reason": "NonZeroExit", "exitCode": 3, "message": "The body exited with 3."
    }});
    let parameters = PatchParams::default();
    let workspaces: Api<CodeWorkspace> = Api::namespaced(client.clone(), &namespace);
    workspaces
        .patch_status("example", &parameters, &Patch::Merge(&workspace))
        .await?;
    let runs: Api<CodeRun> = Api::namespaced(client.clone(), &namespace);
    runs.patch_status("example", &parameters, &Patch::Merge(&run))
        .await?;

    let mut tables = String::new();
    for plural in ["codeworkspaces", "coderuns"] {
        let path = format!("/apis/codeworkspace.dev/v1alpha1/namespaces/{namespace}/{plural}");
        let request = http::Request::get(path)
            .header(
                http::header::ACCEPT,
                "application/json;as=Table;v=v1;g=meta.k8s.io",
            )
            .body(Vec::new())?;
        let table: Value = client.request(request).await?;
        writeln!(tables, "{plural}")?;
        let columns = table["columnDefinitions"].as_array().context("columns")?;
        let cells = table["rows"][0]["cells"].as_array().context("cells")?;
        for (column, cell) in columns
            .iter()
            .zip(cells)
            .filter(|(column, _)| column["name"] != "Age")
        {
            let wide = if column["priority"] == 1 { " (wide)" } else { "" };
            writeln!(
                tables,
                "  {}{wide}: {cell}",
                column["name"].as_str().unwrap_or_default()
            )?;
        }
    }
    insta::assert_snapshot!(tables);
    Ok(())
}

/// The policies list the keys of every object by hand; the schemas are where they are defined.
#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_policies_know_the_same_keys_as_the_schemas() -> Result<()> {
    let client = server().await?;
    for (plural, fields) in [
        ("codeworkspaces", &OBJECTS_OF_WORKSPACES[..]),
        ("secretinventories", &OBJECTS_OF_INVENTORIES[..]),
    ] {
        let schema = schema_of_the_spec(plural)?;
        for field in fields {
            let at = field.split(['.', '[']).filter(|step| !step.is_empty());
            let (node, spec) =
                with_an_unknown_key(&schema, at).with_context(|| format!("no schema for {field}"))?;
            let refusal = dry_run(&client, plural, &spec)
                .await?
                .err()
                .context("it was taken")?;
            let (_, takes) = refusal
                .split_once("has the unknown key \"zzz\": it takes ")
                .with_context(|| format!("{field}: {refusal}"))?;
            let takes: BTreeSet<&str> = takes.split("; ").next().unwrap_or_default().split(", ").collect();
            let properties = node.properties.iter().flatten();
            let defined: BTreeSet<&str> = properties.map(|(key, _)| key.as_str()).collect();
            assert_eq!(takes, defined, "{field}");
        }
    }
    Ok(())
}

const OBJECTS_OF_WORKSPACES: [&str; 33] = [
    "",
    "code",
    "code.sources[]",
    "code.sources[].inline",
    "code.sources[].local",
    "code.sources[].github",
    "code.sources[].ref",
    "run",
    "runner",
    "runner.needs",
    "runner.limits",
    "runner.inline",
    "runner.inline.needs",
    "runner.inline.limits",
    "runtime",
    "runtime.fs",
    "runtime.network",
    "runtime.resources",
    "sandbox",
    "sandbox.limits",
    "sandbox.network",
    "sandbox.lifecycle",
    "sandbox.mounts[]",
    "sandbox.inline",
    "network",
    "source",
    "volume",
    "pod",
    "root",
    "root.configMaps[].items[]",
    "root.persistentVolumeClaim",
    "root.github",
    "root.fluxSource",
];

const OBJECTS_OF_INVENTORIES: [&str; 8] = [
    "",
    "secrets[]",
    "secrets[].secretRef",
    "secrets[].access",
    "secrets[].access.bind[]",
    "secrets[].audit",
    "connectors[]",
    "connectors[].secretRef",
];

fn schema_of_the_spec(plural: &str) -> Result<JSONSchemaProps> {
    let crd = crds()
        .into_iter()
        .find(|crd| crd.spec.names.plural == plural)
        .context("no definition")?;
    let version = crd.spec.versions.into_iter().next().context("no version")?;
    let schema = version
        .schema
        .and_then(|schema| schema.open_api_v3_schema)
        .context("no schema")?;
    schema
        .properties
        .and_then(|mut properties| properties.remove("spec"))
        .context("no spec")
}

/// Walks down to an object, and builds the spec that has `zzz` there and is right in everything else.
fn with_an_unknown_key<'a>(
    schema: &JSONSchemaProps,
    mut steps: impl Iterator<Item = &'a str>,
) -> Option<(JSONSchemaProps, Value)> {
    let mut value = smallest(schema);
    let Some(step) = steps.next() else {
        value["zzz"] = json!(true);
        return Some((schema.clone(), value));
    };
    if step == "]" {
        let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items else {
            return None;
        };
        let (node, item) = with_an_unknown_key(items, steps)?;
        return Some((node, json!([item])));
    }
    let (node, below) = with_an_unknown_key(schema.properties.as_ref()?.get(step)?, steps)?;
    value[step] = below;
    Some((node, value))
}

/// An object with the keys that are required, at any depth.
fn smallest(schema: &JSONSchemaProps) -> Value {
    let properties = schema.properties.as_ref();
    let field = |key: &String| {
        let Some(field) = properties.and_then(|properties| properties.get(key)) else {
            return json!("tools");
        };
        match (field.type_.as_deref(), field.enum_.as_deref()) {
            (_, Some([first, ..])) => first.0.clone(),
            (Some("array"), _) => json!([{"local": "x"}]),
            (Some("object"), _) => smallest(field),
            _ if key == "repo" => json!("octo/tools"),
            _ => json!("tools"),
        }
    };
    let required = schema.required.iter().flatten();
    required
        .map(|key| (key.clone(), field(key)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
