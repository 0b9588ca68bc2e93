//! Which manifests the API server takes, and what it says to the others.

use std::fmt::Write as _;

use anyhow::Result;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::corpus::{BLOCKS, Case, INVENTORY, Judge, cases, deviating, deviations};
use crate::support::{apply, dry_run, eventually, namespace, object, policies, resource, server};

/// Every case of the corpus with the kind of object that it is part of, and the server's answer.
async fn answers(client: &Client, file: &str) -> Result<Vec<(Case, Result<Value, String>)>> {
    let plural = if file == INVENTORY {
        "secretinventories"
    } else {
        "codeworkspaces"
    };
    let mut answers = Vec::new();
    for case in cases(file)? {
        let answer = dry_run(client, plural, &case.spec()).await?;
        answers.push((case, answer));
    }
    Ok(answers)
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_server_agrees_but_for_what_is_listed() -> Result<()> {
    let client = server().await?;
    let mut verdicts = Vec::new();
    for file in BLOCKS.into_iter().chain([INVENTORY]) {
        let answers = answers(&client, file).await?;
        verdicts.extend(answers.into_iter().map(|(case, answer)| (case, answer.is_ok())));
    }
    assert_eq!(
        deviating(verdicts),
        deviations()?.remove(&Judge::Server).unwrap_or_default()
    );
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn good_manifests_are_stored_as_they_were_written() -> Result<()> {
    let client = server().await?;
    for file in BLOCKS.into_iter().chain([INVENTORY]) {
        for (case, answer) in answers(&client, file).await? {
            if case.accepted {
                assert_eq!(answer, Ok(case.spec()), "{}", case.name);
            }
        }
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn each_bad_manifest_gets_an_answer_that_names_the_field() -> Result<()> {
    let client = server().await?;
    for file in BLOCKS.into_iter().chain([INVENTORY]) {
        let mut told = String::new();
        for (case, answer) in answers(&client, file).await? {
            if let Err(message) = answer {
                let blocks = Value::from(case.blocks);
                writeln!(told, "{}\n  {blocks}\n  {}\n", case.name, readable(&message))?;
            }
        }
        insta::assert_snapshot!(format!("refused_{file}"), told);
    }
    Ok(())
}

/// The answer without the frame that is the same around each.
fn readable(answer: &str) -> String {
    answer
        .trim_start_matches("CodeWorkspace.codeworkspace.dev \"example\" is invalid: ")
        .trim_start_matches("SecretInventory.codeworkspace.dev \"example\" is invalid: ")
        .trim_start_matches("codeworkspaces.codeworkspace.dev \"example\" is forbidden: ")
        .trim_start_matches("secretinventories.codeworkspace.dev \"example\" is forbidden: ")
        .replace("ValidatingAdmissionPolicy 'codeworkspace-shapes' with binding 'codeworkspace-shapes' denied request:", "policy:")
        .replace("ValidatingAdmissionPolicy 'codeworkspace-inventories' with binding 'codeworkspace-inventories' denied request:", "policy:")
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_largest_manifest_is_taken_and_the_next_larger_one_refused() -> Result<()> {
    let client = server().await?;
    let sources = |count: usize, source: Value| json!({"code": {"sources": vec![source; count]}});
    let long = vec!["x".repeat(204); 5].join("/");
    assert_eq!(long.len(), 1024);
    let hosts = vec![vec!["h".repeat(62); 4].join("."); 256];
    let names = vec!["N".repeat(200); 256];
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
        (
            "8 ConfigMaps with 256 files each",
            json!({"code": "./x", "root": {"configMaps": vec![
                json!({"name": "a", "items": vec![json!({"key": "a", "path": &long[..200]}); 256]}); 8
            ]}}),
        ),
        (
            "256 hosts in each place, and names of variables",
            json!({
                "code": "./x",
                "network": {"egress": hosts},
                "runtime": {"env": names, "network": {"egress": hosts}},
                "sandbox": {
                    "provider": "kubernetes", "config": {}, "network": {"egress": hosts},
                    "env": {"passthrough": names, "auth": {"state": {"env": names}}}
                }
            }),
        ),
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

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_largest_inventory_is_taken() -> Result<()> {
    let client = server().await?;
    let grants = vec![json!({"any": true}); 64];
    let secrets: Vec<Value> = (0..256)
        .map(|number| {
            json!({
                "slug": format!("secret-{number}"), "name": "n".repeat(80), "description": "d".repeat(200),
                "access": {"reveal": grants, "bind": grants, "rotate": grants}
            })
        })
        .collect();
    let connectors: Vec<Value> = (0..16)
        .map(|number| json!({"driver": format!("driver-{number}"), "secretRef": {"name": "a", "key": "b"}}))
        .collect();
    let spec = json!({"secrets": secrets, "connectors": connectors});
    assert_eq!(dry_run(&client, "secretinventories", &spec).await?.err(), None);
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
        if policy["metadata"]["name"] != "codeworkspace-shapes" {
            continue;
        }
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
