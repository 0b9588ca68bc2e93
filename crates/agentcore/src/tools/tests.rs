use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::validation::Reason;

fn call(name: &str, arguments: &Value) -> Result<String, ValidationError> {
    let body = serde_json::to_vec(&json!({ "name": name, "arguments": arguments })).unwrap();
    parse(&body).map(|call| format!("{call:?}"))
}

fn message(name: &str, arguments: &Value) -> String {
    call(name, arguments).unwrap_err().message().to_owned()
}

#[test]
fn each_tool_has_its_arguments() {
    let parsed: Vec<_> = [
        (
            "executeCode",
            json!({ "code": "1", "language": "typescript", "clearContext": true, "runtime": "deno" }),
        ),
        ("executeCode", json!({ "code": "" })),
        ("executeCommand", json!({ "command": "ls" })),
        ("readFiles", json!({ "paths": ["a b", "/c"] })),
        ("listFiles", json!({})),
        ("removeFiles", json!({ "paths": [] })),
        (
            "writeFiles",
            json!({ "content": [{ "path": "a", "text": "" }, { "path": "b", "blob": "AAH/" }] }),
        ),
        (
            "startCommandExecution",
            json!({ "command": "sleep 1", "language": null }),
        ),
        ("getTask", json!({ "taskId": "t" })),
        ("stopTask", json!({ "taskId": "t", "unknown": { "x": [1] } })),
    ]
    .iter()
    .map(|(name, arguments)| call(name, arguments).unwrap())
    .collect();
    insta::assert_snapshot!(parsed.join("\n"));
}

#[test]
fn a_tool_without_what_it_needs_names_it() {
    for (name, expected) in [
        ("executeCode", "arguments.code: is needed by executeCode"),
        ("executeCommand", "arguments.command: is needed by executeCommand"),
        (
            "startCommandExecution",
            "arguments.command: is needed by startCommandExecution",
        ),
        ("getTask", "arguments.taskId: is needed by getTask"),
        ("stopTask", "arguments.taskId: is needed by stopTask"),
        ("writeFiles", "arguments.content: is needed by writeFiles"),
        ("readFiles", "arguments.paths: is needed by readFiles"),
        ("removeFiles", "arguments.paths: is needed by removeFiles"),
    ] {
        assert_eq!(message(name, &json!({})), expected);
        let body = json!({ "name": name }).to_string();
        assert_eq!(parse(body.as_bytes()).unwrap_err().message(), expected);
    }
    assert_eq!(
        parse(br#"{"name":"listFiles"}"#),
        Ok(ToolCall::ListFiles { path: None })
    );
}

#[test]
fn a_tool_that_there_is_not_is_told_those_there_are() {
    let expected = "name: must be one of executeCode, executeCommand, readFiles, listFiles, removeFiles, writeFiles, \
                    startCommandExecution, getTask, stopTask";
    for name in ["", "executecode", "installPackages"] {
        assert_eq!(message(name, &json!({})), expected);
    }
    assert_eq!(parse(b"").unwrap_err().message(), expected);
}

#[test]
fn a_file_has_text_or_bytes() {
    let both = json!({ "content": [
        { "path": "a", "text": "x" },
        { "path": "b" },
        { "path": "c", "text": "", "blob": "" },
        { "text": "x" },
    ] });
    assert_eq!(
        message("writeFiles", &both),
        "arguments.content[1]: must have exactly one of text and blob; \
         arguments.content[2]: must have exactly one of text and blob; arguments.content[3].path: is needed"
    );
    let error = call(
        "writeFiles",
        &json!({ "content": [{ "path": "a", "blob": "AA*=" }] }),
    )
    .unwrap_err();
    assert_eq!(error.field_list()[0].name, "arguments.content[0].blob");
    assert!(error.message().contains("must be base64"), "{error}");
    let error = call("writeFiles", &json!({ "content": ["a"] })).unwrap_err();
    assert_eq!(error.field_list()[0].name, "arguments.content[0]");
}

#[test]
fn either_spelling_lists_a_folder() {
    let listed = |path: &str| {
        Ok(format!(
            "{:?}",
            ToolCall::ListFiles {
                path: Some(path.into())
            }
        ))
    };
    assert_eq!(call("listFiles", &json!({ "path": "a" })), listed("a"));
    assert_eq!(call("listFiles", &json!({ "directoryPath": "a" })), listed("a"));
    assert_eq!(
        call("listFiles", &json!({ "path": "a", "directoryPath": "a" })),
        listed("a")
    );
    assert_eq!(call("listFiles", &json!({ "path": "" })), listed(""));
    assert_eq!(
        message("listFiles", &json!({ "path": "a", "directoryPath": "b" })),
        "arguments.directoryPath: must be the same as arguments.path, or only one of them be there"
    );
}

#[test]
fn language_and_runtime_go_together() {
    for (language, runtime) in [
        ("python", "python"),
        ("javascript", "nodejs"),
        ("javascript", "deno"),
        ("typescript", "nodejs"),
        ("typescript", "deno"),
    ] {
        assert!(
            call(
                "executeCode",
                &json!({ "code": "", "language": language, "runtime": runtime })
            )
            .is_ok()
        );
    }
    for (language, runtime) in [
        ("python", "nodejs"),
        ("javascript", "python"),
        ("typescript", "python"),
    ] {
        assert_eq!(
            message(
                "executeCode",
                &json!({ "code": "", "language": language, "runtime": runtime })
            ),
            format!(
                "arguments.runtime: {runtime} does not run {language}: python runs python, nodejs and deno run javascript and \
                 typescript"
            )
        );
    }
    assert_eq!(
        message(
            "executeCode",
            &json!({ "code": "", "language": "ruby", "runtime": "mri" })
        ),
        "arguments.language: must be one of python, javascript, typescript; \
         arguments.runtime: must be one of nodejs, deno, python"
    );
}

#[test]
fn a_runtime_alone_says_no_language() {
    assert!(call("executeCode", &json!({ "code": "", "runtime": "python" })).is_ok());
    assert_eq!(
        call("executeCode", &json!({ "code": "", "runtime": "deno" }))
            .unwrap_err()
            .field_list()[0]
            .name,
        "arguments.runtime"
    );
}

#[test]
fn arguments_of_another_type_are_named() {
    for (arguments, name) in [
        (json!({ "code": 1 }), "arguments.code"),
        (
            json!({ "code": "", "clearContext": "yes" }),
            "arguments.clearContext",
        ),
        (json!(["code"]), "arguments"),
        (json!({ "code": "", "paths": ["a", 1] }), "arguments.paths[1]"),
    ] {
        let error = call("executeCode", &arguments).unwrap_err();
        assert_eq!(error.field_list()[0].name, name, "{error}");
        assert_eq!(error.reason(), Reason::FieldValidationFailed);
    }
    let twice = parse(br#"{"name":"getTask","arguments":{"taskId":"a","taskId":"b"}}"#).unwrap_err();
    assert!(twice.message().contains("duplicate field"), "{twice}");
}

#[test]
fn a_long_text_without_escapes_is_not_copied() {
    let body = br#"{"name":"executeCode","arguments":{"code":"print(1)"}}"#;
    let Ok(ToolCall::ExecuteCode(code)) = parse(body) else {
        panic!("it is code");
    };
    assert!(matches!(code.code, Cow::Borrowed("print(1)")));
}

proptest! {
    #[test]
    fn files_arrive_as_they_were_sent(files in prop::collection::vec((".{0,12}", ".{0,40}", any::<Vec<u8>>(), any::<bool>()), 0..5)) {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let content: Vec<_> = files
            .iter()
            .map(|(path, text, bytes, is_text)| {
                if *is_text { json!({ "path": path, "text": text }) } else { json!({ "path": path, "blob": STANDARD.encode(bytes) }) }
            })
            .collect();
        let body = json!({ "arguments": { "content": content }, "name": "writeFiles" }).to_string();
        let Ok(ToolCall::WriteFiles { files: found }) = parse(body.as_bytes()) else {
            return Err(TestCaseError::fail("they are files"));
        };
        prop_assert_eq!(found.len(), files.len());
        for (found, (path, text, bytes, is_text)) in found.iter().zip(&files) {
            prop_assert_eq!(&found.path, path);
            prop_assert_eq!(found.contents.as_bytes(), if *is_text { text.as_bytes() } else { bytes });
        }
    }

    #[test]
    fn no_body_is_too_strange(text in r#"\{"name":"(executeCode|writeFiles)","arguments":[{}\[\]":,a-z0-9\\]{0,64}"#) {
        let _ = parse(text.as_bytes());
    }
}
