//! The record of a run: it always fits into a termination message, and what a body wrote there instead is never believed.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

use codeworkspace_protocol::{Cause, MAX_RECORD_BYTES, RecordError, RunRecord, RunState, StreamRecord};
use proptest::prelude::*;

const RUNNING: &str = r#"{"version":1,"state":"Running","startedAt":"2026-03-01T10:00:00.25Z",
    "stdout":{"totalBytes":0,"tail":"","truncated":false},"stderr":{"totalBytes":0,"tail":"","truncated":false}}"#;

const EXITED: &str = r#"{"version":1,"state":"Finished","startedAt":"2026-03-01T10:00:00.25Z","finishedAt":"2026-03-01T10:00:02Z","cause":"Exited","exitCode":3,"stdout":{"totalBytes":3,"tail":"hi\n","truncated":false},"stderr":{"totalBytes":90000,"tail":"Traceback","truncated":true},"oomKills":0}"#;

fn exited() -> RunRecord {
    let mut record = RunRecord::running("2026-03-01T10:00:00.25Z".parse().unwrap())
        .finished("2026-03-01T10:00:02Z".parse().unwrap(), Cause::Exited);
    record.exit_code = Some(3);
    record.stdout = StreamRecord {
        total_bytes: 3,
        tail: "hi\n".to_owned(),
        truncated: false,
    };
    record.stderr = StreamRecord {
        total_bytes: 90_000,
        tail: "Traceback".to_owned(),
        truncated: true,
    };
    record.oom_kills = Some(0);
    record
}

fn parse_with(changes: &[(&str, &str)]) -> Result<RunRecord, RecordError> {
    let text = changes.iter().fold(EXITED.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not in the record");
        text.replace(from, to)
    });
    RunRecord::parse(&text)
}

fn contradiction(changes: &[(&str, &str)]) -> &'static str {
    match parse_with(changes) {
        Err(RecordError::Inconsistent(what)) => what,
        other => panic!("{changes:?} gave {other:?}"),
    }
}

#[test]
fn the_format_on_the_wire_is_this() {
    assert_eq!(exited().to_message(), EXITED);
    assert_eq!(RunRecord::parse(EXITED), Ok(exited()));
    let running = RunRecord::parse(RUNNING).unwrap();
    assert_eq!(
        running,
        RunRecord::running("2026-03-01T10:00:00.25Z".parse().unwrap())
    );
    assert_eq!(running.state, RunState::Running);
}

#[test]
fn a_sessions_end_in_order_is_read_back() {
    for cause in [Cause::IdleTimeout, Cause::Stopped] {
        let start = "2026-03-01T10:00:00Z".parse().unwrap();
        let mut record = RunRecord::running(start).finished(start, cause);
        record.exit_code = Some(0);
        record.message = Some("nobody called for 60 s".to_owned());
        assert_eq!(RunRecord::parse(&record.to_message()), Ok(record.clone()));
        assert_eq!(record.container_exit_code(), Some(0));
    }
}

#[test]
fn an_end_before_the_start_is_never_written() {
    let start = "2026-03-01T10:00:00Z".parse().unwrap();
    let record = RunRecord::running(start).finished("2026-03-01T09:00:00Z".parse().unwrap(), Cause::Exited);
    assert_eq!(record.finished_at, Some(start));
}

#[test]
fn tails_of_control_characters_are_shortened_until_they_fit() {
    let mut record = exited();
    record.stdout.tail = "\0".repeat(1024);
    record.stderr.tail = "short\n".to_owned();
    let message = record.to_message();
    let read = RunRecord::parse(&message).unwrap();
    assert!(
        message.len() <= MAX_RECORD_BYTES && message.len() > MAX_RECORD_BYTES - 6,
        "{}",
        message.len()
    );
    assert!(read.stdout.truncated && read.stdout.tail.len() > 400);
    assert_eq!(
        read.stderr,
        StreamRecord {
            tail: "short\n".to_owned(),
            ..record.stderr
        }
    );
}

#[test]
fn two_long_tails_share_the_room() {
    let mut record = exited();
    record.stdout.total_bytes = 5000;
    record.stdout.tail = "\u{1b}".repeat(1024);
    record.stderr.tail = "\u{1}".repeat(1024);
    let read = RunRecord::parse(&record.to_message()).unwrap();
    let (stdout, stderr) = (read.stdout.tail.len(), read.stderr.tail.len());
    assert!(
        stdout.abs_diff(stderr) <= 1 && stdout > 200,
        "{stdout} and {stderr}"
    );
}

#[test]
fn an_endless_message_is_cut_at_its_end_and_leaves_room_for_the_tails() {
    let mut record = exited();
    record.message = Some("\u{7}".repeat(5000));
    record.stdout.tail = "x".repeat(1000);
    record.stdout.total_bytes = 1000;
    let read = RunRecord::parse(&record.to_message()).unwrap();
    let message = read.message.unwrap();
    assert!(message.ends_with('…') && message.len() > 150, "{}", message.len());
    assert_eq!(read.stdout.tail, record.stdout.tail);
}

#[test]
fn a_record_that_contradicts_itself_is_not_believed() {
    let end = r#""finishedAt":"2026-03-01T10:00:02Z","#;
    let ends_with_either = "a body ends with either exitCode or signal";
    let without_body = "without a body there is a message and neither exitCode nor signal";
    let in_order = "a session ends in order with exitCode 0 and a message";
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[("\"Finished\"", "\"Running\"")],
            "finishedAt and cause go with state Finished",
        ),
        (&[(end, "")], "finishedAt and cause go with state Finished"),
        (
            &[(r#""cause":"Exited","#, "")],
            "finishedAt and cause go with state Finished",
        ),
        (&[("10:00:02", "09:00:02")], "finishedAt lies before startedAt"),
        (
            &[("2026-03-01T10:00:00.25Z", "1969-01-01T00:00:00Z")],
            "startedAt lies before 1970",
        ),
        (
            &[(r#""exitCode":3"#, r#""exitCode":256"#)],
            "exitCode is not within 0 to 255",
        ),
        (
            &[(r#""exitCode":3"#, r#""exitCode":-1"#)],
            "exitCode is not within 0 to 255",
        ),
        (
            &[("Exited", "Signalled"), (r#""exitCode":3"#, r#""signal":65"#)],
            "signal is not within 1 to 64",
        ),
        (
            &[(r#""exitCode":3"#, r#""signal":9"#)],
            "Exited goes with exitCode alone",
        ),
        (&[("Exited", "Signalled")], "Signalled goes with signal alone"),
        (
            &[
                ("Exited", "TimedOut"),
                (r#""exitCode":3"#, r#""exitCode":3,"signal":9"#),
            ],
            ends_with_either,
        ),
        (
            &[("Exited", "Terminated"), (r#""exitCode":3,"#, "")],
            ends_with_either,
        ),
        (
            &[("Exited", "SpawnFailed"), (r#""exitCode":3,"#, "")],
            without_body,
        ),
        (
            &[
                ("Exited", "DigestMismatch"),
                (r#""exitCode":3"#, r#""exitCode":3,"message":"no""#),
            ],
            without_body,
        ),
        (&[("Exited", "IdleTimeout")], in_order),
        (
            &[("Exited", "Stopped"), (r#""exitCode":3"#, r#""exitCode":0"#)],
            in_order,
        ),
        (
            &[("Exited", "RegistrationFailed"), (r#""exitCode":3,"#, "")],
            without_body,
        ),
        (
            &[(r#""totalBytes":3"#, r#""totalBytes":0"#)],
            "a tail of a stream without bytes",
        ),
        (
            &[
                (r#""state":"Finished""#, r#""state":"Running""#),
                (end, ""),
                (r#""cause":"Exited","#, ""),
            ],
            "a running body has neither exitCode nor signal",
        ),
    ];
    for (changes, expected) in cases {
        assert_eq!(contradiction(changes), *expected, "{changes:?}");
    }
    let long = "x".repeat(1025);
    assert_eq!(
        contradiction(&[("Traceback", &long)]),
        "a tail is longer than 1 KiB"
    );
}

#[test]
fn a_foreign_or_damaged_message_is_refused_with_its_reason() {
    assert_eq!(
        parse_with(&[("\"version\":1", "\"version\":2")]),
        Err(RecordError::Version("2".to_owned()))
    );
    assert_eq!(
        parse_with(&[("\"version\":1", "\"version\":\"1\"")]),
        Err(RecordError::Version("\"1\"".to_owned()))
    );
    let padded = format!("{EXITED}{}", " ".repeat(MAX_RECORD_BYTES));
    assert_eq!(RunRecord::parse(&padded), Err(RecordError::TooLong(padded.len())));
    let nested = "[".repeat(3000);
    for (message, hint) in [
        ("", "EOF"),
        (&EXITED[..200], "EOF"),
        ("null", "no `version`"),
        (nested.as_str(), "recursion limit"),
        (
            &EXITED.replace("oomKills", "oomkills"),
            "unknown field `oomkills`",
        ),
        (
            &EXITED.replace("Exited", "Succeeded"),
            "unknown variant `Succeeded`",
        ),
        (&EXITED.replace("2026-03-01T10:00:02Z", "yesterday"), "as year"),
        (&EXITED.replace("\"totalBytes\":3,", "\"totalBytes\":-3,"), "-3"),
        (&format!("{EXITED}{EXITED}"), "trailing"),
    ] {
        match RunRecord::parse(message) {
            Err(RecordError::Malformed(reason)) => assert!(reason.contains(hint), "{reason} for {message}"),
            other => panic!("{message} gave {other:?}"),
        }
    }
}

fn stream() -> impl Strategy<Value = StreamRecord> {
    (
        ".{0,200}",
        "[\0-\u{1f}\"\\\\€𝄞]{0,1024}",
        any::<u32>(),
        any::<bool>(),
    )
        .prop_map(|(text, nasty, extra, truncated)| {
            let mut tail = text + &nasty;
            while tail.len() > 1024 {
                tail.pop();
            }
            StreamRecord {
                total_bytes: tail.len() as u64 + u64::from(extra),
                tail,
                truncated,
            }
        })
}

proptest! {
    #[test]
    fn every_record_fits_and_is_read_back(stdout in stream(), stderr in stream(), message in proptest::option::of(".{0,2000}")) {
        let mut record = exited();
        (record.stdout, record.stderr, record.message) = (stdout, stderr, message);
        let text = record.to_message();
        prop_assert!(text.len() <= MAX_RECORD_BYTES, "{} bytes", text.len());
        let read = RunRecord::parse(&text).unwrap();
        for (read, written) in [(&read.stdout, &record.stdout), (&read.stderr, &record.stderr)] {
            prop_assert!(written.tail.ends_with(&read.tail));
            prop_assert_eq!(read.total_bytes, written.total_bytes);
            prop_assert_eq!(read.truncated, written.truncated || read.tail.len() < written.tail.len());
        }
    }

    #[test]
    fn no_bytes_make_reading_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = RunRecord::parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_damaged_record_makes_reading_panic(position in 0..EXITED.len(), replacement in any::<char>()) {
        let mut damaged: Vec<char> = EXITED.chars().collect();
        damaged[position] = replacement;
        let _ = RunRecord::parse(&damaged.into_iter().collect::<String>());
    }
}
