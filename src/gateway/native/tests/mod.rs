//! The whole API, in front of a fake API server and a fake runner.

pub mod fake_api;
mod fake_runner;
mod verbs;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use codeworkspace_api::{CodeInterpreter, CodeSession};
use codeworkspace_source::ManualClock;
use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{reflector, watcher};
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{Native, router};
use crate::controller::Readable;
use crate::gateway::configuration::Limits;
use crate::gateway::index::{Index, SessionPod};
use crate::gateway::rates::Rates;
use crate::gateway::runner::Runner;
use crate::gateway::runners::Runners;
use crate::gateway::sessions::Sessions;
use crate::gateway::watch::Watched;
use fake_api::FakeReviews;
use fake_runner::FakeRunner;

/// The paths of the interpreter's sessions, and of the one that is open.
const SESSIONS: &str = "/v1/namespaces/team/interpreters/data/sessions";
const OPEN: &str = "/v1/namespaces/team/interpreters/data/sessions/open1";

#[derive(Debug)]
struct NoIdentity;

impl ResolvesClientCert for NoIdentity {
    fn resolve(&self, _issuers: &[&[u8]], _schemes: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

struct Stage {
    router: Router,
    api: FakeReviews,
    runner: FakeRunner,
}

fn session(name: &str) -> CodeSession {
    serde_json::from_value(json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeSession",
        "metadata": {
            "name": name, "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "1",
            "annotations": {"codeworkspace.dev/requested-by": "alice"},
        },
        "spec": {
            "interpreterRef": {"name": "data"}, "timeoutSeconds": 900, "parametersDigest": "x",
            "podName": format!("pod-{name}"),
        },
    }))
    .unwrap()
}

fn ended(name: &str) -> CodeSession {
    let mut session = session(name);
    session.status = serde_json::from_value(json!({
        "state": "Terminated", "reason": "IdleTimeout", "endedAt": "2026-01-01T01:00:00Z",
    }))
    .unwrap();
    session
}

fn interpreter() -> CodeInterpreter {
    serde_json::from_value(json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeInterpreter",
        "metadata": {"name": "data", "namespace": "team", "uid": "u-1"},
        "spec": {},
        "status": {"template": "interpreter", "languages": ["python"]},
    }))
    .unwrap()
}

fn pod(session: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": format!("pod-{session}"), "namespace": "team", "uid": format!("uid-{session}"),
            "labels": {
                "codeworkspace.dev/class": "session", "codeworkspace.dev/template": "interpreter",
                "codeworkspace.dev/state": "claimed", "codeworkspace.dev/session": session,
            },
            "annotations": {"codeworkspace.dev/key-digest": "sha256:aa"},
        },
        "status": {
            "podIP": "127.0.0.1", "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }))
    .unwrap()
}

fn filled<K>(objects: Vec<K>) -> reflector::Store<Readable<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&watcher::Event::Init);
    for object in objects {
        writer.apply_watcher_event(&watcher::Event::InitApply(Readable(Ok(object))));
    }
    writer.apply_watcher_event(&watcher::Event::InitDone);
    store
}

/// The API with one open session and one that has ended. Alice may do everything in her namespace, Bob only look.
async fn stage() -> Stage {
    let (api, runner) = (FakeReviews::default(), FakeRunner::default());
    api.knows("alice-token", "alice");
    api.knows("bob-token", "bob");
    for verb in ["create", "get", "list", "delete"] {
        api.permits("alice", verb, "team");
    }
    api.permits("bob", "get", "team");
    let clock = Arc::new(ManualClock::new("2026-01-01T00:10:00Z".parse().unwrap()));
    let index = Arc::new(Index::default());
    let open = pod("open1");
    index.apply(&open);
    let limits = Limits::default();
    let watched = Watched {
        index: index.clone(),
        keys: Arc::default(),
        interpreters: filled(vec![interpreter()]),
        sessions: filled(vec![session("open1"), ended("ended1")]),
    };
    let sessions = Sessions::new(api.client(), &watched, clock.clone(), &limits);
    let runners = Runners::new(Arc::new(NoIdentity), index);
    runners.know(
        &SessionPod::read(&open).unwrap(),
        Runner::plain(runner.serve().await),
    );
    let native = Native::new(
        api.client(),
        sessions,
        runners,
        Arc::new(Rates::new(&limits)),
        clock,
    );
    Stage {
        router: router(native),
        api,
        runner,
    }
}

fn request(method: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", "Bearer alice-token")
}

fn with_json(method: &str, path: &str, body: &Value) -> Request<Body> {
    let request = request(method, path).header("content-type", "application/json");
    request.body(Body::from(body.to_string())).unwrap()
}

fn without_body(method: &str, path: &str) -> Request<Body> {
    request(method, path).body(Body::empty()).unwrap()
}

impl Stage {
    async fn send(&self, request: Request<Body>) -> axum::response::Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// The status and the JSON of an answer.
    async fn call(&self, request: Request<Body>) -> (StatusCode, Value) {
        let response = self.send(request).await;
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX)
            .await
            .unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// The status and the code of a refusal.
    async fn refusal(&self, request: Request<Body>) -> (u16, String) {
        let (status, body) = self.call(request).await;
        assert_eq!(body["status"], status.as_u16(), "{body}");
        (status.as_u16(), body["code"].as_str().unwrap().to_owned())
    }
}
