//! What becomes of manifests that are applied again and again, by people and by tools that keep them in git.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::corpus::{BLOCKS, INVENTORY, cases};
use crate::support::{kubectl, namespace, object, resource, server};

const COMMIT: &str = "4f3a2b1c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a";

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn server_side_apply_follows_a_union_that_changes_its_shape() -> Result<()> {
    let client = server().await?;
    let namespace = namespace(&client, &[]).await?;
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &namespace, &resource("codeworkspaces"));
    let parameters = PatchParams::apply("gitops").validation_strict();
    for spec in [
        json!({"code": "./shared", "run": "tool.py"}),
        json!({"code": {"sources": [{"local": "a"}, {"inline": {"path": "b", "content": "c"}}]}, "run": ["python", "tool.py"]}),
        json!({"code": {"sources": [{"local": {"path": "a", "as": "b/"}}]}, "run": {"shell": "ls"}}),
        json!({"code": {"sources": [{"github": {"repo": "octo/tools", "ref": "main"}}]}, "run": "ls | sort"}),
        json!({"code": "./shared"}),
    ] {
        let applied = object("codeworkspaces", "example", &spec);
        let stored = api.patch("example", &parameters, &Patch::Apply(&applied)).await?;
        assert_eq!(stored.data["spec"], spec);
        // The first write after the creation also stores the default of the status.
        let settled = api.patch("example", &parameters, &Patch::Apply(&applied)).await?;
        let again = api.patch("example", &parameters, &Patch::Apply(&applied)).await?;
        assert_eq!(settled.metadata.generation, stored.metadata.generation);
        assert_eq!(
            again.resource_version(),
            settled.resource_version(),
            "applying the same again writes nothing"
        );
    }
    Ok(())
}

/// Runs `kubectl` with a verb on manifests.
fn kubectl_on(manifests: &str, namespace: &str, arguments: &[&str]) -> Result<crate::support::Finished> {
    kubectl(
        &[arguments, &["--namespace", namespace, "--filename", "-"]].concat(),
        manifests,
    )
}

/// Everything that may be written: the worked examples, and whatever the corpus accepts.
fn manifests() -> Result<String> {
    let mut manifests = String::new();
    let mut add = |plural: &str, name: &str, spec: &Value| {
        let manifest = serde_json::to_string(&object(plural, name, spec))?;
        writeln!(manifests, "---\n{manifest}")?;
        anyhow::Ok(())
    };
    for (name, blocks) in crate::pasted::examples()? {
        add("codeworkspaces", &name, &blocks)?;
    }
    for file in BLOCKS.into_iter().chain([INVENTORY]) {
        let plural = if file == INVENTORY {
            "secretinventories"
        } else {
            "codeworkspaces"
        };
        for (index, case) in cases(file)?.iter().enumerate().filter(|(_, case)| case.accepted) {
            add(plural, &format!("{file}-{index}"), &case.spec())?;
        }
    }
    Ok(manifests)
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn kubectl_diff_is_empty_after_apply() -> Result<()> {
    let client = server().await?;
    let manifests = manifests()?;
    for way in ["--server-side=false", "--server-side"] {
        let namespace = namespace(&client, &[]).await?;
        let applied = kubectl_on(&manifests, &namespace, &["apply", way])?;
        assert!(applied.succeeded, "{way}: {}", applied.stderr);
        let difference = kubectl_on(&manifests, &namespace, &["diff", way])?;
        assert_eq!(
            (difference.stdout.as_str(), difference.stderr.as_str()),
            ("", ""),
            "{way}"
        );
        assert!(difference.succeeded);
    }
    Ok(())
}

async fn stored(client: &Client, namespace: &str, plural: &str) -> Result<DynamicObject> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource(plural));
    Ok(api.get("example").await?)
}

/// A field that is left out is gone: an old `path` beside a new `ref` would be another bundle than the one that was written.
#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn a_reference_that_moves_is_followed_and_a_field_that_is_left_out_is_gone() -> Result<()> {
    let client = server().await?;
    for way in ["--server-side=false", "--server-side"] {
        let namespace = namespace(&client, &[]).await?;
        let mut generation = 0;
        for github in [
            json!({"repo": "octo/tools", "ref": "v1.2.3", "path": "src", "as": "vendor/"}),
            json!({"repo": "octo/tools", "ref": "main", "as": "vendor/"}),
            json!({"repo": "octo/tools", "ref": COMMIT}),
            json!({"repo": "octo/tools", "ref": "v1.2.3", "path": "src"}),
        ] {
            let spec = json!({
                "code": {"sources": [{"local": "a"}, {"github": github}]},
                "root": {"github": github_root(&github)}
            });
            let manifest = serde_json::to_string(&object("codeworkspaces", "example", &spec))?;
            let applied = kubectl_on(&manifest, &namespace, &["apply", way])?;
            ensure!(applied.succeeded, "{way}: {}", applied.stderr);
            let stored = stored(&client, &namespace, "codeworkspaces").await?;
            assert_eq!(stored.data["spec"], spec, "{way}");
            let now = stored.metadata.generation.context("a generation")?;
            assert_eq!(now, generation + 1, "{way}: one change, one generation");
            generation = now;
        }
    }
    Ok(())
}

fn github_root(github: &Value) -> Value {
    let mut root = github.clone();
    if let Some(root) = root.as_object_mut() {
        root.remove("as");
    }
    root
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn another_kind_of_root_takes_the_place_of_the_former() -> Result<()> {
    let client = server().await?;
    for way in ["--server-side=false", "--server-side"] {
        let namespace = namespace(&client, &[]).await?;
        for root in [
            json!({"configMaps": [{"name": "a", "items": [{"key": "a", "path": "b/a"}]}, {"name": "b"}]}),
            json!({"configMaps": [{"name": "b"}]}),
            json!({"persistentVolumeClaim": {"claimName": "data"}}),
            json!({"fluxSource": {"kind": "GitRepository", "name": "tools"}}),
        ] {
            let spec = json!({"code": {"sources": [{"local": "a"}]}, "root": root});
            let manifest = serde_json::to_string(&object("codeworkspaces", "example", &spec))?;
            let applied = kubectl_on(&manifest, &namespace, &["apply", way])?;
            ensure!(applied.succeeded, "{way}: {}", applied.stderr);
            let stored = stored(&client, &namespace, "codeworkspaces").await?;
            assert_eq!(stored.data["spec"], spec, "{way}");
        }
    }
    Ok(())
}

/// Two that apply parts of one object: entries of an inventory have owners of their own, sources and roots have one for the whole list.
#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn entries_of_an_inventory_are_merged_and_sources_are_not() -> Result<()> {
    let client = server().await?;
    let namespace = namespace(&client, &[]).await?;
    let apply = async |plural: &str, manager: &str, spec: Value| {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource(plural));
        let parameters = PatchParams::apply(manager).validation_strict();
        api.patch(
            "example",
            &parameters,
            &Patch::Apply(&object(plural, "example", &spec)),
        )
        .await
    };
    let connector = |driver: &str| json!({"driver": driver, "secretRef": {"name": driver}});
    let secret = |slug: &str| json!({"slug": slug, "name": slug, "description": slug});
    let inventory =
        |name: &str| json!({"connectors": [connector(name)], "secrets": [secret(&format!("{name}-token"))]});
    apply("secretinventories", "one", inventory("github")).await?;
    let both = apply("secretinventories", "two", inventory("google")).await?;
    assert_eq!(
        both.data["spec"],
        json!({
            "connectors": [connector("github"), connector("google")],
            "secrets": [secret("github-token"), secret("google-token")]
        })
    );
    let one = apply("secretinventories", "two", json!({})).await?;
    assert_eq!(one.data["spec"], inventory("github"));

    let sources = |path: &str| json!({"code": {"sources": [{"local": path}]}, "root": {"configMaps": [{"name": path}]}});
    apply("codeworkspaces", "one", sources("a")).await?;
    let conflict = apply("codeworkspaces", "two", sources("b")).await;
    let Err(kube::Error::Api(conflict)) = conflict else {
        panic!("a list was merged: {conflict:?}");
    };
    assert_eq!(conflict.reason, "Conflict");
    for field in [".spec.code.sources", ".spec.root.configMaps"] {
        assert!(conflict.message.contains(field), "{}", conflict.message);
    }
    Ok(())
}
