//! Answers over HTTP.

use axum::body::Body;
use axum::response::Response;
use codeworkspace_agentcore::error::{ERROR_TYPE_HEADER, ErrorAnswer, ServiceError};
use codeworkspace_agentcore::shapes::to_json;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde::Serialize;

use crate::gateway::sessions::SessionsError;

const JSON: &str = "application/json";

/// An answer with a body of JSON.
pub fn json(status: StatusCode, response: &impl Serialize) -> Result<Response, ServiceError> {
    let body = to_json(response)
        .ok_or_else(|| ServiceError::InternalServer("the answer cannot be written".to_owned()))?;
    Ok(with_body(status, JSON, body.into()))
}

/// An answer with any body.
pub fn with_body(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    set(response.headers_mut(), CONTENT_TYPE, content_type);
    response
}

/// A refusal.
pub fn refusal(error: &ErrorAnswer) -> Response {
    let mut response = with_body(error.status, JSON, error.body.clone().into());
    let headers = response.headers_mut();
    set(
        headers,
        HeaderName::from_static(ERROR_TYPE_HEADER),
        error.error_type,
    );
    if let Some(allow) = error.allow {
        set(headers, ALLOW, allow);
    }
    response
}

/// Sets a header whose value is ours.
pub fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

impl From<SessionsError> for ServiceError {
    fn from(error: SessionsError) -> Self {
        use codeworkspace_agentcore::validation::{Reason, ValidationError};

        use crate::gateway::claim::ClaimError;
        let message = error.to_string();
        match error {
            SessionsError::InterpreterNotFound(_) | SessionsError::NotActive { .. } => {
                Self::ResourceNotFound(message)
            }
            SessionsError::InterpreterUnavailable { .. } | SessionsError::Claim(ClaimError::Ended(_)) => {
                Self::Conflict(message)
            }
            SessionsError::TimeoutTooLong { .. } => {
                ValidationError::field("sessionTimeoutSeconds", &message).into()
            }
            SessionsError::TokenReused => {
                ValidationError::new(Reason::IdempotentParameterMismatchException, &message).into()
            }
            SessionsError::CapacityReached { .. } | SessionsError::QuotaReached { .. } => {
                Self::ServiceQuotaExceeded(message)
            }
            SessionsError::NoAnswer => Self::InternalServer(message),
            // Clients call again by themselves, with the same token.
            SessionsError::Claim(ClaimError::NotYet(_) | ClaimError::Crowded) => Self::Throttling(message),
            SessionsError::Claim(ClaimError::Api(ref cause)) | SessionsError::Api(ref cause) => of_api(cause),
        }
    }
}

/// What the API server says is for the log: its messages name objects of the cluster.
pub fn of_api(error: &kube::Error) -> ServiceError {
    tracing::warn!(%error, "the API server refused");
    match error {
        kube::Error::Api(status) if status.code == 403 && status.message.contains("exceeded quota") => {
            ServiceError::ServiceQuotaExceeded("the tenant's namespace has no quota left".to_owned())
        }
        kube::Error::Api(status) if status.code == 404 => ServiceError::AccessDenied(
            "the namespace of this access key does not exist, or the product is not installed completely"
                .to_owned(),
        ),
        _ => ServiceError::InternalServer(
            "the cluster's API server did not answer as it should; try again".to_owned(),
        ),
    }
}
