//! What handlers take from a request, with problems instead of axum's own refusals.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use http::StatusCode;
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::problem::Problem;
use super::{Native, Place};
use crate::gateway::sessions::hexadecimal;

/// Header that makes repeated calls one.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

impl FromRequestParts<Arc<Native>> for Place {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _native: &Arc<Native>) -> Result<Self, Problem> {
        // It is there, because every endpoint is guarded.
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            Problem::new(
                StatusCode::FORBIDDEN,
                "Forbidden",
                "nobody has permitted this call",
            )
        })
    }
}

/// A body of JSON.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Json::from_request(request, state).await {
            Ok(Json(value)) => Ok(Self(value)),
            Err(JsonRejection::MissingJsonContentType(_)) => Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "InvalidRequest",
                "send JSON with `Content-Type: application/json`",
            )),
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "TooLarge",
                format!(
                    "a body of JSON has at most {} bytes; send what is larger as a file",
                    super::endpoints::MAX_JSON_BYTES
                ),
            )),
            Err(error) => Err(Problem::invalid(error.body_text())),
        }
    }
}

/// The query.
pub struct Asked<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(query)| Self(query))
            .map_err(|error| Problem::invalid(error.body_text()))
    }
}

/// The key under which the caller may repeat this call; a new one when there is none, so that nobody can.
pub struct CallKey(pub String);

impl<S: Send + Sync> FromRequestParts<S> for CallKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let Some(key) = parts.headers.get(IDEMPOTENCY_KEY) else {
            return random().map(Self);
        };
        let key = key.to_str().unwrap_or_default();
        if (1..=128).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(key.to_owned()));
        }
        Err(Problem::invalid(
            "Idempotency-Key must be 1 to 128 visible ASCII characters",
        ))
    }
}

/// A key that nobody else has.
pub fn random() -> Result<String, Problem> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| {
        tracing::error!(%error, "there is no randomness");
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Internal",
            "the gateway cannot serve this call now; try again",
        )
    })?;
    Ok(hexadecimal(&random))
}
