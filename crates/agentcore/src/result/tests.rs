use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn events(result: &ToolResult, limit: usize) -> Vec<Value> {
    let events = result.events(limit).unwrap();
    for event in &events {
        assert!(event.len() <= limit, "{} is over {limit}", event.len());
    }
    events
        .iter()
        .map(|event| serde_json::from_slice(event).unwrap())
        .collect()
}

fn printed(stdout: &str, stderr: &str) -> ToolResult {
    ToolResult {
        structured: Some(StructuredContent {
            stdout: Some(stdout.to_owned()),
            stderr: Some(stderr.to_owned()),
            exit_code: Some(1),
            execution_time: Some(0.5),
            ..StructuredContent::default()
        }),
        ..ToolResult::failure(stdout)
    }
}

#[test]
fn a_result_is_one_event() {
    let found = events(&printed("out\n", ""), MAX_EVENT_BYTES);
    let expected = json!({
        "content": [{ "type": "text", "text": "out\n" }],
        "structuredContent": { "stdout": "out\n", "stderr": "", "exitCode": 1, "executionTime": 0.5 },
        "isError": true,
    });
    assert_eq!(found, [expected]);
}

#[test]
fn a_result_without_anything_is_an_event_too() {
    let nothing = ToolResult {
        content: Vec::new(),
        structured: None,
        is_error: false,
    };
    assert_eq!(
        events(&nothing, MAX_EVENT_BYTES),
        [json!({ "content": [], "isError": false })]
    );
}

#[test]
fn each_kind_of_block_has_its_members() {
    let result = ToolResult {
        content: vec![
            ContentBlock::text("t"),
            ContentBlock::Image {
                data: vec![0, 255],
                mime_type: "image/png".to_owned(),
            },
            ContentBlock::file("file:///a".to_owned(), Some("text/plain".to_owned()), Vec::new()),
            ContentBlock::file("file:///b".to_owned(), None, vec![0xff]),
            ContentBlock::ResourceLink {
                uri: "file:///c".to_owned(),
                name: "c".to_owned(),
                description: None,
                mime_type: Some("text/plain".to_owned()),
                size: Some(u64::from(u32::MAX) + 1),
            },
        ],
        structured: Some(StructuredContent {
            task_id: Some("id".to_owned()),
            task_status: Some(TaskStatus::Canceled),
            ..StructuredContent::default()
        }),
        is_error: false,
    };
    let expected = json!({
        "content": [
            { "type": "text", "text": "t" },
            { "type": "image", "data": "AP8=", "mimeType": "image/png" },
            { "type": "resource", "resource": { "type": "text", "uri": "file:///a", "mimeType": "text/plain", "text": "" } },
            { "type": "resource", "resource": { "type": "blob", "uri": "file:///b", "blob": "/w==" } },
            { "type": "resource_link", "uri": "file:///c", "name": "c", "mimeType": "text/plain", "size": 4_294_967_296_u64 },
        ],
        "structuredContent": { "taskId": "id", "taskStatus": "canceled" },
        "isError": false,
    });
    assert_eq!(events(&result, MAX_EVENT_BYTES), [expected]);
}

#[test]
fn files_are_spread_over_events_and_stay_whole() {
    let file = |name: &str, length| ContentBlock::file(format!("file:///{name}"), None, vec![b'x'; length]);
    let result = ToolResult {
        content: vec![file("a", 1000), file("b", 900), file("c", 100)],
        structured: None,
        is_error: false,
    };
    let found = events(&result, 1200);
    let blocks: Vec<_> = found
        .iter()
        .map(|event| event["content"].as_array().unwrap().len())
        .collect();
    assert_eq!(blocks, [1, 2]);

    let large = ToolResult {
        content: vec![file("large", 1100)],
        ..result
    };
    assert!(!large.content[0].fits(1200));
    let error = large.events(1200).unwrap_err();
    assert_eq!(
        error.to_string(),
        "file:///large takes 1179 bytes in an answer, which has room for 1170"
    );
}

#[test]
fn an_event_of_the_largest_size_is_below_what_clients_refuse() {
    // Each of them is six bytes in JSON.
    let result = printed(&"\u{1}".repeat(6 * 1024 * 1024), "");
    let found = result.events(MAX_EVENT_BYTES).unwrap();
    assert!(found.len() > 4);
    assert!(found.iter().all(|event| event.len() <= MAX_EVENT_BYTES));
    assert!(found[0].len() > MAX_EVENT_BYTES - 16);
}

#[test]
fn the_unit_of_the_time_is_a_setting() {
    let duration = Duration::from_millis(20_100);
    assert_eq!(ExecutionTimeUnit::default().number(duration).to_string(), "20.1");
    assert_eq!(
        ExecutionTimeUnit::Milliseconds.number(duration).to_string(),
        "20100"
    );
    assert_eq!(
        serde_json::from_str::<ExecutionTimeUnit>("\"milliseconds\"").unwrap(),
        ExecutionTimeUnit::Milliseconds
    );
}

proptest! {
    #[test]
    fn what_is_split_is_all_there(
        texts in prop::collection::vec("(\\PC|[\u{0}-\u{1f}\"\\\\]){0,900}", 0..4),
        stdout in "(\\PC|[\u{0}-\u{1f}\"\\\\]){0,3000}",
        stderr in "\\PC{0,2000}",
        limit in 1200_usize..5000,
    ) {
        let mut result = printed(&stdout, &stderr);
        result.content = texts.iter().map(ContentBlock::text).collect();
        let found = events(&result, limit);
        let joined = |part: &dyn Fn(&Value) -> String| found.iter().map(part).collect::<String>();
        let text = |event: &Value| event["content"].as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap()).collect();
        prop_assert_eq!(joined(&text), texts.concat());
        prop_assert_eq!(joined(&|event| event["structuredContent"]["stdout"].as_str().unwrap().to_owned()), stdout);
        prop_assert_eq!(joined(&|event| event["structuredContent"]["stderr"].as_str().unwrap().to_owned()), stderr);
        for event in &found {
            prop_assert_eq!(&event["structuredContent"]["exitCode"], &json!(1));
            prop_assert_eq!(&event["isError"], &json!(true));
        }
    }

    #[test]
    fn a_limit_that_is_too_small_still_ends(text in "\\PC{0,3000}", limit in 0_usize..1100) {
        prop_assert!(!printed(&text, &text).events(limit).unwrap().is_empty());
    }
}
