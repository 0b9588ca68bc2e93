//! Health and metrics over HTTP.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::metrics::Metrics;

/// What the endpoints speak of.
#[derive(Clone, Debug, Default)]
pub struct Health {
    ready: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
}

impl Health {
    /// Not ready at first.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            ready: Arc::default(),
            metrics,
        }
    }

    /// Says that the process can do its work, or wait for its turn to lead.
    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// The endpoints: `/healthz` answers while the process lives, `/readyz` once it is ready, `/metrics` for scrapes.
    pub fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .with_state(self)
    }
}

async fn ready(State(health): State<Health>) -> Response {
    if health.ready.load(Ordering::Relaxed) {
        "ok\n".into_response()
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the API server has not answered yet\n",
        )
            .into_response()
    }
}

async fn metrics(State(health): State<Health>) -> Response {
    match health.metrics.text() {
        Ok(text) => (
            [(
                header::CONTENT_TYPE,
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            )],
            text,
        )
            .into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Serves until `stop`.
pub async fn serve(
    address: SocketAddr,
    health: Health,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    axum::serve(listener, health.router())
        .with_graceful_shutdown(stop)
        .await
        .context("the health endpoints ended")
}
