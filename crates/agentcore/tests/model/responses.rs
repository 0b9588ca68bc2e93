//! Responses and results have members of the model, and all that it requires.

use codeworkspace_agentcore::{
    identifier::InterpreterId,
    operation::Operation,
    result::{ContentBlock, MAX_EVENT_BYTES, StructuredContent, TaskStatus, ToolResult},
    shapes::{
        CreateInterpreterResponse, DeleteInterpreterResponse, GetInterpreterResponse, GetSessionResponse,
        InterpreterStatus, InterpreterSummary, ListInterpretersResponse, ListSessionsResponse,
        NetworkConfiguration, NetworkMode, SessionId, SessionStatus, SessionSummary, StartSessionResponse,
        StopSessionResponse, to_json,
    },
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{Members, Model};

/// Whether an object has only members of the model, each of its type, and all that are required.
pub fn conforms(value: &Value, members: &Members, place: &str) {
    let object = value.as_object().unwrap();
    for (name, value) in object {
        let place = format!("{place}.{name}");
        let member = members
            .get(name)
            .unwrap_or_else(|| panic!("{place} is not in the model"));
        let fits = match member.r#type.as_str() {
            "string" | "blob" => value.is_string(),
            "timestamp" => value.as_str().unwrap().parse::<Timestamp>().is_ok(),
            "integer" | "long" => value.is_i64(),
            "double" => value.is_f64(),
            "boolean" => value.is_boolean(),
            "list" => value.is_array(),
            "structure" => value.is_object(),
            other => panic!("{place} is {other}"),
        };
        assert!(fits, "{place}: {value}");
        if let Some(inner) = &member.members {
            for value in value.as_array().unwrap() {
                conforms(value, inner, &place);
            }
        }
    }
    for (name, member) in members {
        let is_body = member.location.is_none();
        assert!(
            !member.required || !is_body || object.contains_key(name),
            "{place}.{name}"
        );
    }
}

#[test]
fn results_have_the_members_of_the_model() {
    let model = Model::read();
    let result = ToolResult {
        content: vec![
            ContentBlock::text("t"),
            ContentBlock::Image {
                data: vec![1],
                mime_type: "image/png".to_owned(),
            },
            ContentBlock::file("file:///a".to_owned(), Some("text/plain".to_owned()), Vec::new()),
            ContentBlock::file("file:///b".to_owned(), None, vec![0xff]),
            ContentBlock::ResourceLink {
                uri: "file:///c".to_owned(),
                name: "c".to_owned(),
                description: Some("d".to_owned()),
                mime_type: Some("text/plain".to_owned()),
                size: Some(1),
            },
        ],
        structured: Some(StructuredContent {
            task_id: Some("t".to_owned()),
            task_status: Some(TaskStatus::Submitted),
            stdout: Some(String::new()),
            stderr: Some(String::new()),
            exit_code: Some(0),
            execution_time: Some(1.0),
        }),
        is_error: false,
    };
    let event: Value = serde_json::from_slice(&result.events(MAX_EVENT_BYTES).unwrap()[0]).unwrap();
    conforms(&event, &model.structures["CodeInterpreterResult"], "result");
    let structured = &model.structures["ToolResultStructuredContent"];
    assert_eq!(
        event["structuredContent"].as_object().unwrap().len(),
        structured.len()
    );
    conforms(&event["structuredContent"], structured, "structuredContent");
    let mut types = Vec::new();
    for block in event["content"].as_array().unwrap() {
        types.push(&block["type"]);
        if let Some(resource) = block.get("resource") {
            conforms(resource, &model.structures["ResourceContent"], "resource");
        }
    }
    types.dedup();
    assert_eq!(json!(types), json!(model.enums["ContentBlockType"]));
    let statuses = [
        TaskStatus::Submitted,
        TaskStatus::Working,
        TaskStatus::Completed,
        TaskStatus::Canceled,
        TaskStatus::Failed,
    ];
    assert_eq!(json!(statuses), json!(model.enums["TaskStatus"]));
    let statuses = [
        InterpreterStatus::Creating,
        InterpreterStatus::CreateFailed,
        InterpreterStatus::Ready,
        InterpreterStatus::Deleting,
        InterpreterStatus::DeleteFailed,
        InterpreterStatus::Deleted,
    ];
    assert_eq!(json!(statuses), json!(model.enums["CodeInterpreterStatus"]));
}

#[test]
fn responses_have_the_members_of_the_model() {
    let at: Timestamp = "2026-01-02T03:04:05.678912Z".parse().unwrap();
    let id: SessionId = "abc".parse().unwrap();
    let identifier = || InterpreterId::SYSTEM.to_owned();
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap()).unwrap();
    let sessions = [
        to_json(&StartSessionResponse {
            code_interpreter_identifier: identifier(),
            session_id: id.clone(),
            created_at: at,
        }),
        to_json(&GetSessionResponse {
            code_interpreter_identifier: identifier(),
            session_id: id.clone(),
            name: None,
            created_at: at,
            session_timeout_seconds: 900,
            status: SessionStatus::Terminated,
        }),
        to_json(&ListSessionsResponse {
            items: vec![SessionSummary {
                code_interpreter_identifier: identifier(),
                session_id: id.clone(),
                name: Some("n".to_owned()),
                status: SessionStatus::Ready,
                created_at: at,
                last_updated_at: Some(at),
            }],
            next_token: Some("more".parse().unwrap()),
        }),
        to_json(&StopSessionResponse {
            code_interpreter_identifier: identifier(),
            session_id: id,
            last_updated_at: at,
        }),
    ];
    let id = InterpreterId::custom(&"data".parse().unwrap(), "0123456789").unwrap();
    let arn = id.arn("us-east-1", "123456789012");
    let interpreters = [
        to_json(&CreateInterpreterResponse {
            code_interpreter_id: id.clone(),
            code_interpreter_arn: arn.clone(),
            created_at: at,
            status: InterpreterStatus::Creating,
        }),
        to_json(&GetInterpreterResponse {
            code_interpreter_id: id.clone(),
            code_interpreter_arn: arn.clone(),
            name: "data".to_owned(),
            description: None,
            network_configuration: NetworkConfiguration {
                network_mode: NetworkMode::Sandbox,
            },
            status: InterpreterStatus::CreateFailed,
            failure_reason: Some("no template".to_owned()),
            created_at: at,
            last_updated_at: at,
        }),
        to_json(&ListInterpretersResponse {
            code_interpreter_summaries: vec![InterpreterSummary {
                code_interpreter_id: id.clone(),
                code_interpreter_arn: arn,
                name: None,
                description: None,
                status: InterpreterStatus::Ready,
                created_at: at,
                last_updated_at: None,
            }],
            next_token: None,
        }),
        to_json(&DeleteInterpreterResponse {
            code_interpreter_id: id,
            status: InterpreterStatus::Deleting,
            last_updated_at: at,
        }),
    ];
    let all: Vec<_> = sessions.into_iter().chain(interpreters).map(text).collect();
    let operations = [
        Operation::StartSession,
        Operation::GetSession,
        Operation::ListSessions,
        Operation::StopSession,
        Operation::CreateInterpreter,
        Operation::GetInterpreter,
        Operation::ListInterpreters,
        Operation::DeleteInterpreter,
    ];
    let model = Model::read();
    assert_eq!(all.len(), operations.len());
    for (operation, text) in operations.into_iter().zip(&all) {
        let value: Value = serde_json::from_str(text).unwrap();
        conforms(&value, &model.of(operation).output, operation.name());
    }
    insta::assert_snapshot!(all.join("\n"));
}
