//! Refusals, as RFC 9457 wants them.

use std::borrow::Cow;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use codeworkspace_protocol::session::{ErrorCode, SessionError};
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use super::access::AccessError;
use crate::gateway::claim::ClaimError;
use crate::gateway::rates::TooOften;
use crate::gateway::sessions::SessionsError;

/// Media type of a refusal's body.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Why a call was refused. The code is for programs, and stays; the detail is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The status of the answer.
    pub status: StatusCode,
    /// What kind of problem it is.
    pub code: Cow<'static, str>,
    /// What, where and what to do.
    pub detail: String,
}

/// The body of a refusal (RFC 9457).
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemBody {
    /// Always `about:blank`: `code` says what kind of problem it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// What kind of problem it is; for programs.
    code: String,
    /// What, where and what to do; for people.
    detail: String,
}

impl Problem {
    /// Puts a problem together.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code: code.into(),
            detail: detail.into(),
        }
    }

    /// A request that is wrong in itself.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidRequest", detail)
    }

    /// A session that is not there.
    pub fn session_not_found(id: &str) -> Self {
        let detail = format!("there is no session {id} of this interpreter");
        Self::new(StatusCode::NOT_FOUND, "SessionNotFound", detail)
    }

    /// The body.
    pub fn body(&self) -> ProblemBody {
        ProblemBody {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Refused"),
            status: self.status.as_u16(),
            code: self.code.clone().into_owned(),
            detail: self.detail.clone(),
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        headers
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body()).unwrap_or_default();
        (self.status, self.headers(), Body::from(body)).into_response()
    }
}

impl From<AccessError> for Problem {
    fn from(error: AccessError) -> Self {
        let (status, code) = match &error {
            AccessError::NoToken | AccessError::BadToken => (StatusCode::UNAUTHORIZED, "Unauthenticated"),
            AccessError::Forbidden { .. } => (StatusCode::FORBIDDEN, "Forbidden"),
            AccessError::Unknown => (StatusCode::SERVICE_UNAVAILABLE, "ApiServerUnavailable"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<TooOften> for Problem {
    fn from(error: TooOften) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooOften", error.to_string())
    }
}

impl From<SessionsError> for Problem {
    fn from(error: SessionsError) -> Self {
        let detail = error.to_string();
        let (status, code) = match error {
            SessionsError::InterpreterNotFound(_) => (StatusCode::NOT_FOUND, "InterpreterNotFound"),
            SessionsError::InterpreterUnavailable { .. } => (StatusCode::CONFLICT, "InterpreterUnavailable"),
            SessionsError::NotActive { id, reason } if reason == "NotFound" => {
                return Self::session_not_found(&id);
            }
            SessionsError::NotActive { .. } | SessionsError::Claim(ClaimError::Ended(_)) => {
                (StatusCode::GONE, "SessionEnded")
            }
            SessionsError::TimeoutTooLong { .. } => (StatusCode::BAD_REQUEST, "InvalidRequest"),
            SessionsError::TokenReused => {
                let detail = "this Idempotency-Key was used before with other parameters: use a new one for a new session";
                return Self::new(StatusCode::CONFLICT, "KeyReused", detail);
            }
            SessionsError::CapacityReached { .. } => (StatusCode::PAYMENT_REQUIRED, "CapacityReached"),
            SessionsError::QuotaReached { .. } => (StatusCode::PAYMENT_REQUIRED, "QuotaReached"),
            SessionsError::NoAnswer => (StatusCode::BAD_GATEWAY, "NoAnswer"),
            SessionsError::Claim(ClaimError::NotYet(_)) => {
                let detail = "no pod became ready in time; the session still waits for one, so repeat the call with the same Idempotency-Key";
                return Self::new(StatusCode::SERVICE_UNAVAILABLE, "NoPodYet", detail);
            }
            SessionsError::Claim(ClaimError::Crowded) => (StatusCode::SERVICE_UNAVAILABLE, "Crowded"),
            SessionsError::Claim(ClaimError::Api(cause)) | SessionsError::Api(cause) => return cause.into(),
        };
        Self::new(status, code, detail)
    }
}

impl From<kube::Error> for Problem {
    /// What the API server says is for the log: its messages name objects of the cluster.
    fn from(error: kube::Error) -> Self {
        tracing::warn!(%error, "the API server refused");
        match &error {
            kube::Error::Api(status) if status.code == 403 && status.message.contains("exceeded quota") => {
                let detail = "the namespace has no quota left";
                Self::new(StatusCode::PAYMENT_REQUIRED, "QuotaReached", detail)
            }
            kube::Error::Api(status) if status.code == 404 => {
                let detail = "the namespace does not exist, or the product is not installed completely";
                Self::new(StatusCode::NOT_FOUND, "NamespaceNotFound", detail)
            }
            _ => {
                let detail = "the cluster's API server did not answer as it should; try again";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "ApiServerUnavailable", detail)
            }
        }
    }
}

impl From<SessionError> for Problem {
    /// What the session's runner refused keeps its code.
    fn from(error: SessionError) -> Self {
        if matches!(error.code, ErrorCode::Stopping | ErrorCode::BoundToAnother) {
            return Self::new(StatusCode::GONE, "SessionEnded", "the session is ending");
        }
        Self {
            status: StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code: format!("{:?}", error.code).into(),
            detail: error.message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_have_one_form_on_the_wire() {
        let problems = [
            Problem::from(AccessError::NoToken),
            Problem::from(AccessError::Forbidden {
                user: "system:serviceaccount:team:agent".to_owned(),
                verb: "create",
                namespace: "team".to_owned(),
            }),
            Problem::from(SessionsError::NotActive {
                id: "abc".to_owned(),
                reason: "NotFound".to_owned(),
            }),
            Problem::from(SessionsError::NotActive {
                id: "abc".to_owned(),
                reason: "IdleTimeout".to_owned(),
            }),
            Problem::from(SessionError::new(ErrorCode::QueueFull, "16 calls wait already")),
            Problem::from(kube::Error::TlsRequired),
        ];
        let bodies: Vec<_> = problems.iter().map(Problem::body).collect();
        insta::assert_yaml_snapshot!(bodies);
    }

    #[test]
    fn callers_are_told_how_to_come_back() {
        let header = |problem: Problem, name| problem.into_response().headers().get(name).cloned();
        let challenge = header(AccessError::BadToken.into(), WWW_AUTHENTICATE);
        assert_eq!(challenge, Some(HeaderValue::from_static("Bearer")));
        let later = header(AccessError::Unknown.into(), RETRY_AFTER);
        assert_eq!(later, Some(HeaderValue::from_static("1")));
        assert_eq!(header(Problem::invalid("x"), RETRY_AFTER), None);
    }
}
