//! Runs the gateway: watches first, then callers.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use codeworkspace_source::SystemClock;
use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::agentcore::AgentCore;
use super::configuration::GatewayConfiguration;
use super::native::Native;
use super::rates::Rates;
use super::runners::Runners;
use super::sessions::Sessions;
use super::watch::Watched;
use super::{agentcore, defaults, native};
use crate::authority::Authority;
use crate::http::{self, Health};
use crate::metrics::Metrics;
use crate::signal::cancel_on_signal;

/// Where the gateway listens.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// Health and metrics.
    pub health: SocketAddr,
    /// The AgentCore API.
    pub agentcore: SocketAddr,
    /// The native API and the MCP server.
    pub native: SocketAddr,
}

/// Serves until it is told to stop; calls that are under way may end.
pub async fn start(
    configuration: GatewayConfiguration,
    listen: Listen,
    namespace: &str,
) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let metrics = Arc::new(Metrics::default());
    let health = Health::new(metrics.clone());
    let stopped = || stop.clone().cancelled_owned();
    let serving_health = tokio::spawn(http::serve(listen.health, health.clone(), stopped()));
    tokio::spawn(cancel_on_signal(stop.clone()));

    let client = Client::try_default()
        .await
        .context("cannot find the API server")?;
    let authority = Authority::ensure(client.clone(), namespace).await?;
    let (watched, watching) = Watched::start(&client, namespace, &stop).await?;
    tokio::spawn(defaults::make(
        client.clone(),
        watched.keys.clone(),
        configuration.default_interpreter.clone(),
        stop.clone(),
    ));
    let clock = Arc::new(SystemClock);
    let sessions = Sessions::new(client.clone(), &watched, clock.clone(), &configuration.limits);
    let runners = Runners::new(authority.client_identity(), watched.index);
    let rates = Arc::new(Rates::new(&configuration.limits));
    let native = Native::new(
        client.clone(),
        sessions.clone(),
        runners.clone(),
        rates.clone(),
        clock.clone(),
    );
    let agentcore = AgentCore::new(
        client,
        sessions,
        runners,
        watched.keys,
        rates,
        configuration,
        clock,
    );
    let (agentcore_listener, native_listener) =
        tokio::try_join!(bind(listen.agentcore), bind(listen.native))?;
    health.set_ready();
    tracing::info!(address = %listen.agentcore, "serving the AgentCore API");
    tracing::info!(address = %listen.native, "serving the native API");
    let serve_agentcore = async {
        axum::serve(agentcore_listener, agentcore::router(agentcore))
            .with_graceful_shutdown(stopped())
            .await
            .context("the AgentCore API ended")
    };
    let serve_native = async {
        axum::serve(native_listener, native::router(native))
            .with_graceful_shutdown(stopped())
            .await
            .context("the native API ended")
    };
    tokio::try_join!(serve_agentcore, serve_native)?;
    stop.cancel();
    watching.await.context("the watches ended by a fault")?;
    serving_health.await.context("the health server ended badly")?
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))
}
