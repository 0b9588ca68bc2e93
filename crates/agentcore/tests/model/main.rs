//! The crate against the service models that the SDKs are made from (`fixtures/model.json`).

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]

mod responses;

use std::collections::{BTreeMap, BTreeSet};

use codeworkspace_agentcore::{
    error::ServiceError,
    identifier::{InterpreterId, InterpreterIdentifier, InterpreterName},
    operation::Operation,
    route::route,
    shapes::{self, NextToken, SESSION_ID_HEADER, SessionId},
    tools::{self, Language, Runtime, Tool},
    validation::{Reason, ValidationError},
};
use http::Method;
use proptest::{
    prelude::*,
    string::string_regex,
    test_runner::{Config, TestRunner},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Whether a request with this member is taken.
type Takes<'a> = &'a dyn Fn(&str, Value) -> bool;

/// Whether this text is taken.
type Parses = fn(&str) -> bool;

type Members = BTreeMap<String, Member>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    operations: BTreeMap<String, ModelledOperation>,
    errors: BTreeMap<String, u16>,
    enums: BTreeMap<String, Vec<String>>,
    stream_members: Vec<String>,
    structures: BTreeMap<String, Members>,
}

#[derive(Deserialize)]
struct ModelledOperation {
    method: String,
    uri: String,
    status: u16,
    errors: BTreeSet<String>,
    input: Members,
    output: Members,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Member {
    r#type: String,
    #[serde(default)]
    required: bool,
    location: Option<String>,
    location_name: Option<String>,
    min: Option<u64>,
    max: Option<u64>,
    pattern: Option<String>,
    members: Option<Members>,
}

impl Model {
    fn read() -> Self {
        serde_json::from_str(include_str!("../fixtures/model.json")).unwrap()
    }

    fn of(&self, operation: Operation) -> &ModelledOperation {
        &self.operations[operation.name()]
    }
}

fn errors() -> [ServiceError; 7] {
    [
        ServiceError::AccessDenied("m".to_owned()),
        ServiceError::Conflict("m".to_owned()),
        ServiceError::InternalServer("m".to_owned()),
        ServiceError::ResourceNotFound("m".to_owned()),
        ServiceError::ServiceQuotaExceeded("m".to_owned()),
        ServiceError::Throttling("m".to_owned()),
        ServiceError::from(ValidationError::field("f", "m")),
    ]
}

#[test]
fn every_operation_of_the_model_is_routed() {
    let model = Model::read();
    assert_eq!(model.operations.len(), Operation::ALL.len());
    for operation in Operation::ALL {
        let modelled = model.of(operation);
        let path = modelled
            .uri
            .replace("{codeInterpreterIdentifier}", InterpreterId::SYSTEM)
            .replace("{codeInterpreterId}", InterpreterId::SYSTEM);
        let method: Method = modelled.method.parse().unwrap();
        assert_eq!(route(&method, &path).unwrap().operation(), operation);
        assert_eq!(
            operation.success_status().as_u16(),
            modelled.status,
            "{operation:?}"
        );
    }
}

#[test]
fn errors_have_the_names_and_statuses_of_the_model() {
    let model = Model::read();
    let statuses: BTreeMap<_, _> = errors()
        .iter()
        .map(|error| (error.name().to_owned(), error.status().as_u16()))
        .collect();
    assert_eq!(statuses, model.errors);
    for operation in Operation::ALL {
        let listed: BTreeSet<_> = errors()
            .iter()
            .filter(|error| error.is_listed_for(operation))
            .map(|error| error.name().to_owned())
            .collect();
        assert_eq!(listed, model.of(operation).errors, "{operation:?}");
    }
    let mut members = vec!["result"];
    let errors = errors();
    members.extend(errors.iter().map(ServiceError::stream_member));
    assert_eq!(members, model.stream_members);
    let body: Value = serde_json::from_slice(&errors[6].body()).unwrap();
    responses::conforms(
        &body,
        &model.structures["ValidationException"],
        "ValidationException",
    );
}

#[test]
fn enumerations_are_those_of_the_model() {
    let enums = Model::read().enums;
    assert_eq!(Tool::ALL.map(Tool::name)[..], enums["ToolName"]);
    assert_eq!(
        Language::ALL.map(Language::name)[..],
        enums["ProgrammingLanguage"]
    );
    assert_eq!(Runtime::ALL.map(Runtime::name)[..], enums["LanguageRuntime"]);
    let reasons = json!([
        Reason::CannotParse,
        Reason::FieldValidationFailed,
        Reason::IdempotentParameterMismatchException,
        Reason::EventInOtherSession,
        Reason::ResourceConflict,
    ]);
    assert_eq!(reasons, json!(enums["ValidationExceptionReason"]));
    for kind in &enums["ResourceType"] {
        let query = format!("type={kind}");
        let query = codeworkspace_agentcore::query::Query::new(Some(&query));
        assert!(
            shapes::ListInterpretersRequest::parse(query)
                .unwrap()
                .kind
                .is_some()
        );
    }
    for status in &enums["CodeInterpreterSessionStatus"] {
        let body = json!({ "status": status }).to_string();
        let list = shapes::ListSessionsRequest::parse(body.as_bytes()).unwrap();
        assert_eq!(json!(list.status), json!(status));
    }
}

#[test]
fn headers_have_the_names_of_the_model() {
    let model = Model::read();
    let input = &model.of(Operation::InvokeSession).input;
    assert_eq!(input["sessionId"].location.as_deref(), Some("header"));
    assert_eq!(
        input["sessionId"].location_name.as_deref(),
        Some(SESSION_ID_HEADER)
    );
    let output = &model.of(Operation::InvokeSession).output;
    assert_eq!(
        output["sessionId"].location_name.as_deref(),
        Some(SESSION_ID_HEADER)
    );
    for (member, given) in [("traceId", "x-amzn-trace-id"), ("traceParent", "traceparent")] {
        let name = input[member].location_name.as_deref().unwrap();
        assert!(name.eq_ignore_ascii_case(given), "{name}");
    }
}

#[test]
fn ranges_are_those_of_the_model() {
    let model = Model::read();
    let start = &model.of(Operation::StartSession).input;
    let list = &model.of(Operation::ListSessions).input;
    let create = &model.of(Operation::CreateInterpreter).input;
    let with = |member: &str, value: Value| {
        let mut body = json!({ "name": "a", "networkConfiguration": { "networkMode": "SANDBOX" } });
        body[member] = value;
        body.to_string()
    };
    let starts = |member: &str, value: Value| {
        shapes::StartSessionRequest::parse(with(member, value).as_bytes()).is_ok()
    };
    let lists = |member: &str, value: Value| {
        shapes::ListSessionsRequest::parse(with(member, value).as_bytes()).is_ok()
    };
    let creates = |member: &str, value: Value| {
        shapes::CreateInterpreterRequest::parse(with(member, value).as_bytes()).is_ok()
    };
    let checks: [(&Members, &str, Takes<'_>); 6] = [
        (start, "name", &starts),
        (start, "sessionTimeoutSeconds", &starts),
        (start, "clientToken", &starts),
        (list, "maxResults", &lists),
        (list, "nextToken", &lists),
        (create, "description", &creates),
    ];
    for (members, name, is_taken) in checks {
        let member = &members[name];
        let value = |number: u64| match member.r#type.as_str() {
            "integer" => json!(number),
            _ => json!("a".repeat(usize::try_from(number).unwrap())),
        };
        let (least, most) = (member.min.unwrap(), member.max.unwrap());
        for (number, expected) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
            assert_eq!(is_taken(name, value(number)), expected, "{name} {number}");
        }
    }
}

#[test]
fn what_a_pattern_of_the_model_takes_is_taken() {
    let model = Model::read();
    let start = &model.of(Operation::StartSession).input;
    let get = &model.of(Operation::GetInterpreter).output;
    let pattern = |members: &Members, name: &str| members[name].pattern.clone().unwrap();
    let sessions = &model.of(Operation::GetSession).input;
    let lists = &model.of(Operation::ListSessions).input;
    let checks: [(String, Parses); 6] = [
        (pattern(sessions, "sessionId"), |text| {
            text.parse::<SessionId>().is_ok()
        }),
        (pattern(get, "codeInterpreterId"), |text| {
            text.parse::<InterpreterIdentifier>().is_ok()
        }),
        (pattern(get, "codeInterpreterArn"), |text| {
            text.parse::<InterpreterIdentifier>().is_ok()
        }),
        (pattern(get, "name"), |text| {
            text.parse::<InterpreterName>().is_ok()
        }),
        (pattern(lists, "nextToken").replace('*', "{1,2048}"), |text| {
            text.parse::<NextToken>().is_ok()
        }),
        (
            pattern(start, "clientToken").replace("{0,256}", "{32,40}"),
            |text| {
                let body = json!({ "clientToken": text }).to_string();
                text.len() > 256 || shapes::StartSessionRequest::parse(body.as_bytes()).is_ok()
            },
        ),
    ];
    for (pattern, is_taken) in checks {
        // Hyphens and region names have no upper bound in the model.
        let bounded = pattern.replace("-*", "-{0,3}").replace("[^:]+", "[a-z]{1,9}");
        let strategy = string_regex(&bounded).unwrap();
        let mut runner = TestRunner::new(Config::with_cases(100));
        let outcome = runner.run(&strategy, |text| {
            prop_assert!(is_taken(&text), "{pattern} takes {text:?}");
            Ok(())
        });
        assert!(outcome.is_ok(), "{outcome:?}");
    }
}

#[test]
fn every_argument_of_the_model_is_read() {
    let model = Model::read();
    for (name, member) in &model.structures["ToolArguments"] {
        // A value of a wrong type is noticed only by who reads the member.
        let body = json!({ "name": "listFiles", "arguments": { name: {} } }).to_string();
        let error = tools::parse(body.as_bytes()).unwrap_err();
        assert_eq!(
            error.field_list()[0].name,
            format!("arguments.{name}"),
            "{}",
            member.r#type
        );
    }
    for name in model.structures["InputContentBlock"].keys() {
        let body = json!({ "name": "listFiles", "arguments": { "content": [{ name: {} }] } }).to_string();
        let error = tools::parse(body.as_bytes()).unwrap_err();
        assert_eq!(error.field_list()[0].name, format!("arguments.content[0].{name}"));
    }
}
