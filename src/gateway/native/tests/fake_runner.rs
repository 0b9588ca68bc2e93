//! A runner that speaks the session protocol, with files in memory and code that only prints.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use codeworkspace_protocol::session::{ErrorCode, SessionError, path};
use futures::{StreamExt as _, stream};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What it was asked, and what it holds.
#[derive(Clone, Default)]
pub struct FakeRunner {
    /// Bodies of executions, commands and so on, by their verb's path.
    pub asked: Arc<Mutex<Vec<(String, Value)>>>,
    /// Its files.
    pub files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    /// Code goes on after its first line when this is told.
    pub go_on: Arc<Notify>,
}

type At = Query<BTreeMap<String, String>>;

impl FakeRunner {
    /// Serves at a port of its own.
    pub async fn serve(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route(path::EXECUTE, post(execute))
            .route(path::COMMAND, post(command))
            .route(path::TASKS, post(busy))
            .route(path::CANCEL, post(done))
            .route(path::LIST, get(list))
            .route(path::FILE, get(read).put(write))
            .route(path::FILES, axum::routing::put(unpack))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(self.clone());
        tokio::spawn(async { axum::serve(listener, router).await });
        address
    }

    fn note(&self, verb: &str, body: &Bytes) {
        let body = serde_json::from_slice(body).unwrap();
        self.asked.lock().unwrap().push((verb.to_owned(), body));
    }
}

fn line(event: &Value) -> Bytes {
    Bytes::from(format!("{event}\n"))
}

fn finished() -> Value {
    json!({
        "type": "finished", "outcome": "completed", "exitCode": 0, "executionTimeMs": 5,
        "stdout": {"totalBytes": 4}, "stderr": {"totalBytes": 0},
    })
}

async fn execute(State(runner): State<FakeRunner>, body: Bytes) -> Response {
    runner.note(path::EXECUTE, &body);
    let first = stream::once(async { line(&json!({"type": "output", "stream": "stdout", "text": "one\n"})) });
    let go_on = runner.go_on.clone();
    let last = stream::once(async move {
        go_on.notified().await;
        line(&finished())
    });
    Body::from_stream(first.chain(last).map(Ok::<_, Infallible>)).into_response()
}

/// Breaks off in the middle.
async fn command(State(runner): State<FakeRunner>, body: Bytes) -> Response {
    runner.note(path::COMMAND, &body);
    let events = [line(
        &json!({"type": "output", "stream": "stdout", "text": "one\n"}),
    )];
    Body::from_stream(stream::iter(events).map(Ok::<_, Infallible>)).into_response()
}

async fn busy() -> Response {
    let error = SessionError::new(ErrorCode::QueueFull, "16 calls wait already");
    (StatusCode::TOO_MANY_REQUESTS, axum::Json(error)).into_response()
}

async fn done(State(runner): State<FakeRunner>, body: Bytes) -> StatusCode {
    runner.note(path::CANCEL, &body);
    StatusCode::NO_CONTENT
}

async fn list(State(runner): State<FakeRunner>, Query(query): At) -> Response {
    let folder = format!("{}/", query.get("path").cloned().unwrap_or_default());
    let files = runner.files.lock().unwrap();
    let entries: Vec<_> = files
        .iter()
        .filter(|(path, _)| path.starts_with(&folder))
        .map(|(path, contents)| json!({"path": path, "kind": "file", "size": contents.len()}))
        .collect();
    if entries.is_empty() {
        return missing();
    }
    axum::Json(entries).into_response()
}

fn missing() -> Response {
    let error = SessionError::new(ErrorCode::NotFound, "there is nothing");
    (StatusCode::NOT_FOUND, axum::Json(error)).into_response()
}

async fn read(State(runner): State<FakeRunner>, Query(query): At) -> Response {
    match runner.files.lock().unwrap().get(&query["path"]) {
        Some(contents) => contents.clone().into_response(),
        None => missing(),
    }
}

async fn write(State(runner): State<FakeRunner>, Query(query): At, body: Bytes) -> Response {
    let written = json!({"files": 1, "bytes": body.len()});
    let mut files = runner.files.lock().unwrap();
    files.insert(query["path"].clone(), body.to_vec());
    axum::Json(written).into_response()
}

async fn unpack(State(runner): State<FakeRunner>, body: Bytes) -> Response {
    use std::io::Read as _;
    let mut archive = tar::Archive::new(body.as_ref());
    let mut files = runner.files.lock().unwrap();
    let (mut count, mut bytes) = (0, 0);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut contents = Vec::new();
        entry.read_to_end(&mut contents).unwrap();
        (count, bytes) = (count + 1, bytes + contents.len());
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        files.insert(path, contents);
    }
    axum::Json(json!({"files": count, "bytes": bytes})).into_response()
}
