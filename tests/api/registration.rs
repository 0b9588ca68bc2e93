//! How a pod registers its key, with real tokens, roles and policies. Pods here have no node: nothing runs in them.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use axum::body::Body;
use codeworkspace_api::labels;
use codeworkspace_operator::controller::registration::{Peer, Registrar};
use codeworkspace_operator::metrics::Metrics;
use http::Request;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tower::ServiceExt as _;

use crate::claims::{account, prepared};
use crate::support::{RELEASE, server};

const ADDRESS: &str = "192.0.2.7";

fn digest(digit: &str) -> String {
    format!("sha256:{}", digit.repeat(64))
}

/// A pod that the operator made, and that looks as if it was being prepared.
async fn pod_in_preparation(operator: &Client, admin: &Client, namespace: &str, name: &str) -> Result<Pod> {
    let pod = serde_json::from_value(json!({
        "metadata": {
            "name": name,
            "labels": {
                labels::MANAGED_BY: labels::MANAGER, labels::CLASS: labels::CLASS_SESSION,
                labels::STATE: labels::STATE_WARM,
            },
            "annotations": {"kubectl.kubernetes.io/default-container": "session"},
        },
        "spec": {
            "automountServiceAccountToken": false, "serviceAccountName": "default",
            "initContainers": [{"name": "prepare", "image": "example/operator"}],
            "containers": [{"name": "session", "image": "example/interpreter"}],
        },
    }))?;
    let pods: Api<Pod> = Api::namespaced(operator.clone(), namespace);
    let made = pods.create(&PostParams::default(), &pod).await?;
    let status = json!({"status": {
        "phase": "Pending", "podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}],
        "initContainerStatuses": [{
            "name": "prepare", "image": "example/operator", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        }],
    }});
    Api::<Pod>::namespaced(admin.clone(), namespace)
        .patch_status(name, &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    Ok(made)
}

/// A token as the kubelet gets it for a pod.
async fn token(client: &Client, pod: &Pod, audience: &str) -> Result<String> {
    let namespace = pod.namespace().unwrap_or_default();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: vec![audience.to_owned()],
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name_any()),
                uid: pod.uid(),
            }),
            expiration_seconds: Some(600),
        },
        ..TokenRequest::default()
    };
    let made = accounts
        .create_token_request("default", &PostParams::default(), &request)
        .await?;
    Ok(made.status.context("a token request without a status")?.token)
}

async fn register(operator: &Client, peer: &str, token: &str, digest: &str) -> Result<u16> {
    let request = Request::post("/v1/register")
        .header("authorization", format!("Bearer {token}"))
        .body(Body::from(json!({"keyDigest": digest}).to_string()))?;
    let router = Registrar::new(operator.clone(), Arc::new(Metrics::default())).router(Peer(peer.parse()?));
    Ok(router.oneshot(request).await?.status().as_u16())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn a_pod_registers_one_key_by_its_own_token_from_its_own_address() -> Result<()> {
    let admin = server().await?;
    let namespace = prepared(&admin).await?;
    let operator = account(RELEASE).await?;
    let pod = pod_in_preparation(&operator, &admin, &namespace, "first").await?;
    let good = token(&admin, &pod, "codeworkspace-operator").await?;
    let for_others = token(&admin, &pod, "https://example.com").await?;
    for (token, peer, digest, status) in [
        (for_others.as_str(), ADDRESS, digest("a"), 401),
        ("nonsense", ADDRESS, digest("a"), 401),
        (&good, "192.0.2.8", digest("a"), 403),
        (&good, ADDRESS, digest("a"), 204),
        (&good, ADDRESS, digest("a"), 204),
        (&good, ADDRESS, digest("b"), 409),
    ] {
        let answer = register(&operator, peer, token, &digest).await?;
        ensure!(answer == status, "{peer} {digest}: {answer} instead of {status}");
    }
    let pods: Api<Pod> = Api::namespaced(admin, &namespace);
    let recorded = pods
        .get("first")
        .await?
        .annotations()
        .get(labels::KEY_DIGEST)
        .cloned();
    assert_eq!(recorded, Some(digest("a")));
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_operator_changes_nothing_of_a_pod_but_the_digest_of_its_key() -> Result<()> {
    let admin = server().await?;
    let namespace = prepared(&admin).await?;
    let operator = account(RELEASE).await?;
    pod_in_preparation(&operator, &admin, &namespace, "second").await?;
    let other = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": namespace},
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "body", "image": "example/body"}]},
    });
    crate::support::apply(&admin, &other).await?;
    let pods: Api<Pod> = Api::namespaced(operator, &namespace);
    let with_digest = json!({"metadata": {"annotations": {labels::KEY_DIGEST: digest("a")}}});
    for (pod, patch, told) in [
        ("other", with_digest.clone(), "only pods of sessions"),
        (
            "second",
            json!({"spec": {"containers": [{"name": "session", "image": "example/evil"}]}}),
            "nothing of a pod's spec",
        ),
        (
            "second",
            json!({"spec": {"activeDeadlineSeconds": 10}}),
            "nothing of a pod's spec",
        ),
        (
            "second",
            json!({"metadata": {"labels": {labels::STATE: labels::STATE_CLAIMED}}}),
            "nothing of a pod's metadata",
        ),
        (
            "second",
            json!({"metadata": {"annotations": {"example.com/more": "x"}}}),
            "nothing of a pod's metadata",
        ),
    ] {
        let refused = pods
            .patch(pod, &PatchParams::default(), &Patch::Strategic(&patch))
            .await;
        let message = refused.err().context(format!("{patch} was taken"))?.to_string();
        ensure!(message.contains(told), "{patch}: {message}");
    }
    pods.patch("second", &PatchParams::default(), &Patch::Strategic(&with_digest))
        .await?;
    let another = json!({"metadata": {"annotations": {labels::KEY_DIGEST: digest("b")}}});
    pods.patch("second", &PatchParams::default(), &Patch::Strategic(&another))
        .await
        .err()
        .context("another digest was taken")?;
    Ok(())
}
