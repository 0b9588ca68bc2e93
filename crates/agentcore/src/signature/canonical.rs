//! The canonical request: the one spelling that both sides hash.

use http::{HeaderMap, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use super::{SignatureError, authorization::Authorization};
use crate::query::Query;

/// RFC 3986 leaves these as they are, and so does everything that signs.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

const PATH: &AsciiSet = &VALUE.remove(b'/');

/// All of it but the last line, which is the body's hash.
pub(super) fn head(
    method: &Method,
    path: &str,
    query: Query<'_>,
    headers: &HeaderMap,
    authorization: &Authorization,
) -> Result<Vec<u8>, SignatureError> {
    let mut text = format!("{method}\n{}\n{}\n", canonical_path(path), canonical_query(query)).into_bytes();
    for name in &authorization.signed_headers {
        text.extend_from_slice(name.as_bytes());
        text.push(b':');
        append_values(&mut text, headers, name)?;
        text.push(b'\n');
    }
    text.push(b'\n');
    text.extend_from_slice(authorization.signed_headers.join(";").as_bytes());
    text.push(b'\n');
    Ok(text)
}

/// Without empty and dot segments, and encoded once more than it was received: only S3 signs a path that is encoded once.
pub(super) fn canonical_path(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    let slash = if path.ends_with('/') && !segments.is_empty() {
        "/"
    } else {
        ""
    };
    let normal = format!("/{}{slash}", segments.join("/"));
    percent_encode(normal.as_bytes(), PATH).to_string()
}

/// Each name and value in the one encoding, in the order of the encoded names, then of the values.
pub(super) fn canonical_query(query: Query<'_>) -> String {
    let encoded = |text: &str| {
        let decoded: Vec<u8> = percent_decode_str(text).collect();
        percent_encode(&decoded, VALUE).to_string()
    };
    let mut pieces: Vec<_> = query
        .pieces()
        .map(|(name, value)| (encoded(name), encoded(value)))
        .collect();
    pieces.sort();
    let pieces: Vec<_> = pieces
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pieces.join("&")
}

/// The values of a header with commas between them; runs of space are one space, and none is at the ends.
fn append_values(text: &mut Vec<u8>, headers: &HeaderMap, name: &str) -> Result<(), SignatureError> {
    let mut values = headers.get_all(name).iter().peekable();
    if values.peek().is_none() {
        return Err(SignatureError::SignedButMissing {
            header: name.to_owned(),
        });
    }
    while let Some(value) = values.next() {
        let words: Vec<_> = value
            .as_bytes()
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .collect();
        text.extend_from_slice(&words.join(&b' '));
        if values.peek().is_some() {
            text.push(b',');
        }
    }
    Ok(())
}
