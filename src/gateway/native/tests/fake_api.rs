//! An API server that reviews tokens and rights, and takes what the gateway writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::super::access::AUDIENCE;

/// The server's state, shared with its client.
#[derive(Clone, Default)]
pub struct FakeReviews(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    tokens: BTreeMap<String, (String, Vec<String>)>,
    permissions: BTreeSet<(String, String, String)>,
    asked: usize,
    broken: bool,
    written: Vec<Value>,
}

impl FakeReviews {
    /// A token of a user for our audience.
    pub fn knows(&self, token: &str, user: &str) {
        self.knows_for(token, user, &[AUDIENCE, "another"]);
    }

    /// A token of a user for these audiences.
    pub fn knows_for(&self, token: &str, user: &str, audiences: &[&str]) {
        let audiences = audiences.iter().map(|&audience| audience.to_owned()).collect();
        let mut state = self.0.lock().unwrap();
        state
            .tokens
            .insert(token.to_owned(), (user.to_owned(), audiences));
    }

    /// A token is worth nothing any more.
    pub fn forgets(&self, token: &str) {
        self.0.lock().unwrap().tokens.remove(token);
    }

    /// A user may do something in a namespace.
    pub fn permits(&self, user: &str, verb: &str, namespace: &str) {
        let mut state = self.0.lock().unwrap();
        state
            .permissions
            .insert((user.to_owned(), verb.to_owned(), namespace.to_owned()));
    }

    /// It fails from now on.
    pub fn breaks(&self) {
        self.0.lock().unwrap().broken = true;
    }

    /// Reviews that were asked for.
    pub fn asked(&self) -> usize {
        self.0.lock().unwrap().asked
    }

    /// Bodies of what was written, reviews apart.
    pub fn written(&self) -> Vec<Value> {
        self.0.lock().unwrap().written.clone()
    }

    /// A client of this server.
    pub fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let (status, answer) = server.answer(&parts.method, parts.uri.path(), body);
                let response = Response::builder()
                    .status(status)
                    .header("content-type", "application/json");
                let answer = serde_json::to_vec(&answer).unwrap();
                Ok::<_, kube::Error>(response.body(Body::from(answer)).unwrap())
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, method: &Method, path: &str, mut body: Value) -> (StatusCode, Value) {
        let mut state = self.0.lock().unwrap();
        if state.broken {
            return failure(StatusCode::INTERNAL_SERVER_ERROR, "etcd is away");
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match (method, path.rsplit('/').next().unwrap()) {
            (&Method::POST, "tokenreviews") => {
                state.asked += 1;
                assert_eq!(body["spec"]["audiences"], json!([AUDIENCE]));
                let token = text(&body["spec"]["token"]);
                body["status"] = match state.tokens.get(&token) {
                    Some((user, audiences)) => json!({
                        "authenticated": true, "audiences": audiences,
                        "user": {"username": user, "uid": format!("uid-{user}"), "groups": ["all"]},
                    }),
                    None => json!({"authenticated": false, "error": "invalid bearer token"}),
                };
                (StatusCode::CREATED, body)
            }
            (&Method::POST, "subjectaccessreviews") => {
                state.asked += 1;
                let wanted = &body["spec"]["resourceAttributes"];
                assert_eq!(wanted["resource"], "codesessions");
                let key = (
                    text(&body["spec"]["user"]),
                    text(&wanted["verb"]),
                    text(&wanted["namespace"]),
                );
                let allowed = state.permissions.contains(&key);
                body["status"] = json!({"allowed": allowed});
                (StatusCode::CREATED, body)
            }
            (&Method::POST, _) => {
                body["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
                body["metadata"]["resourceVersion"] = json!("1");
                state.written.push(body.clone());
                (StatusCode::CREATED, body)
            }
            (&Method::PATCH, _) => {
                state.written.push(body);
                let session = super::session("stopped");
                (StatusCode::OK, serde_json::to_value(session).unwrap())
            }
            _ => failure(StatusCode::NOT_FOUND, path),
        }
    }
}

fn failure(code: StatusCode, message: &str) -> (StatusCode, Value) {
    let reason = match code {
        StatusCode::NOT_FOUND => "NotFound",
        _ => "InternalError",
    };
    let answer = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16()
    });
    (code, answer)
}
