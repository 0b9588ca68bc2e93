//! Requests and responses of the operations, with every constraint of the service model. The interpreter that a path names is in
//! [`crate::route::Route`], the tools are in [`crate::tools`].
//!
//! Members that ask for what there is not (file systems, certificates, roles, VPCs) are refused by name: to pass over them would
//! run code elsewhere than the client was told.

mod headers;
mod interpreter;
mod limits;
mod session;
#[cfg(test)]
mod tests;

pub use headers::{SESSION_ID_HEADER, Trace, invoked_session};
pub use interpreter::{
    CreateInterpreterRequest, CreateInterpreterResponse, DeleteInterpreterRequest, DeleteInterpreterResponse,
    GetInterpreterResponse, InterpreterStatus, InterpreterSummary, InterpreterType, ListInterpretersRequest,
    ListInterpretersResponse, NetworkConfiguration, NetworkMode,
};
pub use limits::{ClientToken, NextToken, SessionId, SessionIdError};
pub use session::{
    GetSessionRequest, GetSessionResponse, ListSessionsRequest, ListSessionsResponse, SessionStatus,
    SessionSummary, StartSessionRequest, StartSessionResponse, StopSessionRequest, StopSessionResponse,
};

use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// A body of JSON. Every response is one; `None` is for what cannot happen, a key that is no string.
pub fn to_json(response: &impl Serialize) -> Option<Vec<u8>> {
    serde_json::to_vec(response).ok()
}

/// ISO 8601 in UTC with milliseconds. A number would make the JavaScript SDK throw.
fn iso_8601<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"))
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn optional_iso_8601<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => iso_8601(at, serializer),
        None => serializer.serialize_none(),
    }
}
