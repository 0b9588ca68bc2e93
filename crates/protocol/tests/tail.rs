//! The end of a stream: exact count, whole characters, at most 1 KiB.

use codeworkspace_protocol::{MAX_TAIL_BYTES, StreamRecord, StreamTail};
use proptest::prelude::*;

fn record(chunks: &[&[u8]]) -> StreamRecord {
    let mut tail = StreamTail::default();
    for chunk in chunks {
        tail.push(chunk);
    }
    tail.to_record()
}

#[test]
fn a_short_stream_is_kept_whole_with_or_without_a_last_line_end() {
    let whole = |total_bytes, tail: &str| StreamRecord {
        total_bytes,
        tail: tail.to_owned(),
        truncated: false,
    };
    assert_eq!(record(&[]), whole(0, ""));
    assert_eq!(record(&[b"one\n", b"", b"two"]), whole(7, "one\ntwo"));
    let exactly = "x".repeat(MAX_TAIL_BYTES);
    assert_eq!(record(&[exactly.as_bytes()]), whole(1024, &exactly));
}

#[test]
fn of_a_long_stream_the_end_is_kept_and_the_count_is_of_all() {
    let line = b"0123456789abcdef";
    let mut tail = StreamTail::default();
    for _ in 0..100_000 {
        tail.push(line);
    }
    let expected = StreamRecord {
        total_bytes: 1_600_000,
        tail: "0123456789abcdef".repeat(64),
        truncated: true,
    };
    assert_eq!(tail.to_record(), expected);
}

#[test]
fn a_character_that_the_cut_goes_through_is_left_out() {
    let text = "€".repeat(400);
    let tail = record(&[text.as_bytes()]);
    assert_eq!(
        tail,
        StreamRecord {
            total_bytes: 1200,
            tail: "€".repeat(341),
            truncated: true
        }
    );
}

#[test]
fn bytes_that_are_no_text_are_marked_and_still_fit() {
    assert_eq!(record(&[b"a\xff\xfeb"]).tail, "a\u{fffd}\u{fffd}b");
    let noise = record(&[&[0xff; 2000]]);
    assert_eq!(
        noise,
        StreamRecord {
            total_bytes: 2000,
            tail: "\u{fffd}".repeat(341),
            truncated: true
        }
    );
    let short_noise = record(&[&[0xff; 400]]);
    assert_eq!(
        short_noise,
        StreamRecord {
            total_bytes: 400,
            tail: "\u{fffd}".repeat(341),
            truncated: true
        }
    );
}

proptest! {
    #[test]
    fn pieces_do_not_matter(bytes in proptest::collection::vec(any::<u8>(), 0..5000), size in 1_usize..2000) {
        let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
        prop_assert_eq!(record(&chunks), record(&[&bytes]));
    }

    #[test]
    fn the_tail_of_a_text_is_its_longest_suffix_that_fits(text in "\\PC{0,1500}") {
        let kept = record(&[text.as_bytes()]);
        prop_assert!(text.ends_with(&kept.tail));
        prop_assert!(kept.tail.len() <= MAX_TAIL_BYTES);
        prop_assert_eq!(kept.truncated, kept.tail.len() < text.len());
        let next = text[..text.len() - kept.tail.len()].chars().next_back();
        prop_assert!(next.is_none_or(|next| next.len_utf8() + kept.tail.len() > MAX_TAIL_BYTES));
    }
}
