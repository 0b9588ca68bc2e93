use codeworkspace_protocol::session::MAX_STREAM_BYTES;
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::serve::files::Root;

const LIMIT: usize = 1024 * 1024;

fn transcript() -> (TempDir, Arc<Transcript>) {
    let directory = tempfile::tempdir().unwrap();
    let outputs = Outputs {
        root: Arc::new(Root::open(directory.path()).unwrap()),
        prefix: ".output/7".to_owned(),
    };
    (directory, Transcript::new(outputs))
}

fn done() -> End {
    End::new(ExecutionOutcome::Completed).exit_code(0)
}

fn finished(transcript: &Transcript) -> Finished {
    let mut finished = transcript.finished().unwrap();
    finished.execution_time_ms = 0;
    finished
}

async fn heard(transcript: &Arc<Transcript>) -> Vec<SessionEvent> {
    let mut listener = transcript.listen();
    let mut events = Vec::new();
    while let Some(event) = listener.next().await {
        events.push(event);
    }
    events
}

fn output(stream: OutputStream, text: &str) -> SessionEvent {
    SessionEvent::Output {
        stream,
        text: text.to_owned(),
    }
}

#[tokio::test]
async fn everybody_hears_all_from_the_beginning_whenever_they_come() {
    let (_directory, transcript) = transcript();
    let mut early = transcript.listen();
    transcript.output(OutputStream::Stdout, b"on");
    assert_eq!(early.next().await, Some(output(OutputStream::Stdout, "on")));
    transcript.output(OutputStream::Stdout, b"e\n");
    assert_eq!(early.next().await, Some(output(OutputStream::Stdout, "e\n")));
    transcript.output(OutputStream::Stderr, b"oh\n");
    transcript.display(Map::from_iter([("text/html".to_owned(), json!("<b>"))]), true);
    let later = tokio::spawn({
        let transcript = Arc::clone(&transcript);
        async move { heard(&transcript).await }
    });
    transcript.finish(done());
    transcript.output(OutputStream::Stdout, b"too late");
    transcript.finish(End::new(ExecutionOutcome::Died));
    let events = later.await.unwrap();
    assert_eq!(
        events[..3],
        [
            output(OutputStream::Stdout, "one\n"),
            output(OutputStream::Stderr, "oh\n"),
            SessionEvent::Display {
                data: Map::from_iter([("text/html".to_owned(), json!("<b>"))]),
                result: true
            },
        ]
    );
    let SessionEvent::Finished(end) = &events[3] else {
        panic!("{events:?}")
    };
    assert_eq!(Some(end), transcript.finished().as_ref());
    assert_eq!(end.outcome, ExecutionOutcome::Completed);
    assert_eq!((end.stdout.total_bytes, end.stderr.total_bytes), (4, 3));
    assert_eq!(heard(&transcript).await, events);
    assert_eq!(early.next().await, Some(events[1].clone()));
}

#[tokio::test]
async fn a_long_stream_is_whole_in_its_file_and_the_beginning_is_told() {
    let (directory, transcript) = transcript();
    let line = "0123456789abcde\n".repeat(1000);
    for _ in 0..100 {
        transcript.output(OutputStream::Stdout, line.as_bytes());
    }
    transcript.finish(done());
    let file = Some(".output/7.stdout".to_owned());
    assert_eq!(
        finished(&transcript).stdout,
        StreamSummary {
            total_bytes: 1_600_000,
            file
        }
    );
    let (told, _) = transcript.text(OutputStream::Stdout);
    assert_eq!(told.len() as u64, MAX_STREAM_BYTES);
    let whole = fs_err::read_to_string(directory.path().join(".output/7.stdout")).unwrap();
    assert_eq!(whole, line.repeat(100));
    assert_eq!(told, whole[..told.len()]);
}

#[tokio::test]
async fn a_stream_of_exactly_the_limit_needs_no_file() {
    let (directory, transcript) = transcript();
    transcript.output(OutputStream::Stderr, &vec![b'x'; LIMIT]);
    transcript.finish(done());
    assert_eq!(finished(&transcript).stderr.file, None);
    assert!(!directory.path().join(".output").exists());
}

#[tokio::test]
async fn what_is_no_text_is_told_with_marks_and_kept_as_it_is() {
    let (directory, transcript) = transcript();
    let noise: Vec<u8> = (0..=255).collect();
    transcript.output(OutputStream::Stdout, &noise);
    transcript.finish(done());
    assert_eq!(
        transcript.text(OutputStream::Stdout).0,
        String::from_utf8_lossy(&noise)
    );
    assert_eq!(finished(&transcript).stdout.total_bytes, 256);
    assert_eq!(
        fs_err::read(directory.path().join(".output/7.stdout")).unwrap(),
        noise
    );
}

#[tokio::test]
async fn a_stream_that_cannot_be_kept_says_so() {
    let (directory, transcript) = transcript();
    fs_err::write(directory.path().join(".output"), "in the way").unwrap();
    transcript.output(OutputStream::Stdout, &vec![b'x'; LIMIT + 1]);
    transcript.output(OutputStream::Stdout, b"more");
    transcript.finish(done().remark("first"));
    let end = finished(&transcript);
    assert_eq!(
        end.stdout,
        StreamSummary {
            total_bytes: LIMIT as u64 + 5,
            file: None
        }
    );
    let message = end.message.unwrap();
    assert!(
        message.starts_with("first; the whole standard output could not be kept in a file: "),
        "{message}"
    );
}

#[tokio::test]
async fn small_writes_of_two_streams_in_turn_stay_bounded() {
    let (directory, transcript) = transcript();
    for _ in 0..MAX_EVENTS {
        transcript.output(OutputStream::Stdout, b"o");
        transcript.output(OutputStream::Stderr, b"e");
    }
    transcript.finish(done());
    assert_eq!(heard(&transcript).await.len(), MAX_EVENTS + 1);
    let end = finished(&transcript);
    assert_eq!(end.stdout.total_bytes, MAX_EVENTS as u64);
    let whole = fs_err::read(directory.path().join(end.stdout.file.unwrap())).unwrap();
    assert_eq!(whole, vec![b'o'; MAX_EVENTS]);
    // The last event that there was room for is of this stream and grew on.
    let told = transcript.text(OutputStream::Stderr).0;
    assert_eq!((told, end.stderr.file), ("e".repeat(MAX_EVENTS), None));
}

#[tokio::test]
async fn results_in_excess_are_left_out_and_counted() {
    let (_directory, transcript) = transcript();
    let large = Map::from_iter([("image/png".to_owned(), json!("A".repeat(MAX_DISPLAY_BYTES / 2)))]);
    for _ in 0..3 {
        transcript.display(large.clone(), false);
    }
    transcript.finish(done());
    assert_eq!(
        finished(&transcript).message.as_deref(),
        Some("2 rich results were left out: they are too large, too many, or no JSON")
    );
}

#[tokio::test]
async fn an_error_loses_its_colours_and_keeps_its_end() {
    let (_directory, transcript) = transcript();
    let frames = [
        "\u{1b}[31mTraceback\u{1b}[0m\nline 2".to_owned(),
        "ValueError: no".to_owned(),
    ];
    transcript.error("ValueError", "n\u{1b}[1mo", &frames);
    let endless: Vec<String> = (0..10).map(|frame| format!("{frame}").repeat(100_000)).collect();
    transcript.error("X", "", &endless);
    transcript.error("X", "", &endless);
    transcript.error("NotTold", "", &[]);
    transcript.finish(done());
    let events = heard(&transcript).await;
    assert_eq!(
        events[0],
        SessionEvent::Error {
            name: "ValueError".to_owned(),
            value: "no".to_owned(),
            traceback: ["Traceback", "line 2", "ValueError: no"]
                .map(str::to_owned)
                .to_vec(),
        }
    );
    let SessionEvent::Error { traceback, .. } = &events[1] else {
        panic!("{events:?}")
    };
    assert_eq!(traceback[0], "… 8 earlier lines left out");
    assert_eq!(traceback.len(), 3);
    assert_eq!(events.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_unheard_when_nobody_listened_for_all_of_the_time() {
    let (_directory, transcript) = transcript();
    let limit = Duration::from_secs(10);
    let unheard = |time| timeout(time, transcript.unheard(limit));
    let first = transcript.listen();
    assert!(unheard(limit * 100).await.is_err());
    drop(first);
    assert!(unheard(limit * 9 / 10).await.is_err());
    let second = transcript.listen();
    assert!(unheard(limit * 100).await.is_err());
    drop(second);
    assert!(unheard(limit * 11 / 10).await.is_ok());
}

proptest! {
    #[test]
    fn whoever_listens_when_gets_the_same_text(
        parts in proptest::collection::vec((any::<bool>(), "[a-zé🦀]{0,8}"), 0..20), joins in 0usize..20,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_directory, transcript) = transcript();
            let mut listener = None;
            let mut told = [String::new(), String::new()];
            let mut take = |event| if let SessionEvent::Output { stream, text } = event {
                told[usize::from(stream == OutputStream::Stderr)].push_str(&text);
            };
            for (index, (is_error, text)) in parts.iter().enumerate() {
                if index == joins {
                    listener = Some(transcript.listen());
                }
                let stream = if *is_error { OutputStream::Stderr } else { OutputStream::Stdout };
                transcript.output(stream, text.as_bytes());
                if let Some(listener) = &mut listener {
                    while let News::Event(event) = listener.take() {
                        take(event);
                    }
                }
            }
            transcript.finish(done());
            let mut listener = listener.unwrap_or_else(|| transcript.listen());
            while let Some(event) = listener.next().await {
                take(event);
            }
            for (told, is_error) in told.iter().zip([false, true]) {
                let printed: String = parts.iter().filter(|(error, _)| *error == is_error).map(|(_, text)| text.as_str()).collect();
                assert_eq!(*told, printed);
            }
        });
    }
}
