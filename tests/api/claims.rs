//! Who gets which pod, against a real API server with the real roles and policies. Pods here have no node: nothing runs in them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use codeworkspace_api::{CodeInterpreter, CodeSession, labels};
use codeworkspace_operator::gateway::configuration::Limits;
use codeworkspace_operator::gateway::sessions::{InterpreterKey, NewSession, Sessions, SessionsError};
use codeworkspace_operator::gateway::watch::Watched;
use codeworkspace_source::SystemClock;
use futures::future::{join_all, try_join_all};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{NAMESPACE, RELEASE, apply, eventually, namespace, render, server};

/// A process of ours, as the API server sees it.
pub async fn account(name: &str) -> Result<Client> {
    let mut config = Config::infer().await?;
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{NAMESPACE}:{name}"));
    Ok(Client::try_from(config)?)
}

/// Roles and policies are there, and `namespace` can have pods.
pub async fn prepared(client: &Client) -> Result<String> {
    let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    apply(client, &system).await?;
    for object in render("codeworkspace", &[])? {
        let kind = object["kind"].as_str().context("an object without kind")?;
        if kind.contains("Role") || kind.starts_with("ValidatingAdmissionPolicy") {
            apply(client, &object).await?;
        }
    }
    let namespace = namespace(client, &[]).await?;
    // No controller makes it here.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}});
    apply(client, &account).await?;
    Ok(namespace)
}

fn pod(name: &str) -> Result<Pod> {
    Ok(serde_json::from_value(json!({
        "metadata": {
            "name": name,
            "labels": {
                labels::CLASS: labels::CLASS_SESSION, labels::TEMPLATE: "interpreter", labels::STATE: labels::STATE_WARM,
            },
            "annotations": {labels::KEY_DIGEST: format!("sha256:{}", "0".repeat(64))},
        },
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "session", "image": "example/interpreter"}]},
    }))?)
}

/// A pod that looks as if it ran.
async fn warm_pod(operator: &Client, admin: &Client, namespace: &str, name: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(operator.clone(), namespace);
    pods.create(&PostParams::default(), &pod(name)?).await?;
    let status = json!({"status": {
        "phase": "Running", "podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}], "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    Api::<Pod>::namespaced(admin.clone(), namespace)
        .patch_status(name, &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    Ok(())
}

/// An interpreter that its controller has looked at.
async fn interpreter(client: &Client, namespace: &str) -> Result<()> {
    let object = json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeInterpreter",
        "metadata": {"name": "aws-codeinterpreter-v1", "namespace": namespace}, "spec": {},
    });
    apply(client, &object).await?;
    let status =
        json!({"status": {"observedGeneration": 1, "template": "interpreter", "languages": ["python"]}});
    Api::<CodeInterpreter>::namespaced(client.clone(), namespace)
        .patch_status(
            "aws-codeinterpreter-v1",
            &PatchParams::default(),
            &Patch::Merge(&status),
        )
        .await?;
    Ok(())
}

/// A gateway without its sockets.
async fn gateway(stop: &CancellationToken) -> Result<Sessions> {
    let client = account(&format!("{RELEASE}-gateway")).await?;
    let (watched, _) = Watched::start(&client, NAMESPACE, stop).await?;
    let limits = Limits {
        start_patience_seconds: 20,
        ..Limits::default()
    };
    Ok(Sessions::new(client, &watched, Arc::new(SystemClock), &limits))
}

fn wanted(token: &str) -> NewSession {
    NewSession {
        interpreter: default_interpreter(),
        name: Some("agent".to_owned()),
        timeout_seconds: Some(600),
        client_token: token.to_owned(),
        requested_by: None,
    }
}

fn default_interpreter() -> InterpreterKey {
    InterpreterKey::Identifier("aws.codeinterpreter.v1".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an API server: cargo xtask test api"]
async fn two_gateways_with_the_same_tokens_give_each_session_one_pod_and_each_pod_one_session() -> Result<()>
{
    const SESSIONS: usize = 200;
    let admin = server().await?;
    let tenant = prepared(&admin).await?;
    interpreter(&admin, &tenant).await?;
    let operator = account(RELEASE).await?;
    for chunk in (0..SESSIONS + 10).collect::<Vec<_>>().chunks(20) {
        let pods = chunk
            .iter()
            .map(|index| format!("pod-{index}"))
            .collect::<Vec<_>>();
        try_join_all(pods.iter().map(|name| warm_pod(&operator, &admin, &tenant, name))).await?;
    }
    let stop = CancellationToken::new();
    let gateways = [gateway(&stop).await?, gateway(&stop).await?];
    let tokens: Vec<_> = (0..SESSIONS).map(|index| format!("token-{index:032}")).collect();
    // Each call arrives at both, as when a client gives up on one and calls again.
    let calls = tokens
        .iter()
        .flat_map(|token| gateways.iter().map(move |gateway| (token, gateway)))
        .map(|(token, gateway)| {
            let tenant = &tenant;
            async move {
                let session = gateway.start(tenant, &wanted(token)).await?;
                let pod = session.pod.context("a session without a pod")?;
                anyhow::Ok((token.clone(), session.object.name_any(), pod.name))
            }
        });
    let mut sessions: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for started in join_all(calls).await {
        let (token, session, pod) = started?;
        sessions.entry(token).or_default().insert((session, pod));
    }
    assert_eq!(sessions.len(), SESSIONS);
    assert!(
        sessions.values().all(|answers| answers.len() == 1),
        "both gateways answer the same: {sessions:?}"
    );
    let pods = Api::<Pod>::namespaced(admin.clone(), &tenant)
        .list(&ListParams::default())
        .await?
        .items;
    let claimed: Vec<_> = pods
        .iter()
        .filter_map(|pod| pod.labels().get(labels::SESSION))
        .collect();
    let distinct: BTreeSet<_> = claimed.iter().collect();
    assert_eq!((claimed.len(), distinct.len()), (SESSIONS, SESSIONS));
    let objects = Api::<CodeSession>::namespaced(admin, &tenant)
        .list(&ListParams::default())
        .await?
        .items;
    assert_eq!(objects.len(), SESSIONS);
    for pod in pods
        .iter()
        .filter(|pod| pod.labels().contains_key(labels::SESSION))
    {
        let deadline = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.active_deadline_seconds)
            .context("a claimed pod without an end")?;
        assert!(
            deadline > 600,
            "the pod's age comes on top of the session's time: {deadline}"
        );
    }
    stop.cancel();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an API server: cargo xtask test api"]
async fn a_session_that_finds_no_pod_gets_the_next_one_that_becomes_ready() -> Result<()> {
    let admin = server().await?;
    let tenant = prepared(&admin).await?;
    interpreter(&admin, &tenant).await?;
    let operator = account(RELEASE).await?;
    let stop = CancellationToken::new();
    let gateway = gateway(&stop).await?;
    let token = "a".repeat(40);
    let call = wanted(&token);
    let starting = gateway.start(&tenant, &call);
    let sessions: Api<CodeSession> = Api::namespaced(admin.clone(), &tenant);
    let later = async {
        eventually("the session waits", async || {
            Ok(!sessions.list(&ListParams::default()).await?.items.is_empty())
        })
        .await?;
        warm_pod(&operator, &admin, &tenant, "late").await
    };
    let (session, later) = tokio::join!(starting, later);
    later?;
    let session = session?;
    assert_eq!(session.pod.as_ref().map(|pod| pod.name.as_str()), Some("late"));
    let other = NewSession {
        timeout_seconds: Some(60),
        ..wanted(&token)
    };
    let refused = gateway.start(&tenant, &other).await;
    assert!(matches!(refused, Err(SessionsError::TokenReused)), "{refused:?}");
    let id = session.object.name_any();
    assert!(gateway.stop(&session, "one").await?);
    let stopped = gateway.active(&tenant, &default_interpreter(), &id).await;
    eventually("the stop is seen", async || {
        let active = gateway.active(&tenant, &default_interpreter(), &id).await;
        Ok(active.is_err_and(|error| error.to_string() == format!("session {id} is not active (Stopped)")))
    })
    .await
    .with_context(|| format!("{:?}", stopped.err()))?;
    let session = gateway.find(&tenant, &default_interpreter(), &id).await?;
    assert!(gateway.stop(&session, "one").await?, "the same stop again");
    assert!(!gateway.stop(&session, "two").await?, "another stop");
    stop.cancel();
    Ok(())
}

/// What the server says to the gateway's patch of a pod.
async fn said(gateway: &Client, namespace: &str, name: &str, patch: &Value) -> Result<Option<String>> {
    let pods: Api<Pod> = Api::namespaced(gateway.clone(), namespace);
    let parameters = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    match pods.patch(name, &parameters, &Patch::Merge(patch)).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
        Err(other) => Err(other.into()),
    }
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_gateway_can_claim_a_warm_pod_and_do_nothing_else_to_any_pod() -> Result<()> {
    let admin = server().await?;
    let namespace = prepared(&admin).await?;
    let operator = account(RELEASE).await?;
    warm_pod(&operator, &admin, &namespace, "warm").await?;
    let plain = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "somebodys", "namespace": namespace},
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "example/c"}]},
    });
    apply(&admin, &plain).await?;
    let gateway = account(&format!("{RELEASE}-gateway")).await?;
    let claim = json!({
        "metadata": {"labels": {labels::STATE: labels::STATE_CLAIMED, labels::SESSION: "s1"}},
        "spec": {"activeDeadlineSeconds": 100},
    });
    eventually("the policy is in force", async || {
        let refused = said(&gateway, &namespace, "somebodys", &claim).await?;
        Ok(refused.is_some_and(|message| message.contains("only pods of sessions that nobody has claimed")))
    })
    .await?;
    assert_eq!(said(&gateway, &namespace, "warm", &claim).await?, None);
    let with = |extra: Value| {
        let mut patch = claim.clone();
        json_patch::merge(&mut patch, &extra);
        patch
    };
    let refusals = [
        (
            "changes a pod only to claim it",
            json!({"metadata": {"labels": {"codeworkspace.dev/session": "s1"}}}),
        ),
        (
            "nothing of a pod's spec but activeDeadlineSeconds",
            with(json!({"spec": {"containers": [{"name": "session", "image": "example/other"}]}})),
        ),
        (
            "nothing of a pod's metadata but the labels",
            with(json!({"metadata": {"annotations": {"codeworkspace.dev/key-digest": "sha256:mine"}}})),
        ),
        (
            "nothing of a pod's metadata but the labels",
            with(json!({"metadata": {"labels": {"codeworkspace.dev/class": "run"}}})),
        ),
        (
            "nothing of a pod's metadata but the labels",
            with(json!({"metadata": {"finalizers": ["example.com/keep"]}})),
        ),
        (
            "claims no pod without an end",
            json!({"metadata": {"labels": {labels::STATE: labels::STATE_CLAIMED, labels::SESSION: "s1"}}}),
        ),
    ];
    for (expected, patch) in refusals {
        let message = said(&gateway, &namespace, "warm", &patch)
            .await?
            .with_context(|| format!("allowed: {patch}"))?;
        ensure!(message.contains(expected), "{patch}: {message}");
    }
    // Once claimed it is nobody's to change.
    let pods: Api<Pod> = Api::namespaced(gateway.clone(), &namespace);
    pods.patch("warm", &PatchParams::default(), &Patch::Merge(&claim))
        .await?;
    let longer = with(json!({"metadata": {"labels": {labels::SESSION: "s2"}}}));
    assert!(said(&gateway, &namespace, "warm", &longer).await?.is_some());
    let created = pods.create(&PostParams::default(), &pod("mine")?).await;
    assert!(created.is_err(), "the gateway makes no pods");
    assert!(
        pods.delete("warm", &kube::api::DeleteParams::default())
            .await
            .is_err()
    );
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn nobody_else_writes_our_labels_on_pods() -> Result<()> {
    let admin = server().await?;
    let namespace = prepared(&admin).await?;
    let operator = account(RELEASE).await?;
    let pods: Api<Pod> = Api::namespaced(admin.clone(), &namespace);
    let refusal =
        "only the operator writes labels and annotations below codeworkspace.dev/ on pods: leave out ";
    eventually("the policy is in force", async || {
        let parameters = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let created = pods.create(&parameters, &pod("forged")?).await;
        Ok(created.is_err_and(|error| error.to_string().contains(refusal)))
    })
    .await?;
    warm_pod(&operator, &admin, &namespace, "warm").await?;
    for patch in [
        json!({"metadata": {"labels": {labels::STATE: labels::STATE_CLAIMED}}}),
        json!({"metadata": {"labels": {labels::CLASS: null}}}),
        json!({"metadata": {"annotations": {labels::KEY_DIGEST: "sha256:mine"}}}),
    ] {
        let message = said(&admin, &namespace, "warm", &patch)
            .await?
            .with_context(|| format!("allowed: {patch}"))?;
        ensure!(message.contains(refusal), "{message}");
    }
    let harmless = json!({"metadata": {"labels": {"team": "data"}}});
    assert_eq!(said(&admin, &namespace, "warm", &harmless).await?, None);
    Ok(())
}
