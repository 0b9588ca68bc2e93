//! The stream of a volume's files: whole with its report, or an error.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::{Read as _, Write as _};

use codeworkspace_protocol::{
    FailedReading, FinishedReading, MAX_REPORT_BYTES, ReadFailure, ReadReport, ReadingReader, ReadingWriter,
};
use proptest::prelude::*;

fn finished() -> ReadReport {
    ReadReport::Finished(FinishedReading {
        digest: "sha256:00".to_owned(),
        skipped: vec!["link `a` to `/etc`".to_owned()],
        skipped_total: 1,
    })
}

fn stream(bytes: &[u8], report: &ReadReport) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut writer = ReadingWriter::begin(&mut stream).unwrap();
    writer.write_all(bytes).unwrap();
    writer.end(report).unwrap();
    stream
}

fn read(stream: &[u8]) -> Result<(Vec<u8>, ReadReport), String> {
    let mut reader = ReadingReader::new(stream);
    let mut bytes = Vec::new();
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    let report = reader.report().map_err(|error| error.to_string())?;
    Ok((bytes, report))
}

#[test]
fn bytes_and_report_arrive_as_they_were_sent() {
    let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_be_bytes).collect();
    assert_eq!(read(&stream(&bytes, &finished())), Ok((bytes, finished())));
    assert_eq!(read(&stream(b"", &finished())), Ok((Vec::new(), finished())));
}

#[test]
fn a_stream_that_breaks_off_anywhere_is_never_taken_for_a_whole_one() {
    let whole = stream(b"some bytes", &finished());
    for length in 0..whole.len() {
        read(&whole[..length]).unwrap_err();
    }
}

#[test]
fn the_report_of_a_failure_is_found_although_nobody_reads_what_came_before() {
    let failed = ReadReport::Failed(FailedReading {
        reason: ReadFailure::Changed,
        message: "`a` changed".to_owned(),
    });
    let stream = stream(&vec![7; 100_000], &failed);
    assert_eq!(ReadingReader::new(&stream[..]).report().unwrap(), failed);
}

#[test]
fn something_else_than_a_stream_is_named() {
    let cases: [(&[u8], &str); 4] = [
        (
            b"sh: runner: not found, or another program",
            "the stream does not begin like one of this version's runner",
        ),
        (
            b"codeworkspace-reading 1\nx\0\0\0\x01.",
            "the stream has a malformed frame",
        ),
        (
            b"codeworkspace-reading 1\np\xff\xff\xff\xff",
            "the stream has a malformed frame",
        ),
        (
            b"codeworkspace-reading 1\nr\0\0\0\x02{}",
            "the stream's report is malformed",
        ),
    ];
    for (bytes, message) in cases {
        assert_eq!(read(bytes), Err(message.to_owned()));
    }
}

proptest! {
    #[test]
    fn a_report_always_fits(message in any::<String>(), skipped in proptest::collection::vec(any::<String>(), 0..40), factor in 1..200_usize) {
        for report in [
            ReadReport::Failed(FailedReading { reason: ReadFailure::Refused, message: message.repeat(factor) }),
            ReadReport::Finished(FinishedReading {
                digest: "sha256:00".to_owned(),
                skipped: skipped.iter().map(|link| link.repeat(factor)).collect(),
                skipped_total: 40,
            }),
        ] {
            let stream = stream(b"", &report);
            prop_assert!(stream.len() <= MAX_REPORT_BYTES + 64);
            prop_assert!(read(&stream).is_ok());
        }
    }

    #[test]
    fn no_stream_is_too_strange_to_be_answered(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&tail);
        let _ = read(&[b"codeworkspace-reading 1\n", &tail[..]].concat());
    }
}
