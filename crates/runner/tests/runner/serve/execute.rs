//! Code in a real kernel.

use codeworkspace_protocol::session::{
    ErrorCode, ExecutionOutcome, Finished, SessionEvent, StreamSummary, path,
};
use serde_json::{Map, json};

use super::client::{code, python};
use super::pod::Pod;

fn summary(bytes: u64) -> StreamSummary {
    StreamSummary {
        total_bytes: bytes,
        file: None,
    }
}

/// What does not differ between two equal executions.
fn timeless(mut finished: Finished) -> Finished {
    finished.execution_time_ms = 0;
    finished
}

fn ended(outcome: ExecutionOutcome, exit_code: Option<i32>, stdout: u64, stderr: u64) -> Finished {
    Finished {
        outcome,
        exit_code,
        execution_time_ms: 0,
        stdout: summary(stdout),
        stderr: summary(stderr),
        message: None,
    }
}

#[tokio::test]
async fn code_is_answered_with_what_it_printed_and_its_variables_stay() {
    let pod = Pod::start().await;
    let first = pod
        .client
        .python("import sys\nx = 20\nprint('größe 🦀')\nprint('oh', file=sys.stderr)")
        .await;
    assert_eq!(
        (first.stdout().as_str(), first.stderr().as_str()),
        ("größe 🦀\n", "oh\n")
    );
    assert_eq!(
        timeless(first.finished),
        ended(ExecutionOutcome::Completed, Some(0), 13, 3)
    );
    let second = pod.client.python("x + 22").await;
    assert_eq!(
        second.events,
        [SessionEvent::Display {
            data: Map::from_iter([("text/plain".to_owned(), json!("42"))]),
            result: true,
        }]
    );
}

#[tokio::test]
async fn an_exception_is_told_with_its_traceback_in_plain_text() {
    let pod = Pod::start().await;
    let told = pod
        .client
        .python("print('before')\nraise ValueError('no\\x1b[31m')")
        .await;
    let [
        SessionEvent::Output { .. },
        SessionEvent::Error {
            name,
            value,
            traceback,
        },
    ] = told.events.as_slice()
    else {
        panic!("{told:?}")
    };
    assert_eq!((name.as_str(), value.as_str()), ("ValueError", "no"));
    assert!(
        traceback.iter().all(|line| !line.contains(['\u{1b}', '\n'])),
        "{traceback:?}"
    );
    assert_eq!(traceback.last().map(String::as_str), Some("ValueError: no"));
    assert_eq!(
        timeless(told.finished),
        ended(ExecutionOutcome::Failed, Some(1), 7, 0)
    );
}

#[tokio::test]
async fn rich_results_come_in_all_of_their_media_types() {
    let pod = Pod::start().await;
    let told = pod
        .client
        .python(
            "from IPython.display import display, publish_display_data\n\
             publish_display_data({'text/html': '<b>1</b>', 'application/json': [1, None], 'image/png': 'AAAA', 'x/y': 'z'})\n\
             class Rich:\n  def _repr_markdown_(self): return '# hi'\n  def __repr__(self): return 'rich'\n\
             Rich()",
        )
        .await;
    assert_eq!(
        told.events,
        [
            SessionEvent::Display {
                data: Map::from_iter([
                    ("text/html".to_owned(), json!("<b>1</b>")),
                    ("application/json".to_owned(), json!([1, null])),
                    ("image/png".to_owned(), json!("AAAA")),
                    ("x/y".to_owned(), json!("z")),
                ]),
                result: false,
            },
            SessionEvent::Display {
                data: Map::from_iter([
                    ("text/markdown".to_owned(), json!("# hi")),
                    ("text/plain".to_owned(), json!("rich")),
                ]),
                result: true,
            },
        ]
    );
}

#[tokio::test]
async fn a_question_to_a_person_is_answered_with_an_error() {
    let pod = Pod::start().await;
    let told = pod.client.python("input('who?')").await;
    assert!(
        matches!(&told.events[..], [SessionEvent::Error { name, .. }] if name == "StdinNotImplementedError"),
        "{told:?}"
    );
    assert_eq!(told.finished.outcome, ExecutionOutcome::Failed);
}

#[tokio::test]
async fn the_kernel_starts_in_the_root_with_the_base_environment() {
    let pod = Pod::start().await;
    let told = pod
        .client
        .python("import os; print(os.getcwd(), os.environ['HOME'], os.environ['FROM_SPEC'], 'HOSTNAME' in os.environ)")
        .await;
    let root = pod.root().canonicalize().unwrap();
    assert_eq!(
        told.stdout(),
        format!("{} /home/codeworkspace yes False\n", root.display())
    );
}

#[tokio::test]
async fn a_kernel_that_there_is_not_is_refused_by_name() {
    let pod = Pod::start().await;
    let mut request = python("1");
    request.kernel = "fortran".to_owned();
    let refused = pod.client.events(path::EXECUTE, &request).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (
            ErrorCode::UnknownKernel,
            "there is no kernel `fortran`; there are: test-python"
        )
    );
    let malformed = pod.client.events(path::EXECUTE, &json!({"kernel": 1})).await;
    assert_eq!(code(malformed), ErrorCode::InvalidRequest);
}

#[tokio::test]
async fn a_hundred_megabytes_arrive_whole_in_the_file() {
    let pod = Pod::start().await;
    let told = pod
        .client
        .python("line = '0123456789abcdef' * 63 + '\\n'\nfor _ in range(100):\n  print(line * 1000, end='')")
        .await;
    let whole = 1009 * 1000 * 100;
    assert_eq!(told.finished.outcome, ExecutionOutcome::Completed);
    assert_eq!(
        told.finished.stdout,
        StreamSummary {
            total_bytes: whole,
            file: Some(".output/1.stdout".to_owned()),
        }
    );
    assert_eq!(
        told.stdout().len() as u64,
        codeworkspace_protocol::session::MAX_STREAM_BYTES
    );
    let file = fs_err::read(pod.root().join(".output/1.stdout")).unwrap();
    let line = [&b"0123456789abcdef".repeat(63)[..], b"\n"].concat();
    assert!(file.len() as u64 == whole && file.chunks(line.len()).all(|part| part == line));
    assert_eq!(
        pod.client.python("print('still here')").await.stdout(),
        "still here\n"
    );
}

#[tokio::test]
async fn noise_on_standard_output_is_answered_and_kept_as_it_came() {
    let pod = Pod::start().await;
    // Python carries bytes that are no UTF-8 through text as lone surrogates.
    let code = "import os\nprint(os.fsdecode(bytes(range(256))), end='', flush=True)";
    let told = pod.client.python(code).await;
    let noise: Vec<u8> = (0..=255).collect();
    assert_eq!(told.stdout(), String::from_utf8_lossy(&noise));
    let file = Some(".output/1.stdout".to_owned());
    assert_eq!(
        told.finished.stdout,
        StreamSummary {
            total_bytes: 256,
            file
        }
    );
    assert_eq!(fs_err::read(pod.root().join(".output/1.stdout")).unwrap(), noise);
    // Past Python's own text, the kernel reads what programs print.
    let told = pod
        .client
        .python("import os; os.write(1, bytes(range(256)))")
        .await;
    assert_eq!(told.finished.outcome, ExecutionOutcome::Completed, "{told:?}");
}
