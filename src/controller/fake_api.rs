//! A small API server for tests: it keeps objects in memory and counts what is written. It knows no admission, no schema and no
//! watch; what depends on those is tested against a real one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// The server's state, shared with its client.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeApi(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Value>,
    writes: Vec<String>,
    version: u64,
    refusals: Vec<(String, String)>,
    events: Vec<(String, String)>,
    reviews: BTreeMap<String, Value>,
}

impl FakeApi {
    /// A client of this server.
    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let body = if body.is_empty() {
                    Value::Null
                } else {
                    serde_json::from_slice(&body).unwrap()
                };
                let (status, answer) = server.answer(&parts.method, parts.uri.path(), body);
                let response = Response::builder()
                    .status(status)
                    .header("content-type", "application/json");
                Ok::<_, kube::Error>(
                    response
                        .body(Body::from(serde_json::to_vec(&answer).unwrap()))
                        .unwrap(),
                )
            }
        });
        Client::new(service, "default")
    }

    /// Puts an object in place without counting it.
    pub(crate) fn put(&self, path: &str, object: Value) {
        let mut state = self.0.lock().unwrap();
        let object = state.stamped(object);
        state.objects.insert(path.to_owned(), object);
    }

    /// The object at a path.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.0.lock().unwrap().objects.get(path).cloned()
    }

    /// Takes an object away without counting it.
    pub(crate) fn remove(&self, path: &str) {
        self.0.lock().unwrap().objects.remove(path);
    }

    /// All paths below a prefix.
    pub(crate) fn paths(&self, prefix: &str) -> Vec<String> {
        self.0
            .lock()
            .unwrap()
            .objects
            .keys()
            .filter(|path| path.starts_with(prefix))
            .cloned()
            .collect()
    }

    /// Every write so far, `METHOD path`, except events.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().writes)
    }

    /// The notes of all events with a reason.
    pub(crate) fn events(&self, reason: &str) -> Vec<String> {
        let state = self.0.lock().unwrap();
        let events = state.events.iter().filter(|(of, _)| of == reason);
        events.map(|(_, note)| note.clone()).collect()
    }

    /// Answers creations and patches whose path has this part with 403 and this message.
    pub(crate) fn refuse(&self, prefix: &str, message: &str) {
        self.0
            .lock()
            .unwrap()
            .refusals
            .push((prefix.to_owned(), message.to_owned()));
    }

    /// What a review of this token says.
    pub(crate) fn review(&self, token: &str, status: Value) {
        self.0.lock().unwrap().reviews.insert(token.to_owned(), status);
    }

    fn answer(&self, method: &Method, path: &str, body: Value) -> (StatusCode, Value) {
        let mut state = self.0.lock().unwrap();
        if path.contains("/events.k8s.io/") {
            let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
            state.events.push((text("reason"), text("note")));
            return (StatusCode::CREATED, body);
        }
        if method != Method::GET {
            state.writes.push(format!("{method} {path}"));
        }
        if matches!(*method, Method::POST | Method::PATCH)
            && let Some((_, message)) = state
                .refusals
                .iter()
                .find(|(part, _)| path.contains(part.as_str()))
        {
            return failure(StatusCode::FORBIDDEN, "Forbidden", message);
        }
        if path.ends_with("/tokenreviews") {
            let mut review = body;
            let token = review["spec"]["token"].as_str().unwrap_or_default();
            review["status"] = state
                .reviews
                .get(token)
                .cloned()
                .unwrap_or_else(|| json!({"authenticated": false}));
            return (StatusCode::CREATED, review);
        }
        match *method {
            Method::GET => match state.objects.get(path) {
                Some(object) => (StatusCode::OK, object.clone()),
                None if path.ends_with("/coderuns") => (StatusCode::OK, state.list(path)),
                None => failure(StatusCode::NOT_FOUND, "NotFound", path),
            },
            Method::POST => state.create(path, body),
            Method::PATCH if body.is_array() => state.patch(path, &body),
            Method::PATCH => state.apply(path, body),
            Method::DELETE => state.delete(path, &body["preconditions"]),
            _ => panic!("the fake API server does not know {method} {path}"),
        }
    }
}

impl State {
    fn list(&self, path: &str) -> Value {
        let prefix = format!("{path}/");
        let items: Vec<_> = self
            .objects
            .iter()
            .filter(|(path, _)| path.starts_with(&prefix))
            .map(|(_, object)| object)
            .collect();
        json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
    }

    fn create(&mut self, path: &str, body: Value) -> (StatusCode, Value) {
        let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
        if self.objects.contains_key(&path) {
            return failure(StatusCode::CONFLICT, "AlreadyExists", &path);
        }
        let object = self.stamped(body);
        self.objects.insert(path, object.clone());
        (StatusCode::CREATED, object)
    }

    fn apply(&mut self, path: &str, body: Value) -> (StatusCode, Value) {
        let (path, parts) = match path.strip_suffix("/status") {
            Some(path) => (path.to_owned(), vec!["status"]),
            None => (path.to_owned(), vec!["spec"]),
        };
        let Some(mut object) = self.objects.get(&path).cloned() else {
            let object = self.stamped(body);
            self.objects.insert(path, object.clone());
            return (StatusCode::CREATED, object);
        };
        let seen = &body["metadata"]["resourceVersion"];
        if !seen.is_null() && *seen != object["metadata"]["resourceVersion"] {
            return failure(StatusCode::CONFLICT, "Conflict", &path);
        }
        for part in parts {
            if !body[part].is_null() {
                object[part] = body[part].clone();
            }
        }
        let object = self.stamped(object);
        self.objects.insert(path, object.clone());
        (StatusCode::OK, object)
    }

    /// A JSON Patch as the API server takes it: a test of something absent for null passes.
    fn patch(&mut self, path: &str, operations: &Value) -> (StatusCode, Value) {
        let Some(mut object) = self.objects.get(path).cloned() else {
            return failure(StatusCode::NOT_FOUND, "NotFound", path);
        };
        for operation in operations.as_array().unwrap() {
            let at = operation["path"].as_str().unwrap();
            let there = object.pointer(at).cloned().unwrap_or_default();
            match operation["op"].as_str().unwrap() {
                "test" if there == operation["value"] => {}
                "test" => return failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", at),
                "add" | "replace" => {
                    let (parent, key) = at.rsplit_once('/').unwrap();
                    let key = key.replace("~1", "/").replace("~0", "~");
                    object.pointer_mut(parent).unwrap()[key] = operation["value"].clone();
                }
                other => panic!("the fake API server does not know the operation {other}"),
            }
        }
        let object = self.stamped(object);
        self.objects.insert(path.to_owned(), object.clone());
        (StatusCode::OK, object)
    }

    fn delete(&mut self, path: &str, preconditions: &Value) -> (StatusCode, Value) {
        let Some(object) = self.objects.get(path) else {
            return failure(StatusCode::NOT_FOUND, "NotFound", path);
        };
        for part in ["uid", "resourceVersion"] {
            let wanted = &preconditions[part];
            if !wanted.is_null() && object["metadata"][part] != *wanted {
                return failure(StatusCode::CONFLICT, "Conflict", path);
            }
        }
        let object = self.objects.remove(path).unwrap_or_default();
        (StatusCode::OK, object)
    }

    fn stamped(&mut self, mut object: Value) -> Value {
        self.version += 1;
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.version.to_string());
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{}", self.version));
        }
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        object
    }
}

fn failure(code: StatusCode, reason: &str, message: &str) -> (StatusCode, Value) {
    let answer = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16()
    });
    (code, answer)
}
