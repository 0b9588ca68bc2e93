//! Answers in the protocol's forms.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use codeworkspace_protocol::session::{
    EVENTS_MEDIA_TYPE, ErrorCode, ExecutionOutcome, Finished, SessionError, SessionEvent, StreamSummary,
};
use futures::stream;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::serve::idle::Activity;
use crate::serve::transcript::Listener;

/// Bytes of JSON that a request may have: code of a hundred million bytes, as it may look with escapes.
const MAX_REQUEST_BYTES: usize = 256 * 1024 * 1024;

/// A call that was refused.
pub(super) struct Refusal(SessionError);

pub(super) type Answer<T> = Result<T, Refusal>;

impl From<SessionError> for Refusal {
    fn from(error: SessionError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self.0)).into_response()
    }
}

/// A request's JSON, whatever media type it says it has.
pub(super) struct Asked<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _state: &S) -> Answer<Self> {
        let invalid = |message: String| Refusal(SessionError::new(ErrorCode::InvalidRequest, message));
        let body: Bytes = axum::body::to_bytes(request.into_body(), MAX_REQUEST_BYTES)
            .await
            .map_err(|error| invalid(format!("the request cannot be read: {error}")))?;
        serde_json::from_slice(&body)
            .map(Self)
            .map_err(|error| invalid(format!("the request is not what was expected: {error}")))
    }
}

/// A stream of events, one JSON object a line, as long as somebody reads it.
pub(super) fn events(listener: Listener, activity: Activity) -> Response {
    let lines = stream::unfold((listener, activity), |(mut listener, activity)| async move {
        let event = listener.next().await?;
        let line = line(&event).or_else(|_| line(&unspeakable()));
        Some((line, (listener, activity)))
    });
    (
        [(header::CONTENT_TYPE, EVENTS_MEDIA_TYPE)],
        Body::from_stream(lines),
    )
        .into_response()
}

fn line(event: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    Ok(line)
}

/// Events are made of what JSON can hold, so this stands for a fault of this program.
fn unspeakable() -> SessionEvent {
    SessionEvent::Finished(Finished {
        outcome: ExecutionOutcome::Died,
        exit_code: None,
        execution_time_ms: 0,
        stdout: StreamSummary::default(),
        stderr: StreamSummary::default(),
        message: Some("an event cannot be written as JSON".to_owned()),
    })
}
