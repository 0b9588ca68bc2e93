//! Each recorded request, changed in one place.

use codeworkspace_agentcore::signature::{self, ExpectedScope, Head, SignatureError};
use http::Method;
use jiff::SignedDuration;

use crate::recorded::{Recording, Request};

/// Every request with the answer to it after a change, which must be none.
fn refused(change: impl Fn(&Request) -> Vec<Request>) -> Vec<SignatureError> {
    let recording = Recording::read();
    let mut errors = Vec::new();
    for request in &recording.requests {
        for changed in change(request) {
            let found = changed.verify(&recording.secret, request.signed_at());
            assert_ne!(found, Ok(()), "{}: a change was not noticed", request.name);
            errors.extend(found.err());
        }
    }
    assert!(!errors.is_empty());
    errors
}

#[test]
fn a_changed_value_of_any_signed_header_is_noticed() {
    refused(|request| {
        let changed = |name: String| {
            let value = request.headers[&name].to_str().unwrap_or("näme");
            let other = format!("{value}0");
            request.with_header(&name, &other)
        };
        request.signed_headers().into_iter().map(changed).collect()
    });
}

#[test]
fn a_date_that_is_another_is_noticed_within_the_window_too() {
    let errors = refused(|request| {
        let later = request.signed_at() + SignedDuration::from_secs(1);
        let value = later.strftime("%Y%m%dT%H%M%SZ").to_string();
        let name = if request.headers.contains_key("x-amz-date") {
            "x-amz-date"
        } else {
            "date"
        };
        vec![request.with_header(name, &value)]
    });
    assert!(errors.iter().all(|error| *error == SignatureError::Mismatch));
}

#[test]
fn a_signed_header_that_is_gone_is_noticed() {
    refused(|request| {
        let without = |name: String| {
            let mut changed = request.clone();
            changed.headers.remove(&name);
            changed
        };
        request.signed_headers().into_iter().map(without).collect()
    });
}

#[test]
fn a_signed_header_that_is_repeated_is_noticed() {
    refused(|request| {
        let twice = |name: String| {
            let mut changed = request.clone();
            let value = changed.headers[&name].clone();
            let name: http::HeaderName = name.parse().unwrap();
            changed.headers.append(name, value);
            changed
        };
        request.signed_headers().into_iter().map(twice).collect()
    });
}

#[test]
fn a_changed_path_query_method_or_body_is_noticed() {
    refused(|request| {
        let mut changed = vec![request.clone(); 6];
        changed[0].path.push_str("/x");
        changed[1].path = request.path.replacen('c', "%63", 1);
        changed[2].query = Some(format!("{}&x=1", request.query.as_deref().unwrap_or_default()));
        changed[3].method = Method::PATCH;
        changed[4].body.push(b' ');
        changed[5].body.insert(0, b'\n');
        if let Some(query) = &request.query {
            let mut other = request.clone();
            other.query = Some(query.replacen('=', "=0", 1));
            changed.push(other);
        }
        changed
    });
}

#[test]
fn any_other_signature_is_noticed() {
    let errors = refused(|request| {
        let (head, signature) = request.authorization().split_once("Signature=").unwrap();
        let other = |index: usize| {
            let mut digits = signature.to_owned().into_bytes();
            digits[index] = if digits[index] == b'0' { b'1' } else { b'0' };
            let value = format!("{head}Signature={}", String::from_utf8(digits).unwrap());
            request.with_header("authorization", &value)
        };
        (0..64).map(other).collect()
    });
    assert!(errors.iter().all(|error| *error == SignatureError::Mismatch));
}

#[test]
fn another_secret_is_noticed() {
    let recording = Recording::read();
    let long = recording.secret.repeat(3);
    for secret in ["", "secret", &recording.secret[1..], &long] {
        for request in &recording.requests {
            let found = request.verify(secret, request.signed_at());
            assert_eq!(found, Err(SignatureError::Mismatch), "{}", request.name);
        }
    }
}

#[test]
fn a_header_that_must_be_signed_cannot_be_added() {
    for name in ["x-amzn-code-interpreter-session-id", "x-amz-target"] {
        let errors = refused(|request| {
            if request.headers.contains_key(name) {
                return Vec::new();
            }
            vec![request.with_header(name, "value")]
        });
        let expected = SignatureError::NotSigned {
            header: name.to_owned(),
        };
        assert!(errors.iter().all(|error| *error == expected));
    }
}

#[test]
fn an_unsigned_body_and_a_session_token_are_refused_before_the_body_is_read() {
    let recording = Recording::read();
    for request in &recording.requests {
        for payload in [
            "UNSIGNED-PAYLOAD",
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        ] {
            let changed = request.with_header("x-amz-content-sha256", payload);
            assert_eq!(
                changed.parse(request.signed_at()),
                Err(SignatureError::UnsignedBody)
            );
        }
        let changed = request.with_header("x-amz-security-token", "token");
        assert_eq!(
            changed.parse(request.signed_at()),
            Err(SignatureError::SecurityToken)
        );
    }
}

#[test]
fn another_service_or_region_is_refused_by_name() {
    let recording = Recording::read();
    let request = &recording.requests[0];
    let parse = |region, service| {
        let head = Head {
            method: &request.method,
            path: &request.path,
            query: request.query.as_deref(),
            headers: &request.headers,
        };
        let expected = ExpectedScope { region, service };
        signature::parse(head, request.signed_at(), expected).map(|_| ())
    };
    assert_eq!(parse(Some("us-east-1"), signature::SIGNING_NAME), Ok(()));
    let service = parse(None, "execute-api").unwrap_err();
    assert_eq!(
        service.to_string(),
        "credential should be scoped to correct service: 'execute-api'"
    );
    let region = parse(Some("eu-west-1"), signature::SIGNING_NAME).unwrap_err();
    assert_eq!(
        region.to_string(),
        "credential should be scoped to a valid region: 'eu-west-1'"
    );
}
