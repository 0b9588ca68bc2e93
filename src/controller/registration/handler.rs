//! One registration: a token is reviewed, the pod is read, and the digest is written to it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Extension, Router};
use codeworkspace_api::labels;
use codeworkspace_protocol::session::{REGISTRATION_AUDIENCE, RegisterRequest};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use super::decision::{Caller, Refusal, Verdict, caller, judge, well_formed};
use crate::metrics::Metrics;

/// Most bytes of a request's body: one digest.
const MAX_BODY_BYTES: usize = 1024;
/// Longest token that is shown to the API server.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// Longest that the API server may take; its client tries again for far longer by itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a pod is read anew because it was written to at the same time.
const TRIES: usize = 3;

/// What registers pods.
#[derive(Clone)]
pub struct Registrar {
    client: Client,
    metrics: Arc<Metrics>,
}

/// The address that a connection comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

impl Registrar {
    /// Asks this API server.
    pub fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        Self { client, metrics }
    }

    /// The endpoint, for the connections of one peer.
    pub fn router(self, peer: Peer) -> Router {
        Router::new()
            .route("/v1/register", post(register))
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .layer(Extension(peer))
            .with_state(self)
    }

    async fn register(&self, peer: IpAddr, headers: &HeaderMap, body: &[u8]) -> Result<Verdict, Refusal> {
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .filter(|token| !token.is_empty() && token.len() <= MAX_TOKEN_BYTES)
            .ok_or(Refusal::Unauthorized("there is no bearer token"))?;
        let request: RegisterRequest = serde_json::from_slice(body)
            .map_err(|error| Refusal::Invalid(format!("the body cannot be read: {error}")))?;
        if !well_formed(&request.key_digest) {
            let message = "keyDigest must be `sha256:` and 64 lower-case hex digits";
            return Err(Refusal::Invalid(message.to_owned()));
        }
        let caller = self.review(token).await?;
        self.record(&caller, peer, &request.key_digest).await
    }

    async fn review(&self, token: &str) -> Result<Caller, Refusal> {
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                audiences: Some(vec![REGISTRATION_AUDIENCE.to_owned()]),
            },
            ..TokenReview::default()
        };
        let review = answered(reviews.create(&PostParams::default(), &review)).await?;
        caller(&review.status.unwrap_or_default())
    }

    async fn record(&self, caller: &Caller, peer: IpAddr, digest: &str) -> Result<Verdict, Refusal> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &caller.namespace);
        for _ in 0..TRIES {
            let pod = answered(pods.get_opt(&caller.pod)).await?;
            let verdict = judge(caller, pod.as_ref(), peer, digest)?;
            if verdict == Verdict::Recorded || answered(write(&pods, caller, digest)).await? {
                return Ok(verdict);
            }
        }
        Err(Refusal::Unavailable(format!(
            "pod {} is written to by others all the time",
            caller.pod
        )))
    }
}

/// Writes the digest to that very pod, unless it has got one since it was read. Says whether it was written.
async fn write(pods: &Api<Pod>, caller: &Caller, digest: &str) -> Result<bool, kube::Error> {
    let annotation = format!("/metadata/annotations/{}", labels::KEY_DIGEST.replace('/', "~1"));
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": caller.uid},
        {"op": "test", "path": annotation, "value": null},
        {"op": "add", "path": annotation, "value": digest},
    ]);
    let patch = Patch::Json::<()>(serde_json::from_value(operations).map_err(kube::Error::SerdeError)?);
    match pods
        .patch_metadata(&caller.pod, &PatchParams::default(), &patch)
        .await
    {
        Ok(_) => Ok(true),
        // A failed test, or a pod that is gone.
        Err(kube::Error::Api(status))
            if status.is_invalid() || status.is_conflict() || status.is_not_found() =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The API server's answer within a bounded time.
async fn answered<T>(asked: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Refusal> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => {
            // Its words may tell more about the cluster than the caller should know.
            tracing::warn!(%error, "a registration could not be decided");
            Err(Refusal::Unavailable(
                "the API server did not answer as expected".to_owned(),
            ))
        }
        Err(_) => Err(Refusal::Unavailable(
            "the API server did not answer in time".to_owned(),
        )),
    }
}

async fn register(
    State(registrar): State<Registrar>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match registrar.register(peer, &headers, &body).await {
        Ok(verdict) => {
            let label = match verdict {
                Verdict::Record => "registered",
                Verdict::Recorded => "repeated",
            };
            registrar.metrics.registered(label);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(refusal) => {
            registrar.metrics.registered(refusal.label());
            tracing::info!(%peer, result = refusal.label(), reason = refusal.message(), "registration refused");
            (refusal.status(), format!("{}\n", refusal.message())).into_response()
        }
    }
}

#[cfg(test)]
#[path = "handler_tests.rs"]
mod tests;
