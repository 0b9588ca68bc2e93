use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    query::Query,
    validation::{Reason, ValidationError},
};

const TOKEN: &str = "8b7f6a1c-1111-2222-3333-444455556666";

fn body(value: &serde_json::Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

fn start(value: &serde_json::Value) -> Result<StartSessionRequest, ValidationError> {
    StartSessionRequest::parse(&body(value))
}

fn create(value: &serde_json::Value) -> Result<CreateInterpreterRequest, ValidationError> {
    CreateInterpreterRequest::parse(&body(value))
}

fn message<T: std::fmt::Debug>(result: Result<T, ValidationError>) -> String {
    result.unwrap_err().message().to_owned()
}

fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

#[test]
fn an_empty_body_starts_a_session_as_the_interpreter_has_it() {
    let expected = StartSessionRequest {
        name: None,
        session_timeout_seconds: None,
        client_token: None,
    };
    for body in [
        &b""[..],
        b" \n",
        b"{}",
        br#"{"name":null,"unknown":[1],"filesystemConfigurations":[]}"#,
    ] {
        assert_eq!(StartSessionRequest::parse(body).as_ref(), Ok(&expected));
    }
}

#[test]
fn limits_are_inclusive() {
    for seconds in [1, 28_800] {
        let request = start(&json!({ "sessionTimeoutSeconds": seconds })).unwrap();
        assert_eq!(request.session_timeout_seconds, Some(seconds));
    }
    for seconds in [0, 28_801, -1, i64::MAX] {
        assert_eq!(
            message(start(&json!({ "sessionTimeoutSeconds": seconds }))),
            "sessionTimeoutSeconds: must be 1 to 28800"
        );
    }
    // Characters, not bytes.
    assert!(start(&json!({ "name": "é".repeat(100) })).is_ok());
    for name in [String::new(), "é".repeat(101)] {
        assert_eq!(
            message(start(&json!({ "name": name }))),
            "name: must have 1 to 100 characters"
        );
    }
    for token in [
        "a".repeat(33),
        "a".repeat(256),
        TOKEN.to_owned(),
        format!("a{}a", "-".repeat(40)),
    ] {
        let request = start(&json!({ "clientToken": token })).unwrap();
        assert_eq!(request.client_token.unwrap().as_str(), token);
    }
    for token in [
        "a".repeat(32),
        "a".repeat(257),
        format!("-{TOKEN}"),
        format!("{TOKEN}-"),
        format!("{TOKEN}_"),
    ] {
        assert_eq!(
            message(start(&json!({ "clientToken": token }))),
            "clientToken: must have 33 to 256 letters, digits and hyphens, and no hyphen at its ends"
        );
    }
}

#[test]
fn every_fault_is_told_at_once() {
    let error = start(&json!({
        "name": "",
        "sessionTimeoutSeconds": 0,
        "certificates": [],
        "filesystemConfigurations": [{}],
    }))
    .unwrap_err();
    let names: Vec<_> = error
        .field_list()
        .iter()
        .map(|fault| fault.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "certificates",
            "filesystemConfigurations",
            "name",
            "sessionTimeoutSeconds"
        ]
    );
    assert_eq!(error.reason(), Reason::FieldValidationFailed);
}

#[test]
fn what_is_no_object_cannot_be_parsed() {
    for body in [
        &b"[]"[..],
        b"null",
        b"\"text\"",
        b"{",
        b"{} {}",
        b"{\"name\":\"\\ud800\"}",
        b"{\"name\":\"\xff\"}",
        b"{\"name\":\"a\",}",
    ] {
        let error = StartSessionRequest::parse(body).unwrap_err();
        assert_eq!(error.reason(), Reason::CannotParse, "{error}");
        assert!(
            error.message().starts_with("the body must be a JSON object: "),
            "{error}"
        );
    }
}

#[test]
fn a_value_of_another_type_is_named_and_not_repeated_at_length() {
    let error = start(&json!({ "sessionTimeoutSeconds": "x".repeat(1_000_000) })).unwrap_err();
    assert_eq!(error.field_list()[0].name, "sessionTimeoutSeconds");
    assert!(error.message().len() < 1000);
    let error = create(&json!({ "name": "a", "networkConfiguration": ["SANDBOX", null] })).unwrap_err();
    assert_eq!(error.field_list()[0].name, "networkConfiguration");
    assert!(error.message().contains("expected an object"), "{error}");
}

#[test]
fn sessions_are_named_in_query_and_header() {
    let id = "01JQ5ZK8Y3N4P6R7T9V0W2X4Z6";
    let query = format!("sessionId={id}");
    assert_eq!(
        GetSessionRequest::parse(Query::new(Some(&query)))
            .unwrap()
            .session_id
            .as_str(),
        id
    );
    let stop =
        StopSessionRequest::parse(Query::new(Some(&query)), &body(&json!({ "clientToken": TOKEN }))).unwrap();
    assert_eq!(stop.session_id.as_str(), id);
    assert_eq!(stop.client_token.unwrap().as_str(), TOKEN);
    assert_eq!(
        invoked_session(&headers(SESSION_ID_HEADER, &[id]))
            .unwrap()
            .as_str(),
        id
    );

    assert_eq!(
        message(GetSessionRequest::parse(Query::new(None))),
        "sessionId: is needed, in the query string"
    );
    let illegal = "sessionId: must be a session's id: 1 to 40 letters and digits";
    let long = "a".repeat(41);
    for wrong in ["", "a-b", "a%20b", &long] {
        let query = format!("sessionId={wrong}");
        assert_eq!(
            message(GetSessionRequest::parse(Query::new(Some(&query)))),
            illegal
        );
        assert_eq!(
            message(StopSessionRequest::parse(Query::new(Some(&query)), b"")),
            illegal
        );
        assert_eq!(
            message(invoked_session(&headers(SESSION_ID_HEADER, &[wrong]))),
            illegal
        );
    }
    assert_eq!(
        message(invoked_session(&HeaderMap::new())),
        "sessionId: is needed, in the header x-amzn-code-interpreter-session-id: start a session with \
         StartCodeInterpreterSession"
    );
    assert_eq!(
        message(invoked_session(&headers(SESSION_ID_HEADER, &["a", "b"]))),
        "sessionId: must stand in one header"
    );
}

#[test]
fn traces_are_kept_up_to_their_limit() {
    let long = "a".repeat(1024);
    let trace = Trace::from_headers(&headers("traceparent", &[&long])).unwrap();
    assert_eq!(
        trace,
        Trace {
            id: None,
            parent: Some(long.clone())
        }
    );
    let longer = format!("{long}a");
    assert_eq!(
        message(Trace::from_headers(&headers("X-Amzn-Trace-Id", &[&longer]))),
        "traceId: must have at most 1024 characters"
    );
}

#[test]
fn lists_have_a_length_a_beginning_and_a_filter() {
    let list = ListSessionsRequest::parse(b"").unwrap();
    assert_eq!((list.max_results, list.next_token, list.status), (10, None, None));
    let list = body(&json!({ "maxResults": 100, "nextToken": "x", "status": "TERMINATED" }));
    let list = ListSessionsRequest::parse(&list).unwrap();
    assert_eq!(
        (list.max_results, list.status),
        (100, Some(SessionStatus::Terminated))
    );
    let wrong = body(&json!({ "maxResults": 101, "nextToken": "a b", "status": "ACTIVE" }));
    assert_eq!(
        message(ListSessionsRequest::parse(&wrong)),
        "maxResults: must be 1 to 100; nextToken: must be the nextToken of an earlier answer: 1 to 2048 characters without \
         space; status: must be one of READY, TERMINATED"
    );

    let list =
        ListInterpretersRequest::parse(Query::new(Some("maxResults=1&nextToken=a%2Bb&type=SYSTEM"))).unwrap();
    assert_eq!((list.max_results, list.kind), (1, Some(InterpreterType::System)));
    assert_eq!(list.next_token.unwrap().as_str(), "a+b");
    for wrong in ["maxResults=0", "maxResults=ten", "maxResults=", "maxResults=1.0"] {
        let error = ListInterpretersRequest::parse(Query::new(Some(wrong)));
        assert_eq!(message(error), "maxResults: must be 1 to 100", "{wrong}");
    }
}

#[test]
fn an_interpreter_needs_a_name_and_a_mode() {
    let request = create(&json!({
        "name": "data_1",
        "description": "d",
        "networkConfiguration": { "networkMode": "SANDBOX" },
        "tags": { "team": "a b" },
        "clientToken": TOKEN,
    }))
    .unwrap();
    assert_eq!(request.name.as_str(), "data_1");
    assert_eq!(request.network_mode, NetworkMode::Sandbox);
    assert_eq!(request.tags["team"], "a b");
    assert_eq!(
        message(create(&json!({}))),
        "name: is needed; networkConfiguration: is needed"
    );
    assert_eq!(
        message(create(&json!({ "name": "1", "networkConfiguration": {} }))),
        "name: must begin with a letter and have 1 to 48 letters, digits and underscores; \
         networkConfiguration.networkMode: is needed"
    );
}

#[test]
fn what_an_interpreter_cannot_have_is_refused_by_name() {
    assert_eq!(
        message(create(&json!({
            "name": "a",
            "executionRoleArn": "arn:aws:iam::123456789012:role/x",
            "certificates": [{ "location": {} }],
            "filesystemConfigurations": [{}],
            "networkConfiguration": { "networkMode": "VPC", "vpcConfig": { "subnets": [] } },
            "tags": { "": "x", "a": "*" },
            "description": "",
        }))),
        "executionRoleArn: is not supported: leave it out; certificates: is not supported: leave it out; \
         filesystemConfigurations: is not supported: leave it out; \
         networkConfiguration.vpcConfig: is not supported: leave it out; \
         networkConfiguration.networkMode: VPC is not supported: must be one of PUBLIC, SANDBOX; \
         description: must have 1 to 4096 characters; \
         tags: keys must have 1 to 128 letters, digits, spaces and ._:/=+@-; tags: values must have at most 256 letters, digits, spaces and ._:/=+@-"
    );
    let tags: std::collections::BTreeMap<_, _> = (0..51).map(|index| (index.to_string(), "")).collect();
    let many = json!({ "name": "a", "networkConfiguration": { "networkMode": "PUBLIC" }, "tags": tags });
    assert_eq!(message(create(&many)), "tags: must be at most 50");
}

proptest! {
    #[test]
    fn no_body_is_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..64), text in r#"[{}\[\]":,a-z0-9\\]{0,64}"#) {
        for body in [&bytes[..], text.as_bytes()] {
            let _ = StartSessionRequest::parse(body);
            let _ = CreateInterpreterRequest::parse(body);
            let _ = ListSessionsRequest::parse(body);
        }
    }

    #[test]
    fn a_token_of_the_pattern_is_taken(token in "[a-zA-Z0-9](-{0,3}[a-zA-Z0-9]){32,60}") {
        let taken = start(&json!({ "clientToken": token })).unwrap().client_token.unwrap();
        prop_assert_eq!(taken.as_str(), token);
    }
}
