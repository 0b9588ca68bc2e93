use std::sync::Arc;

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::controller::FakeApi;

const POD: &str = "/api/v1/namespaces/team-a/pods/codeworkspace-session-1";

fn digest(digit: &str) -> String {
    format!("sha256:{}", digit.repeat(64))
}

struct Story {
    api: FakeApi,
    metrics: Arc<Metrics>,
}

impl Story {
    /// A pod that is being prepared, whose token is `token`.
    fn new() -> Self {
        let api = FakeApi::default();
        api.review(
            "token",
            json!({
                "authenticated": true, "audiences": ["codeworkspace-operator"],
                "user": {
                    "username": "system:serviceaccount:team-a:default",
                    "extra": {
                        "authentication.kubernetes.io/pod-name": ["codeworkspace-session-1"],
                        "authentication.kubernetes.io/pod-uid": ["uid-1"]
                    }
                }
            }),
        );
        api.put(
            POD,
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": "codeworkspace-session-1", "namespace": "team-a", "uid": "uid-1",
                    "labels": {
                        "app.kubernetes.io/managed-by": "codeworkspace-operator", "codeworkspace.dev/class": "session"
                    },
                    "annotations": {"kubectl.kubernetes.io/default-container": "session"}
                },
                "status": {
                    "podIP": "10.0.0.7",
                    "initContainerStatuses": [{
                        "name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                        "state": {"running": {}}
                    }]
                }
            }),
        );
        Self {
            api,
            metrics: Arc::default(),
        }
    }

    async fn register(&self, token: Option<&str>, body: impl Into<Body>) -> u16 {
        let mut request = Request::post("/v1/register");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let router =
            Registrar::new(self.api.client(), self.metrics.clone()).router(Peer("10.0.0.7".parse().unwrap()));
        let response = router.oneshot(request.body(body.into()).unwrap()).await.unwrap();
        response.status().as_u16()
    }

    fn recorded(&self) -> Value {
        self.api.get(POD).unwrap()["metadata"]["annotations"][labels::KEY_DIGEST].clone()
    }
}

fn body(digest: &str) -> String {
    json!({"keyDigest": digest}).to_string()
}

#[tokio::test]
async fn a_key_is_recorded_once_and_telling_it_again_changes_nothing() {
    let story = Story::new();
    assert_eq!(story.register(Some("token"), body(&digest("a"))).await, 204);
    assert_eq!(story.recorded(), digest("a"));
    assert_eq!(story.register(Some("token"), body(&digest("a"))).await, 204);
    assert_eq!(story.register(Some("token"), body(&digest("b"))).await, 409);
    assert_eq!(story.recorded(), digest("a"));
    let text = story.metrics.text().unwrap();
    for line in [
        "codeworkspace_registrations_total{result=\"registered\"} 1",
        "codeworkspace_registrations_total{result=\"repeated\"} 1",
        "codeworkspace_registrations_total{result=\"other-key\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn without_a_good_token_nothing_is_read_or_written() {
    let story = Story::new();
    assert_eq!(story.register(None, body(&digest("a"))).await, 401);
    assert_eq!(story.register(Some("other"), body(&digest("a"))).await, 401);
    assert_eq!(story.recorded(), Value::Null);
}

#[tokio::test]
async fn a_request_that_means_nothing_is_not_shown_to_the_api_server() {
    let story = Story::new();
    for body in [
        "",
        "{",
        "{}",
        r#"{"keyDigest": "sha256:00"}"#,
        r#"{"keyDigest": 7}"#,
    ] {
        assert_eq!(story.register(Some("token"), body).await, 400, "{body}");
    }
    assert_eq!(story.register(Some("token"), "x".repeat(2000)).await, 413);
    assert_eq!(story.api.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_is_a_reason_to_try_again() {
    let story = Story::new();
    story.api.refuse("tokenreviews", "the operator may not");
    assert_eq!(story.register(Some("token"), body(&digest("a"))).await, 503);
}
