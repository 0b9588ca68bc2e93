//! Members that travel in headers.

use http::HeaderMap;

use super::SessionId;
use crate::validation::{Faults, ValidationError};

/// The header that names the session of an invocation, in the request and in its answer.
pub const SESSION_ID_HEADER: &str = "x-amzn-code-interpreter-session-id";

const TRACE_ID: &str = "x-amzn-trace-id";

const TRACE_PARENT: &str = "traceparent";

/// Characters of a tracing header at most.
const MAX_TRACE_LENGTH: usize = 1024;

/// The session that an invocation is for. The model lets clients leave it out; here every session is started first.
pub fn invoked_session(headers: &HeaderMap) -> Result<SessionId, ValidationError> {
    let value = only(headers, SESSION_ID_HEADER, "sessionId")?.ok_or_else(|| {
        let message = format!(
            "is needed, in the header {SESSION_ID_HEADER}: start a session with StartCodeInterpreterSession"
        );
        ValidationError::field("sessionId", &message)
    })?;
    value
        .parse()
        .map_err(|error: super::SessionIdError| ValidationError::field("sessionId", &error.to_string()))
}

/// What ties a request to its client's trace; for logs. Starting, invoking and stopping take it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// `X-Amzn-Trace-Id`
    pub id: Option<String>,
    /// `traceparent`, as W3C defines it.
    pub parent: Option<String>,
}

impl Trace {
    /// Reads both headers.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, ValidationError> {
        let mut faults = Faults::default();
        let mut read = |name: &str, member: &str| -> Result<Option<String>, ValidationError> {
            let value = only(headers, name, member)?;
            if value.is_some_and(|value| value.len() > MAX_TRACE_LENGTH) {
                faults.add(member, "must have at most 1024 characters");
            }
            Ok(value.map(str::to_owned))
        };
        let trace = Self {
            id: read(TRACE_ID, "traceId")?,
            parent: read(TRACE_PARENT, "traceParent")?,
        };
        faults.into_result(trace)
    }
}

fn only<'a>(headers: &'a HeaderMap, name: &str, member: &str) -> Result<Option<&'a str>, ValidationError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(ValidationError::field(member, "must stand in one header"));
    }
    value
        .to_str()
        .map(|text| Some(text.trim()))
        .map_err(|_| ValidationError::field(member, "must be ASCII"))
}
