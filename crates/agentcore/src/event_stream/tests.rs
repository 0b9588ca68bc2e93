use proptest::prelude::*;

use super::*;
use crate::validation::ValidationError;

#[test]
fn a_result_is_an_event() {
    let bytes = result_frame(br#"{"content":[]}"#);
    let (frame, length) = decode(&bytes).unwrap().unwrap();
    assert_eq!(length, bytes.len());
    assert_eq!(frame.header(":message-type"), Some("event"));
    assert_eq!(frame.header(":event-type"), Some("result"));
    assert_eq!(frame.header(":content-type"), Some("application/json"));
    assert_eq!(frame.payload, br#"{"content":[]}"#);
}

#[test]
fn an_error_is_an_exception_of_its_member() {
    let error = ServiceError::from(ValidationError::field("name", "is needed"));
    let (frame, _) = decode(&exception_frame(&error)).unwrap().unwrap();
    assert_eq!(frame.header(":message-type"), Some("exception"));
    assert_eq!(frame.header(":exception-type"), Some("validationException"));
    assert_eq!(frame.payload, error.body());
}

/// What `EventStreamCodec` of the JavaScript SDK encodes for the same headers and payloads.
#[test]
fn frames_are_those_of_the_javascript_sdk() {
    let bytes = |frame: Vec<u8>| {
        let digits: Vec<_> = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.concat()
    };
    assert_eq!(
        bytes(result_frame(br#"{"content":[],"isError":false}"#)),
        "0000007a0000004ca92a2abc0d3a6d6573736167652d747970650700056576656e740b3a6576656e742d74797065070006726573756c740d3a63\
         6f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b22636f6e74656e74223a5b5d2c2269734572726f72223a66616c73\
         657d16071422"
    );
    assert_eq!(
        bytes(exception_frame(&ServiceError::Throttling("slower".to_owned()))),
        "00000085000000612691b1450d3a6d6573736167652d74797065070009657863657074696f6e0f3a657863657074696f6e2d7479706507001374\
         68726f74746c696e67457863657074696f6e0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b226d65737361\
         6765223a22736c6f776572227d0e8b698c"
    );
}

#[test]
fn frames_follow_one_another() {
    let both = [result_frame(b"1"), result_frame(b"22")].concat();
    let (first, length) = decode(&both).unwrap().unwrap();
    let (second, rest) = decode(&both[length..]).unwrap().unwrap();
    assert_eq!((first.payload, second.payload), (b"1".to_vec(), b"22".to_vec()));
    assert_eq!(length + rest, both.len());
    assert_eq!(decode(&[]), Ok(None));
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let frame = |length: u32, headers: u32| {
        let mut bytes = [length.to_be_bytes(), headers.to_be_bytes()].concat();
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes
    };
    for (length, headers) in [(15, 0), (16, 1), (u32::MAX, 0), (1 << 20, 1 << 18), (0, u32::MAX)] {
        assert_eq!(
            decode(&frame(length, headers)),
            Err(FrameError::Length),
            "{length} {headers}"
        );
    }
}

proptest! {
    #[test]
    fn a_payload_survives(payload in any::<Vec<u8>>()) {
        let bytes = result_frame(&payload);
        let (frame, length) = decode(&bytes).unwrap().unwrap();
        prop_assert_eq!(frame.payload, payload);
        prop_assert_eq!(length, bytes.len());
        for end in 0..bytes.len() {
            prop_assert_eq!(decode(&bytes[..end]), Ok(None));
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed(payload in any::<Vec<u8>>(), index in any::<prop::sample::Index>(), bit in 0..8) {
        let mut bytes = result_frame(&payload);
        let index = index.index(bytes.len());
        bytes[index] ^= 1_u8 << bit;
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in any::<Vec<u8>>(), headers in any::<Vec<u8>>()) {
        let _ = decode(&bytes);
        let _ = headers_of(&headers);
    }
}
