use http::HeaderValue;
use jiff::Timestamp;
use proptest::prelude::*;

use super::{authorization::Authorization, canonical, *};

const SIGNATURE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

const SCOPE: &str = "CWKEXAMPLE0123456/20260102/us-east-1/bedrock-agentcore/aws4_request";

fn written(credential: &str, headers: &str, signature: &str) -> String {
    format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={headers}, Signature={signature}")
}

fn parsed(headers: &[(&'static str, &str)]) -> Result<SignedRequest, SignatureError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    let head = Head {
        method: &Method::PUT,
        path: "/code-interpreters",
        query: None,
        headers: &map,
    };
    let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let expected = ExpectedScope {
        region: None,
        service: SIGNING_NAME,
    };
    parse(head, now, expected)
}

#[test]
fn each_part_of_the_header_is_read() {
    let text = written(SCOPE, "host;x-amz-date", SIGNATURE);
    let parts: Authorization = text.parse().unwrap();
    assert_eq!(parts.access_key_id.as_str(), "CWKEXAMPLE0123456");
    assert_eq!(parts.scope.to_string(), &SCOPE["CWKEXAMPLE0123456/".len()..]);
    assert_eq!(parts.signed_headers, ["host", "x-amz-date"]);
    assert_eq!(hexadecimal(&parts.signature), SIGNATURE);
    let tight = text.replace(", ", ",").replacen(' ', "  ", 1);
    assert_eq!(tight.parse(), Ok(parts));
}

#[test]
fn a_header_of_another_form_is_incomplete() {
    let good = written(SCOPE, "host", SIGNATURE);
    let cases = [
        String::new(),
        "Bearer token".to_owned(),
        "AWS4-HMAC-SHA256".to_owned(),
        good.replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"),
        good.replace("AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA256"),
        good.replace("Credential", "credential"),
        good.replace("Signature=", "Signatur="),
        format!("{good}, Signature={SIGNATURE}"),
        format!("{good},"),
        written(SCOPE, "host", &SIGNATURE.to_uppercase()),
        written(SCOPE, "host", &SIGNATURE[1..]),
        written(SCOPE, "host", &format!("{SIGNATURE}00")),
        written(SCOPE, "host", ""),
        written(SCOPE, "", SIGNATURE),
        written(SCOPE, "Host", SIGNATURE),
        written(SCOPE, "host;", SIGNATURE),
        written(SCOPE, "host;host", SIGNATURE),
        written(SCOPE, "x-amz-date;host", SIGNATURE),
        written(&SCOPE.replace("aws4_request", "aws4"), "host", SIGNATURE),
        written(&format!("{SCOPE}/x"), "host", SIGNATURE),
        written(&SCOPE.replace("20260102", "2026012"), "host", SIGNATURE),
        written(&SCOPE.replace("us-east-1", ""), "host", SIGNATURE),
        written(&SCOPE.replace("us-east-1", "US"), "host", SIGNATURE),
        written(&SCOPE.replace("CWKEXAMPLE0123456", "short"), "host", SIGNATURE),
        written(
            &SCOPE.replace("CWKEXAMPLE0123456", "../../0123456789"),
            "host",
            SIGNATURE,
        ),
        written(&SCOPE.replace('C', &"C".repeat(129)), "host", SIGNATURE),
        written(SCOPE, &"a".repeat(5000), SIGNATURE),
    ];
    for text in cases {
        let error = text.parse::<Authorization>().unwrap_err();
        assert_eq!(error.name(), "IncompleteSignatureException", "{text}: {error}");
    }
}

#[test]
fn what_is_wrong_around_the_signature_has_its_own_error() {
    let good = written(SCOPE, "date;host;x-amz-date", SIGNATURE);
    let authorization = ("authorization", good.as_str());
    let host = ("host", "localhost:8080");
    let date = ("x-amz-date", "20260102T030405Z");
    let repeated = |header| SignatureError::Repeated { header };
    let not_signed = written(SCOPE, "x-amz-date", SIGNATURE);
    let cases = [
        (vec![host, date], SignatureError::Missing),
        (
            vec![authorization, authorization, host, date],
            repeated("authorization"),
        ),
        (vec![authorization, host, date, date], repeated("x-amz-date")),
        (
            vec![("authorization", "AWS4-HMAC-SHA256 é"), host, date],
            SignatureError::NotText {
                header: "authorization",
            },
        ),
        (vec![authorization, host], SignatureError::NoDate),
        (
            vec![authorization, host, ("x-amz-date", "2026-01-02T03:04:05Z")],
            SignatureError::NoDate,
        ),
        (
            vec![authorization, host, ("x-amz-date", "20261302T030405Z")],
            SignatureError::NoDate,
        ),
        (
            vec![authorization, host, ("date", "yesterday")],
            SignatureError::NoDate,
        ),
        (
            vec![authorization, host, ("x-amz-date", "20260103T030405Z")],
            SignatureError::WrongDay,
        ),
        (
            vec![authorization, host, date],
            SignatureError::SignedButMissing {
                header: "date".to_owned(),
            },
        ),
        (
            vec![("authorization", not_signed.as_str()), host, date],
            SignatureError::NotSigned {
                header: "host".to_owned(),
            },
        ),
        (
            vec![authorization, host, date, ("x-amz-content-sha256", "e3b0")],
            SignatureError::WrongBody,
        ),
    ];
    for (headers, expected) in cases {
        assert_eq!(parsed(&headers), Err(expected), "{headers:?}");
    }
}

#[test]
fn the_clocks_differences_are_told_with_times() {
    let good = written(SCOPE, "host;x-amz-date", SIGNATURE);
    let at = |date| {
        parsed(&[("authorization", &good), ("host", "x"), ("x-amz-date", date)])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        at("20260102T020000Z"),
        "signature expired: 20260102T020000Z is now earlier than 20260102T025905Z (20260102T030405Z - 5 min.)"
    );
    assert_eq!(
        at("20260102T040000Z"),
        "signature not yet current: 20260102T040000Z is still later than 20260102T030905Z (20260102T030405Z + 5 min.)"
    );
}

#[test]
fn a_path_is_encoded_twice_and_has_no_dots() {
    for (path, expected) in [
        ("", "/"),
        ("/", "/"),
        ("/a%3Ab/c", "/a%253Ab/c"),
        ("//a/./b/../c/", "/a/c/"),
        ("/../../a", "/a"),
        ("/..", "/"),
        ("/a~b-c_d.e", "/a~b-c_d.e"),
        ("/é+", "/%C3%A9%2B"),
    ] {
        assert_eq!(canonical::canonical_path(path), expected, "{path}");
    }
}

proptest! {
    #[test]
    fn a_canonical_query_has_one_spelling(pairs in prop::collection::vec((".{0,8}", ".{0,8}"), 0..6)) {
        let raw = |pairs: &[(String, String)]| {
            let all = percent_encoding::NON_ALPHANUMERIC;
            let encoded = |text: &str| percent_encoding::utf8_percent_encode(text, all).to_string().to_lowercase();
            let pieces: Vec<_> = pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
            pieces.join("&")
        };
        let pairs: Vec<_> = pairs.into_iter().map(|(name, value)| (name.to_lowercase(), value.to_lowercase())).collect();
        let written = raw(&pairs);
        let once = canonical::canonical_query(Query::new(Some(&written)));
        prop_assert_eq!(&canonical::canonical_query(Query::new(Some(&once))), &once);
        let reversed: Vec<_> = pairs.iter().rev().cloned().collect();
        let written = raw(&reversed);
        prop_assert_eq!(&canonical::canonical_query(Query::new(Some(&written))), &once);
        let mut decoded: Vec<_> = Query::new(Some(&once))
            .pieces()
            .map(|(name, value)| [name, value].map(|text| percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned()))
            .map(|[name, value]| (name, value))
            .collect();
        decoded.sort();
        let mut pairs = pairs;
        pairs.sort();
        prop_assert_eq!(decoded, pairs);
    }

    #[test]
    fn no_header_is_too_strange(text in "(AWS4-HMAC-SHA256 )?.{0,80}", parts in "[Ca-z=/;, 0-9]{0,80}") {
        for text in [&text, &parts, &format!("AWS4-HMAC-SHA256 Credential={parts}")] {
            if let Ok(found) = text.parse::<Authorization>() {
                prop_assert!(found.signed_headers.is_sorted());
            }
        }
    }

    #[test]
    fn hexadecimal_goes_both_ways(bytes in any::<[u8; 32]>()) {
        prop_assert_eq!(from_hexadecimal(&hexadecimal(&bytes)), Some(bytes));
    }
}
