//! The head of a request that claims to be signed.
#![no_main]

use codeworkspace_agentcore::signature::{ExpectedScope, Head, SIGNING_NAME, SignatureError, parse};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 5] = [
    "authorization",
    "host",
    "x-amz-date",
    "date",
    "x-amz-content-sha256",
];

fuzz_target!(|texts: ([&str; 5], &str, Option<&str>)| {
    let (values, path, query) = texts;
    let mut headers = HeaderMap::new();
    for (name, value) in NAMES.into_iter().zip(values) {
        if !value.is_empty()
            && let Ok(value) = HeaderValue::from_str(value)
        {
            headers.append(HeaderName::from_static(name), value);
        }
    }
    let head = Head {
        method: &Method::POST,
        path,
        query,
        headers: &headers,
    };
    let expected = ExpectedScope {
        region: None,
        service: SIGNING_NAME,
    };
    let now: Timestamp = "2026-01-02T03:04:05Z".parse().expect("it is a time");
    match parse(head, now, expected) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(request) => {
            assert!(request.signs("host"));
            let found = request.verify(b"a secret that nobody signed with", &[0; 32]);
            assert!(matches!(
                found,
                Err(SignatureError::Mismatch | SignatureError::WrongBody)
            ));
        }
    }
});
