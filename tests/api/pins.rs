//! Whole commit ids where they are wanted: in namespaces that say so, or in the whole cluster.

use anyhow::{Context as _, Result};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{apply, eventually, namespace, object, render, resource, server};

const COMMIT: &str = "4f3a2b1c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a";
const POLICY: &str = "codeworkspace-pins";

fn github(references: &[&str]) -> Value {
    let sources: Vec<Value> = references
        .iter()
        .map(|reference| json!({"github": {"repo": "octo/tools", "ref": reference}}))
        .collect();
    json!({"code": {"sources": sources}})
}

/// What the server says to a manifest in a namespace.
async fn verdict(client: &Client, namespace: &str, spec: &Value) -> Result<Option<String>> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &resource("codeworkspaces"));
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match api
        .create(&dry_run, &object("codeworkspaces", "example", spec))
        .await
    {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => {
            let (_, said) = status
                .message
                .split_once("denied request: ")
                .with_context(|| format!("another refusal: {}", status.message))?;
            Ok(Some(said.to_owned()))
        }
        Err(other) => Err(other.into()),
    }
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn a_namespace_that_wants_pins_takes_only_whole_commit_ids() -> Result<()> {
    let client = server().await?;
    let strict = namespace(&client, &[(codeworkspace_api::labels::REQUIRE_PIN, "true")]).await?;
    let other = namespace(&client, &[]).await?;
    let off = namespace(&client, &[(codeworkspace_api::labels::REQUIRE_PIN, "false")]).await?;
    let floating = github(&["main"]);
    eventually("the policy is in force", async || {
        Ok(verdict(&client, &strict, &floating).await?.is_some())
    })
    .await?;
    for namespace in [&other, &off] {
        assert_eq!(verdict(&client, namespace, &floating).await?, None);
    }

    let long = format!("{COMMIT}{}", &COMMIT[..24]);
    let pinned_root = json!({"code": {"sources": [{"local": "a"}]}, "root": {"github": {"repo": "octo/tools", "ref": COMMIT}}});
    for pinned in [
        github(&[COMMIT, &long]),
        pinned_root,
        json!({"code": "./x"}),
        json!({"code": {"sources": [{"inline": {"path": "a", "content": "main"}}, {"ref": "./x"}, {"local": "main"}]}}),
    ] {
        assert_eq!(verdict(&client, &strict, &pinned).await?, None, "{pinned}");
    }

    let mut refusals = Vec::new();
    for floating in [
        github(&["main"]),
        github(&[COMMIT, "v1.2.3", "refs/tags/v1", &COMMIT[..12]]),
        github(&[&COMMIT.to_uppercase(), &format!("{COMMIT}0")]),
        github(&[&format!("refs/heads/{COMMIT}")]),
        json!({"code": "./x", "root": {"github": {"repo": "octo/tools", "ref": "main"}}}),
        github(&vec![
            "a-branch-with-a-long-name-that-is-written-again-and-again-and-again";
            64
        ]),
    ] {
        refusals.push(
            verdict(&client, &strict, &floating)
                .await?
                .context("it was taken")?,
        );
    }
    insta::assert_yaml_snapshot!(refusals);
    Ok(())
}

/// The test's own copy of the policy, for its own namespace.
#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn a_cluster_that_wants_pins_needs_no_label() -> Result<()> {
    let client = server().await?;
    let namespace = namespace(&client, &[]).await?;
    for mut object in render("codeworkspace", &["--set", "configuration.requirePin=true"])? {
        if object["metadata"]["name"] != POLICY {
            continue;
        }
        object["metadata"]["name"] = json!(namespace);
        if object["kind"] == "ValidatingAdmissionPolicy" {
            let own = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
            object["spec"]["matchConstraints"]["namespaceSelector"] = own;
        } else {
            assert_eq!(
                object["spec"]["matchResources"],
                Value::Null,
                "no label is asked for"
            );
            object["spec"]["policyName"] = json!(namespace);
        }
        apply(&client, &object).await?;
    }
    let floating = github(&["main"]);
    eventually("the policy is in force", async || {
        Ok(verdict(&client, &namespace, &floating).await?.is_some())
    })
    .await?;
    let said = verdict(&client, &namespace, &floating).await?.unwrap_or_default();
    assert!(
        said.contains(": this cluster requires whole commit ids"),
        "{said}"
    );
    assert_eq!(verdict(&client, &namespace, &github(&[COMMIT])).await?, None);
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn what_was_taken_before_the_label_may_be_suspended_and_pinned_but_not_follow_another_branch()
-> Result<()> {
    let client = server().await?;
    let own = namespace(&client, &[]).await?;
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &own, &resource("codeworkspaces"));
    let parameters = PatchParams::default();
    api.create(
        &PostParams::default(),
        &object("codeworkspaces", "old", &github(&["main"])),
    )
    .await?;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let label = json!({"metadata": {"labels": {codeworkspace_api::labels::REQUIRE_PIN: "true"}}});
    namespaces.patch(&own, &parameters, &Patch::Merge(&label)).await?;
    eventually("the policy is in force", async || {
        Ok(verdict(&client, &own, &github(&["main"])).await?.is_some())
    })
    .await?;

    let team = json!({"metadata": {"labels": {"team": "a"}}});
    api.patch("old", &parameters, &Patch::Merge(&team)).await?;
    let suspended = json!({"spec": {"suspend": true}});
    api.patch("old", &parameters, &Patch::Merge(&suspended)).await?;
    for other in [
        json!({"spec": github(&["next"])}),
        json!({"spec": {"root": {"github": {"repo": "octo/tools", "ref": "main"}}}}),
    ] {
        let patched = api.patch("old", &parameters, &Patch::Merge(&other)).await;
        assert!(patched.is_err(), "{other}");
    }
    let pinned = json!({"spec": github(&[COMMIT])});
    api.patch("old", &parameters, &Patch::Merge(&pinned)).await?;
    Ok(())
}
