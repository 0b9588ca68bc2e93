//! Paths of URLs, segment by segment.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// The decoded segments of a path that starts with `/`; `None` when one of them is not UTF-8.
pub(crate) fn decode(path: &str) -> Option<Vec<String>> {
    path.strip_prefix('/')?
        .split('/')
        .map(|segment| {
            percent_decode_str(segment)
                .decode_utf8()
                .ok()
                .map(std::borrow::Cow::into_owned)
        })
        .collect()
}

/// Encodes all but unreserved signs and slashes.
pub(crate) fn encode(path: &str) -> String {
    utf8_percent_encode(path, KEPT).to_string()
}
