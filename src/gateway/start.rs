//! Runs the gateway: watches first, then callers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use codeworkspace_source::SystemClock;
use kube::Client;
use kube::runtime::reflector;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::access_key::AccessKeys;
use super::agentcore::AgentCore;
use super::configuration::GatewayConfiguration;
use super::index::Index;
use super::runners::Runners;
use super::sessions::Sessions;
use super::watch::Watches;
use super::{agentcore, defaults};
use crate::authority::Authority;
use crate::http::{self, Health};
use crate::metrics::Metrics;
use crate::signal::cancel_on_signal;

/// Longest that the first lists may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// Where the gateway listens.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// Health and metrics.
    pub health: SocketAddr,
    /// The AgentCore API.
    pub agentcore: SocketAddr,
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
    let (index, keys) = (Arc::new(Index::default()), Arc::new(AccessKeys::default()));
    let (interpreters, interpreters_writer) = reflector::store();
    let (objects, objects_writer) = reflector::store();
    let watches = Watches::new(
        client.clone(),
        namespace,
        index.clone(),
        keys.clone(),
        interpreters_writer,
        objects_writer,
    );
    let (watching, first_lists) = watches.run([stopped(), stopped(), stopped(), stopped()]);
    let watching = tokio::spawn(watching);
    let all_listed = async {
        for mut listed in first_lists {
            listed.wait_for(|listed| *listed).await.ok();
        }
        interpreters.wait_until_ready().await.ok();
        objects.wait_until_ready().await.ok();
    };
    tokio::time::timeout(PATIENCE, all_listed).await.with_context(|| {
        format!(
            "not everything could be listed within {} s; the warnings before this one name what: does the gateway's role permit it?",
            PATIENCE.as_secs()
        )
    })?;
    for tenant in keys.tenants() {
        if let Err(error) = defaults::ensure(&client, &tenant, &configuration.default_interpreter).await {
            tracing::warn!(tenant, %error, "the default interpreter cannot be made");
        }
    }
    let sessions = Sessions::new(
        client.clone(),
        index.clone(),
        interpreters,
        objects,
        Arc::new(SystemClock),
        &configuration.limits,
    );
    let runners = Runners::new(authority.client_identity(), index);
    let service = AgentCore::new(
        client,
        sessions,
        runners,
        keys,
        configuration,
        Arc::new(SystemClock),
    );
    let listener = TcpListener::bind(listen.agentcore)
        .await
        .with_context(|| format!("cannot listen on {}", listen.agentcore))?;
    health.set_ready();
    tracing::info!(address = %listen.agentcore, "serving the AgentCore API");
    axum::serve(listener, agentcore::router(service))
        .with_graceful_shutdown(stopped())
        .await
        .context("the AgentCore API ended")?;
    stop.cancel();
    watching.await.context("the watches ended by a fault")?;
    serving_health.await.context("the health server ended badly")?
}
