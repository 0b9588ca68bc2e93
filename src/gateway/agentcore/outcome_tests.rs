use bytes::Bytes;
use futures::stream;
use serde_json::json;

use super::*;

fn events(events: &[SessionEvent]) -> Events {
    let lines: Vec<_> = events
        .iter()
        .map(|event| {
            let mut line = serde_json::to_vec(event).unwrap();
            line.push(b'\n');
            Ok(Bytes::from(line))
        })
        .collect();
    Events::new(stream::iter(lines))
}

fn finished(outcome: ExecutionOutcome, exit_code: Option<i32>) -> Finished {
    Finished {
        outcome,
        exit_code,
        execution_time_ms: 1500,
        stdout: StreamSummary::default(),
        stderr: StreamSummary::default(),
        message: None,
    }
}

async fn result(told: &[SessionEvent]) -> Value {
    let result = Outcome::of(events(told), ExecutionTimeUnit::Seconds)
        .await
        .unwrap();
    let payloads = result.events(16 * 1024 * 1024).unwrap();
    assert_eq!(payloads.len(), 1);
    serde_json::from_slice(&payloads[0]).unwrap()
}

fn printed(text: &str) -> SessionEvent {
    SessionEvent::Output {
        stream: OutputStream::Stdout,
        text: text.to_owned(),
    }
}

#[tokio::test]
async fn stdout_is_exactly_what_the_code_printed_and_the_value_stands_beside_it() {
    let value = SessionEvent::Display {
        data: Map::from_iter([("text/plain".to_owned(), json!("42"))]),
        result: true,
    };
    let told = [
        printed("a\n"),
        value,
        printed("b"),
        SessionEvent::Finished(finished(ExecutionOutcome::Completed, Some(0))),
    ];
    assert_eq!(
        result(&told).await,
        json!({
            "content": [{"type": "text", "text": "a\nb\n42"}],
            "structuredContent": {"stdout": "a\nb", "stderr": "", "exitCode": 0, "executionTime": 1.5},
            "isError": false,
        })
    );
}

#[tokio::test]
async fn an_exception_is_an_error_with_its_traceback() {
    let error = SessionEvent::Error {
        name: "ValueError".to_owned(),
        value: "no".to_owned(),
        traceback: vec!["Traceback".to_owned(), "ValueError: no".to_owned()],
    };
    let told = [
        error,
        SessionEvent::Finished(finished(ExecutionOutcome::Failed, Some(1))),
    ];
    assert_eq!(
        result(&told).await,
        json!({
            "content": [{"type": "text", "text": "Traceback\nValueError: no"}],
            "structuredContent": {
                "stdout": "", "stderr": "Traceback\nValueError: no", "exitCode": 1, "executionTime": 1.5,
            },
            "isError": true,
        })
    );
}

#[tokio::test]
async fn a_killed_process_has_no_exit_code_and_says_what_happened() {
    let told = [SessionEvent::Finished(finished(
        ExecutionOutcome::OutOfMemory,
        None,
    ))];
    let text = "the process was killed because the session's memory ran out";
    assert_eq!(
        result(&told).await,
        json!({
            "content": [{"type": "text", "text": text}],
            "structuredContent": {"stdout": "", "stderr": text, "executionTime": 1.5},
            "isError": true,
        })
    );
}

#[tokio::test]
async fn a_picture_is_an_image_and_a_table_keeps_its_form() {
    let display = SessionEvent::Display {
        data: Map::from_iter([
            ("image/png".to_owned(), json!("iVBORw0KGgo=\n")),
            ("text/html".to_owned(), json!("<table></table>")),
            ("text/plain".to_owned(), json!("<Figure>")),
        ]),
        result: false,
    };
    let told = [
        display,
        SessionEvent::Finished(finished(ExecutionOutcome::Completed, Some(0))),
    ];
    assert_eq!(
        result(&told).await["content"],
        json!([
            {"type": "text", "text": ""},
            {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
            {"type": "resource", "resource": {
                "type": "text", "uri": "display:///1", "mimeType": "text/html", "text": "<table></table>",
            }},
        ])
    );
}

#[tokio::test]
async fn what_is_no_text_is_marked_as_such_and_not_as_cut() {
    let mut end = finished(ExecutionOutcome::Completed, Some(0));
    end.stdout = StreamSummary {
        total_bytes: 2,
        file: Some(".output/1.stdout".to_owned()),
    };
    let content = result(&[printed("\u{fffd}\n"), SessionEvent::Finished(end)]).await["content"].clone();
    assert_eq!(
        content[1]["text"],
        "stdout has 2 bytes, not all of which are text: others stand here as U+FFFD; the whole is in .output/1.stdout"
    );
}

#[tokio::test]
async fn what_did_not_fit_is_marked_and_linked_with_its_exact_size() {
    let mut end = finished(ExecutionOutcome::Completed, Some(0));
    end.stdout = StreamSummary {
        total_bytes: 104_857_600,
        file: Some(".output/a b.stdout".to_owned()),
    };
    let content = result(&[printed("x"), SessionEvent::Finished(end)]).await["content"].clone();
    assert_eq!(
        content,
        json!([
            {"type": "text", "text": "x"},
            {"type": "text", "text":
                "stdout has 104857600 bytes, of which the first 1048576 are here; the whole is in .output/a b.stdout"},
            {"type": "resource_link", "uri": "file:///.output/a%20b.stdout", "name": "stdout",
                "description": "The whole stdout", "mimeType": "text/plain", "size": 104_857_600},
        ])
    );
}

#[test]
fn every_character_of_a_path_survives_its_uri() {
    assert_eq!(
        uri("data/naïve file #1 100%?.txt"),
        "file:///data/na%C3%AFve%20file%20%231%20100%25%3F.txt"
    );
}
