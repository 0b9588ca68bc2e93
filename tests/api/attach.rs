//! Whose pods the operator may attach to: a role cannot say it, so a policy does.

use anyhow::{Context as _, Result, bail};
use http::{Method, Request};
use kube::{Client, Config};
use serde_json::json;

use crate::support::{NAMESPACE, RELEASE, apply, eventually, namespace, render, server};

/// The operator, as the API server sees it.
async fn operator() -> Result<Client> {
    let mut config = Config::infer().await?;
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{NAMESPACE}:{RELEASE}"));
    Ok(Client::try_from(config)?)
}

/// What the server says to attaching. No pod of these tests runs, so that it always refuses for some reason.
async fn refusal(client: &Client, method: Method, namespace: &str, pod: &str) -> Result<String> {
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/attach?stdout=true&container=reader");
    let request = Request::builder().method(method).uri(path).body(Vec::new())?;
    match client.request_text(request).await {
        Err(kube::Error::Api(status)) => Ok(status.message.clone()),
        Err(other) => Err(other.into()),
        Ok(text) => bail!("attached to a pod that does not run: {text}"),
    }
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_operator_attaches_to_its_own_readers_and_to_no_other_pod() -> Result<()> {
    let client = server().await?;
    apply(
        &client,
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
    )
    .await?;
    for object in render("codeworkspace", &[])? {
        let kind = object["kind"].as_str().context("an object without kind")?;
        if kind.contains("Role") || kind.starts_with("ValidatingAdmissionPolicy") {
            apply(&client, &object).await?;
        }
    }
    let namespace = namespace(&client, &[]).await?;
    // No controller makes it here.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}});
    apply(&client, &account).await?;
    for name in ["codeworkspace-reader-1", "codeworkspace-other"] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
            "spec": {"automountServiceAccountToken": false, "containers": [{"name": "reader", "image": "example/reader"}]}
        });
        apply(&client, &pod).await?;
    }
    let operator = operator().await?;
    let policy = "the operator attaches only to its own readers of volumes";
    // A WebSocket is a GET, and what clients did before a POST.
    for method in [Method::GET, Method::POST] {
        eventually("the policy is in force", async || {
            let other = refusal(&operator, method.clone(), &namespace, "codeworkspace-other").await?;
            Ok(other.contains(policy))
        })
        .await?;
        let reader = refusal(&operator, method.clone(), &namespace, "codeworkspace-reader-1").await?;
        assert!(
            reader.contains("does not have a host assigned"),
            "{method} of a reader is refused for another reason than that it does not run: {reader}"
        );
        let somebody = refusal(&client, method, &namespace, "codeworkspace-other").await?;
        assert!(
            !somebody.contains(policy),
            "the policy is about the operator alone: {somebody}"
        );
    }
    Ok(())
}
