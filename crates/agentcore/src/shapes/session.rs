//! The data plane: sessions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::IgnoredAny};

use super::{
    iso_8601,
    limits::{self, ClientToken, NextToken, SessionId},
    optional_iso_8601,
};
use crate::{
    json,
    query::Query,
    validation::{Faults, ValidationError},
};

/// Items of a list if its client does not say.
const DEFAULT_LIST_LENGTH: u32 = 10;

/// Whether a session can be invoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SessionStatus {
    /// It can.
    Ready,
    /// It has ended.
    Terminated,
}

const STATUSES: [(&str, SessionStatus); 2] = [
    ("READY", SessionStatus::Ready),
    ("TERMINATED", SessionStatus::Terminated),
];

/// The body of `StartCodeInterpreterSession`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartSessionRequest {
    /// 1 to 100 characters.
    pub name: Option<String>,
    /// 1 to 28,800; if the client does not say, the interpreter does. The session ends then, busy or not.
    pub session_timeout_seconds: Option<u32>,
    /// A repeated start with the same token is the same session.
    pub client_token: Option<ClientToken>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartBody {
    name: Option<String>,
    session_timeout_seconds: Option<i64>,
    certificates: Option<IgnoredAny>,
    filesystem_configurations: Option<Vec<IgnoredAny>>,
    client_token: Option<String>,
}

impl StartSessionRequest {
    /// Reads the body.
    pub fn parse(body: &[u8]) -> Result<Self, ValidationError> {
        let body: StartBody = json::parse(body)?;
        let mut faults = Faults::default();
        refuse_mounts(
            body.certificates.is_some(),
            body.filesystem_configurations.as_deref(),
            &mut faults,
        );
        let request = Self {
            name: limits::text("name", body.name, 1..=100, &mut faults),
            session_timeout_seconds: body.session_timeout_seconds.map(|seconds| {
                limits::number("sessionTimeoutSeconds", Some(seconds), 1..=28_800, 1, &mut faults)
            }),
            client_token: ClientToken::checked(body.client_token.as_deref(), &mut faults),
        };
        faults.into_result(request)
    }
}

/// Members that both a session and an interpreter can have, and that there is nothing for. An empty list of file systems asks for
/// nothing; the model has no empty list of certificates.
pub(super) fn refuse_mounts(certificates: bool, file_systems: Option<&[IgnoredAny]>, faults: &mut Faults) {
    if certificates {
        faults.add("certificates", "is not supported: leave it out");
    }
    if file_systems.is_some_and(|list| !list.is_empty()) {
        faults.add("filesystemConfigurations", "is not supported: leave it out");
    }
}

/// The answer to `StartCodeInterpreterSession`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartSessionResponse {
    /// As the client wrote it.
    pub code_interpreter_identifier: String,
    /// The new session, or that of the same client token.
    pub session_id: SessionId,
    /// When it was started.
    #[serde(serialize_with = "iso_8601")]
    pub created_at: Timestamp,
}

/// The query of `GetCodeInterpreterSession`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetSessionRequest {
    /// Which.
    pub session_id: SessionId,
}

impl GetSessionRequest {
    /// Reads the query.
    pub fn parse(query: Query<'_>) -> Result<Self, ValidationError> {
        Ok(Self {
            session_id: session_of(query)?,
        })
    }
}

fn session_of(query: Query<'_>) -> Result<SessionId, ValidationError> {
    let value = query
        .value("sessionId")?
        .ok_or_else(|| ValidationError::field("sessionId", "is needed, in the query string"))?;
    value
        .parse()
        .map_err(|error: super::SessionIdError| ValidationError::field("sessionId", &error.to_string()))
}

/// The answer to `GetCodeInterpreterSession`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GetSessionResponse {
    /// As the client wrote it.
    pub code_interpreter_identifier: String,
    /// As the client wrote it.
    pub session_id: SessionId,
    /// The name it was started with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was started.
    #[serde(serialize_with = "iso_8601")]
    pub created_at: Timestamp,
    /// What it was started with.
    pub session_timeout_seconds: u32,
    /// Whether it can be invoked.
    pub status: SessionStatus,
}

/// The body of `ListCodeInterpreterSessions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListSessionsRequest {
    /// 1 to 100, and 10 if the client does not say.
    pub max_results: u32,
    /// Where to go on.
    pub next_token: Option<NextToken>,
    /// Only sessions of this status.
    pub status: Option<SessionStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListBody {
    max_results: Option<i64>,
    next_token: Option<String>,
    status: Option<String>,
}

impl ListSessionsRequest {
    /// Reads the body.
    pub fn parse(body: &[u8]) -> Result<Self, ValidationError> {
        let body: ListBody = json::parse(body)?;
        let mut faults = Faults::default();
        let request = Self {
            max_results: list_length(body.max_results, &mut faults),
            next_token: NextToken::checked(body.next_token.as_deref(), &mut faults),
            status: limits::choice("status", body.status.as_deref(), &STATUSES, &mut faults),
        };
        faults.into_result(request)
    }
}

pub(super) fn list_length(value: Option<i64>, faults: &mut Faults) -> u32 {
    limits::number("maxResults", value, 1..=100, DEFAULT_LIST_LENGTH, faults)
}

/// The answer to `ListCodeInterpreterSessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListSessionsResponse {
    /// A page of them.
    pub items: Vec<SessionSummary>,
    /// Where the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_token: Option<NextToken>,
}

/// One session of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// As the client wrote it.
    pub code_interpreter_identifier: String,
    /// The session.
    pub session_id: SessionId,
    /// The name it was started with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it can be invoked.
    pub status: SessionStatus,
    /// When it was started.
    #[serde(serialize_with = "iso_8601")]
    pub created_at: Timestamp,
    /// When its status last changed.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_iso_8601")]
    pub last_updated_at: Option<Timestamp>,
}

/// The query and the body of `StopCodeInterpreterSession`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopSessionRequest {
    /// Which.
    pub session_id: SessionId,
    /// A repeated stop with the same token is the same stop.
    pub client_token: Option<ClientToken>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StopBody {
    client_token: Option<String>,
}

impl StopSessionRequest {
    /// Reads the query and the body.
    pub fn parse(query: Query<'_>, body: &[u8]) -> Result<Self, ValidationError> {
        let body: StopBody = json::parse(body)?;
        let mut faults = Faults::default();
        let request = Self {
            session_id: session_of(query)?,
            client_token: ClientToken::checked(body.client_token.as_deref(), &mut faults),
        };
        faults.into_result(request)
    }
}

/// The answer to `StopCodeInterpreterSession`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StopSessionResponse {
    /// As the client wrote it.
    pub code_interpreter_identifier: String,
    /// As the client wrote it.
    pub session_id: SessionId,
    /// When it was stopped.
    #[serde(serialize_with = "iso_8601")]
    pub last_updated_at: Timestamp,
}
