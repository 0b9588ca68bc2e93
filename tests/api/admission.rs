//! Which manifests the API server takes, and what it says to the others.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{apply, checkout, dry_run, eventually, namespace, object, policies, resource, server};

/// One entry of a fixture file.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub spec: Value,
}

/// The cases of a file below `tests/fixtures/admission`.
pub fn cases(file: &str) -> Result<Vec<Case>> {
    let path = checkout().join("tests/fixtures/admission").join(file);
    let entries: Vec<Value> = serde_saphyr::from_str(&std::fs::read_to_string(&path)?)?;
    entries
        .into_iter()
        .map(|mut entry| {
            let name = entry["case"]
                .as_str()
                .context("a case without a name")?
                .to_owned();
            let spec = entry["spec"].take();
            ensure!(spec.is_object(), "{name} has no spec");
            Ok(Case { name, spec })
        })
        .collect()
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn good_manifests_are_stored_as_they_were_written() -> Result<()> {
    let client = server().await?;
    for Case { name, spec } in cases("accepted.yaml")? {
        assert_eq!(
            dry_run(&client, "codeworkspaces", &spec).await?,
            Ok(spec),
            "{name}"
        );
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn each_bad_manifest_gets_an_answer_that_names_the_field() -> Result<()> {
    let client = server().await?;
    let mut answers = String::new();
    for Case { name, spec } in cases("refused.yaml")? {
        let answer = match dry_run(&client, "codeworkspaces", &spec).await? {
            Ok(stored) => format!("TAKEN as {stored}"),
            Err(message) => message,
        };
        writeln!(answers, "{name}\n  {spec}\n  {}\n", readable(&answer))?;
    }
    insta::assert_snapshot!(answers);
    Ok(())
}

/// The answer without the frame that is the same around each.
fn readable(answer: &str) -> String {
    answer
        .trim_start_matches("CodeWorkspace.codeworkspace.dev \"example\" is invalid: ")
        .trim_start_matches("codeworkspaces.codeworkspace.dev \"example\" is forbidden: ")
        .replace("ValidatingAdmissionPolicy 'codeworkspace-shapes' with binding 'codeworkspace-shapes' denied request:", "policy:")
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_largest_manifest_is_taken_and_the_next_larger_one_refused() -> Result<()> {
    let client = server().await?;
    let sources = |count: usize, source: Value| json!({"code": {"sources": vec![source; count]}});
    let long = vec!["x".repeat(204); 5].join("/");
    assert_eq!(long.len(), 1024);
    let inline = |bytes: usize| json!({"inline": {"path": long, "content": "y".repeat(bytes)}});

    for (what, spec) in [
        (
            "64 sources with 512 KiB of content and paths of 1,024 bytes",
            sources(64, inline(8192)),
        ),
        (
            "64 local sources",
            sources(64, json!({"local": {"path": long, "as": long, "glob": long}})),
        ),
        (
            "64 github sources",
            sources(
                64,
                json!({"github": {"repo": "octo/tools", "ref": "r".repeat(255), "path": long, "as": long}}),
            ),
        ),
        (
            "1,024 arguments",
            json!({"code": "./x", "run": vec!["a".repeat(1000); 1024]}),
        ),
        ("one file of 512 KiB", sources(1, inline(524_288))),
    ] {
        let answer = dry_run(&client, "codeworkspaces", &spec).await?;
        assert_eq!(answer.err(), None, "{what}");
    }

    let mut answers = String::new();
    for (what, spec) in [
        ("65 sources", sources(65, json!({"local": "x"}))),
        (
            "one byte more than 512 KiB in one file",
            sources(1, inline(524_289)),
        ),
        ("one byte more in 64 files", sources(64, inline(8193))),
        (
            "512 Ki characters of two bytes",
            sources(
                2,
                json!({"inline": {"path": "a", "content": "ä".repeat(131_073)}}),
            ),
        ),
        (
            "a path of 1,025 bytes",
            sources(1, json!({"local": format!("{long}x")})),
        ),
        ("1,025 arguments", json!({"code": "./x", "run": vec!["a"; 1025]})),
        (
            "more keys than anybody looks at",
            json!({"code": "./x", "network": (0..17).map(|i| (format!("k{i}"), json!(true))).collect::<serde_json::Map<_, _>>()}),
        ),
        (
            "more problems than a message can hold",
            sources(
                64,
                json!({"local": {"path": "/x", "as": "../x", "🙂".repeat(500): true}}),
            ),
        ),
    ] {
        let answer = dry_run(&client, "codeworkspaces", &spec).await?;
        writeln!(answers, "{what}\n  {}\n", readable(&answer.expect_err(what)))?;
    }
    insta::assert_snapshot!(answers);
    Ok(())
}

/// A later version of the policy may refuse what an earlier one took. The test's own copy, for its own namespace, does.
#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn what_was_taken_before_the_policy_can_still_be_labelled_but_not_changed() -> Result<()> {
    let client = server().await?;
    let namespace = namespace(&client, &[]).await?;
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &namespace, &resource("codeworkspaces"));
    let old = object(
        "codeworkspaces",
        "old",
        &json!({"code": "./x", "network": {"egress": []}}),
    );
    api.create(&PostParams::default(), &old).await?;

    for mut policy in policies()? {
        policy["metadata"]["name"] = json!(namespace);
        match policy["kind"].as_str() {
            Some("ValidatingAdmissionPolicy") => {
                let own = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
                policy["spec"]["matchConstraints"]["namespaceSelector"] = own;
                let stricter = policy["spec"].to_string().replace("['egress']", "['nothing']");
                policy["spec"] = serde_json::from_str(&stricter)?;
            }
            _ => policy["spec"]["policyName"] = json!(namespace),
        }
        apply(&client, &policy).await?;
    }
    let new = object("codeworkspaces", "new", &old.data["spec"]);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    eventually("the stricter policy is in force", async || {
        Ok(api.create(&dry_run, &new).await.is_err())
    })
    .await?;

    let parameters = PatchParams::default();
    let label = json!({"metadata": {"labels": {"team": "a"}}});
    let labelled = api.patch("old", &parameters, &Patch::Merge(&label)).await?;
    assert_eq!(labelled.labels()["team"], "a");
    let change = json!({"spec": {"suspend": true}});
    let refusal = api.patch("old", &parameters, &Patch::Merge(&change)).await;
    assert!(refusal.is_err_and(|error| {
        error
            .to_string()
            .contains("spec.network has the unknown key \"egress\"")
    }));
    Ok(())
}
