use std::convert::Infallible;

use axum::body::Bytes;
use codeworkspace_protocol::session::path;
use futures::{StreamExt as _, stream};

use super::*;

#[tokio::test]
async fn who_has_no_token_or_no_right_gets_nowhere() {
    let stage = stage().await;
    let anonymous = Request::builder().uri(OPEN).body(Body::empty()).unwrap();
    assert_eq!(
        stage.refusal(anonymous).await,
        (401, "Unauthenticated".to_owned())
    );
    let as_bob = |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("authorization", "Bearer bob-token");
        request.body(Body::empty()).unwrap()
    };
    assert_eq!(stage.call(as_bob("GET", OPEN)).await.0, StatusCode::OK);
    for (method, path) in [
        ("GET", SESSIONS.to_owned()),
        ("POST", SESSIONS.to_owned()),
        ("DELETE", OPEN.to_owned()),
        ("POST", format!("{OPEN}/execute")),
        ("GET", format!("{OPEN}/file?path=a")),
        ("PUT", format!("{OPEN}/inputs/a")),
        ("POST", "/mcp/team/data".to_owned()),
    ] {
        let refused = stage.refusal(as_bob(method, &path)).await;
        assert_eq!(refused, (403, "Forbidden".to_owned()), "{method} {path}");
    }
    stage.api.breaks();
    let unknown = as_bob("GET", &format!("{SESSIONS}/ended1"));
    assert_eq!(
        stage.refusal(unknown).await,
        (503, "ApiServerUnavailable".to_owned())
    );
}

#[tokio::test]
async fn each_refusal_says_what_is_wrong() {
    let stage = stage().await;
    let code = json!({"code": "1"});
    let cases = [
        (without_body("GET", "/v1/nothing"), 404, "NotFound"),
        (without_body("PATCH", OPEN), 405, "MethodNotAllowed"),
        (
            without_body("GET", "/v1/namespaces/team/interpreters/none/sessions"),
            404,
            "InterpreterNotFound",
        ),
        (
            without_body("GET", "/v1/namespaces/team/interpreters/..%2Fdata/sessions"),
            404,
            "InterpreterNotFound",
        ),
        (
            without_body("GET", &format!("{SESSIONS}/none")),
            404,
            "SessionNotFound",
        ),
        (
            without_body("GET", &format!("{SESSIONS}/..%2F..%2Fpods")),
            404,
            "SessionNotFound",
        ),
        (
            with_json("POST", &format!("{SESSIONS}/ended1/execute"), &code),
            410,
            "SessionEnded",
        ),
        (
            with_json("POST", &format!("{OPEN}/execute"), &json!({"cod": "1"})),
            400,
            "InvalidRequest",
        ),
        (
            with_json(
                "POST",
                &format!("{OPEN}/execute"),
                &json!({"code": "1", "timeoutMs": 0}),
            ),
            400,
            "InvalidRequest",
        ),
        (
            with_json(
                "POST",
                &format!("{OPEN}/execute"),
                &json!({"code": "1", "language": "javascript"}),
            ),
            404,
            "UnknownKernel",
        ),
        (
            with_json(
                "POST",
                &format!("{OPEN}/command"),
                &json!({"command": "a", "timeoutMs": 28_800_001}),
            ),
            400,
            "InvalidRequest",
        ),
        (
            with_json("POST", &format!("{OPEN}/tasks"), &json!({"command": "a"})),
            429,
            "QueueFull",
        ),
        (
            without_body("GET", &format!("{OPEN}/tasks/..%2Fstatus")),
            404,
            "UnknownTask",
        ),
        (
            without_body("GET", &format!("{OPEN}/file")),
            400,
            "InvalidRequest",
        ),
        (
            without_body("GET", &format!("{OPEN}/file?path=none")),
            404,
            "NotFound",
        ),
        (
            without_body("GET", &format!("{SESSIONS}?maxResults=0")),
            400,
            "InvalidRequest",
        ),
        (
            with_json("POST", SESSIONS, &json!({"sessionTimeoutSeconds": 99_999})),
            400,
            "InvalidRequest",
        ),
    ];
    for (request, status, code) in cases {
        let told = format!("{} {}", request.method(), request.uri());
        assert_eq!(stage.refusal(request).await, (status, code.to_owned()), "{told}");
    }
}

#[tokio::test]
async fn sessions_are_told_as_they_stand() {
    let stage = stage().await;
    let (_, open) = stage.call(without_body("GET", OPEN)).await;
    let told = json!({
        "id": "open1", "interpreter": "data", "state": "Ready", "createdAt": "2026-01-01T00:00:00Z",
        "sessionTimeoutSeconds": 900, "requestedBy": "alice",
    });
    assert_eq!(open, told);
    let (_, all) = stage.call(without_body("GET", SESSIONS)).await;
    let ended = json!({
        "id": "ended1", "interpreter": "data", "state": "Terminated", "reason": "IdleTimeout",
        "createdAt": "2026-01-01T00:00:00Z", "sessionTimeoutSeconds": 900, "endedAt": "2026-01-01T01:00:00Z",
        "requestedBy": "alice",
    });
    assert_eq!(all, json!({"items": [ended, told]}));
    let (_, first) = stage
        .call(without_body("GET", &format!("{SESSIONS}?maxResults=1")))
        .await;
    let token = first["nextToken"].as_str().unwrap();
    let rest = format!("{SESSIONS}?maxResults=1&nextToken={token}");
    let (_, rest) = stage.call(without_body("GET", &rest)).await;
    assert_eq!(
        (&first["items"][0]["id"], &rest["items"][0]["id"]),
        (&json!("ended1"), &json!("open1"))
    );
    assert_eq!(rest.get("nextToken"), None);
}

#[tokio::test]
async fn stopping_marks_the_session_and_an_ended_one_stays_as_it_is() {
    let stage = stage().await;
    assert_eq!(
        stage.call(without_body("DELETE", OPEN)).await.0,
        StatusCode::NO_CONTENT
    );
    assert_eq!(stage.api.written()[0]["spec"], json!({"stop": true}));
    let ended = format!("{SESSIONS}/ended1");
    assert_eq!(
        stage.call(without_body("DELETE", &ended)).await.0,
        StatusCode::NO_CONTENT
    );
    assert_eq!(stage.api.written().len(), 1);
}

#[tokio::test]
async fn output_arrives_before_the_code_has_ended() {
    let stage = stage().await;
    let call = request("POST", &format!("{OPEN}/execute"))
        .header("content-type", "application/json")
        .header("idempotency-key", "call-1")
        .body(Body::from(
            r#"{"code": "print('one')", "timeoutMs": 5000, "environment": {"A": "b"}}"#,
        ))
        .unwrap();
    let response = stage.send(call).await;
    assert_eq!(response.headers()["execution-id"], "call-1");
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body().into_data_stream();
    let first = body.next().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: output\nid: 1\n"), "{first:?}");
    stage.runner.go_on.notify_one();
    let rest = body.next().await.unwrap().unwrap();
    assert!(rest.starts_with(b"event: finished\nid: 2\n"), "{rest:?}");
    assert!(body.next().await.is_none());
    let asked = stage.runner.asked.lock().unwrap().clone();
    let told = json!({
        "invocation": "call-1", "kernel": "python3", "code": "print('one')", "clearContext": false,
        "timeoutMs": 5000, "environment": {"A": "b"},
    });
    assert_eq!(asked, [(path::EXECUTE.to_owned(), told)]);
}

#[tokio::test]
async fn a_command_has_a_time_limit_and_its_broken_stream_ends_with_a_problem() {
    let stage = stage().await;
    let command = with_json("POST", &format!("{OPEN}/command"), &json!({"command": "make"}));
    let body = stage.send(command).await.into_body();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let (_, problem) = body.split_once("event: problem\nid: 2\ndata: ").unwrap();
    let problem: Value = serde_json::from_str(problem).unwrap();
    assert_eq!(problem["code"], "NoAnswer");
    assert_eq!(stage.runner.asked.lock().unwrap()[0].1["timeoutMs"], 30_000);
}

#[tokio::test]
async fn an_execution_is_cancelled_by_its_id() {
    let stage = stage().await;
    let cancel = without_body("POST", &format!("{OPEN}/executions/call-1/cancel"));
    assert_eq!(stage.call(cancel).await.0, StatusCode::NO_CONTENT);
    let asked = stage.runner.asked.lock().unwrap().clone();
    assert_eq!(
        asked,
        [(path::CANCEL.to_owned(), json!({"invocation": "call-1"}))]
    );
}

#[tokio::test]
async fn staged_inputs_are_told_to_everything_that_runs_after_them() {
    let stage = stage().await;
    let inputs = json!({"inputs": [{"name": "rows.csv", "text": "a\n"}, {"name": "raw", "bytes": "AP8="}]});
    let (status, staged) = stage
        .call(with_json("POST", &format!("{OPEN}/inputs"), &inputs))
        .await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        staged,
        json!([
            {"name": "raw", "path": "/workspace/.inputs/raw", "bytes": 2},
            {"name": "rows.csv", "path": "/workspace/.inputs/rows.csv", "bytes": 2},
        ])
    );
    let one = request("PUT", &format!("{OPEN}/inputs/a%20%23%25%3F"))
        .body(Body::from("x"))
        .unwrap();
    let (_, one) = stage.call(one).await;
    assert_eq!(
        one,
        json!({"name": "a #%?", "path": "/workspace/.inputs/a #%?", "bytes": 1})
    );
    stage.runner.go_on.notify_one();
    let code = with_json("POST", &format!("{OPEN}/execute"), &json!({"code": "1"}));
    stage.send(code).await;
    stage
        .send(with_json(
            "POST",
            &format!("{OPEN}/command"),
            &json!({"command": "ls"}),
        ))
        .await;
    let asked = stage.runner.asked.lock().unwrap().clone();
    for (_, request) in asked {
        let variable = request["environment"]["AF_STAGED_INPUTS"].as_str().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(variable).unwrap(),
            json!({
                "a #%?": "/workspace/.inputs/a #%?", "raw": "/workspace/.inputs/raw",
                "rows.csv": "/workspace/.inputs/rows.csv",
            })
        );
    }
}

#[tokio::test]
async fn files_pass_through_in_both_directions_with_their_size() {
    let stage = stage().await;
    let parts = (0..40).map(|number| Ok::<_, Infallible>(Bytes::from(vec![number; 1_000_000])));
    let body = Body::from_stream(stream::iter(parts));
    let upload = request("PUT", &format!("{OPEN}/file?path=big%20one"))
        .body(body)
        .unwrap();
    let (_, written) = stage.call(upload).await;
    assert_eq!(written, json!({"files": 1, "bytes": 40_000_000}));
    let response = stage
        .send(without_body("GET", &format!("{OPEN}/file?path=big%20one")))
        .await;
    assert_eq!(response.headers()["content-length"], "40000000");
    assert_eq!(response.headers()["content-type"], "application/octet-stream");
    let read = axum::body::to_bytes(response.into_body(), usize::MAX)
        .await
        .unwrap();
    assert!(read == stage.runner.files.lock().unwrap()["big one"]);
}

#[tokio::test]
async fn models_call_the_same_verbs_as_tools() {
    let stage = stage().await;
    let call = |name: &str, arguments: Value| {
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments},
        });
        request("POST", "/mcp/team/data")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-06-18")
            .header("host", "gateway.example")
            .body(Body::from(message.to_string()))
            .unwrap()
    };
    let (status, listed) = stage
        .call({
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
            let (parts, _) = call("", json!({})).into_parts();
            Request::from_parts(parts, Body::from(message.to_string()))
        })
        .await;
    assert_eq!(status, StatusCode::OK, "{listed}");
    assert_eq!(listed["result"]["tools"][0]["name"], "open_session", "{listed}");

    stage.runner.go_on.notify_one();
    let (_, ran) = stage
        .call(call(
            "execute_code",
            json!({"session": "open1", "code": "print('one')"}),
        ))
        .await;
    assert_eq!(
        ran["result"]["structuredContent"],
        json!({"stdout": "one\n", "stderr": "", "exitCode": 0, "executionTime": 5.0})
    );
    let write = json!({"session": "open1", "path": "a", "base64": "AP8="});
    stage.call(call("write_file", write)).await;
    let (_, read) = stage
        .call(call("read_file", json!({"session": "open1", "path": "a"})))
        .await;
    assert_eq!(read["result"]["content"][0]["resource"]["blob"], "AP8=");
    let (_, refused) = stage
        .call(call("execute_code", json!({"session": "none1", "code": "1"})))
        .await;
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(refused["result"]["structuredContent"]["code"], "SessionNotFound");
}

#[tokio::test]
async fn the_document_is_served_to_everybody() {
    let stage = stage().await;
    let anonymous = Request::builder()
        .uri("/openapi.json")
        .body(Body::empty())
        .unwrap();
    let (status, document) = stage.call(anonymous).await;
    assert_eq!((status, &document["openapi"]), (StatusCode::OK, &json!("3.1.0")));
}
