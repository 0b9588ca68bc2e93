//! Runs the controllers: one leader at a time, stopped in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codeworkspace_api::labels;
use codeworkspace_source::{Artifacts, Github, SystemClock};
use kube::Client;
use kube_lease_manager::{LeaseCreateMode, LeaseManagerBuilder};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::controllers::controllers;
use super::{Sessions, definitions, registration};
use crate::authority::Authority;
use crate::configuration::Configuration;
use crate::http::{self, Health};
use crate::metrics::Metrics;
use crate::signal::cancel_on_signal;

/// Name of the lease.
const LEASE: &str = "codeworkspace-operator";
/// Seconds after which another replica may take over from a silent leader, and how long before that it renews.
const LEASE_SECONDS: u64 = 15;
const LEASE_GRACE_SECONDS: u64 = 5;
/// Time to finish what is under way at the end: a download may take longer, and the lease must be released before the pod is killed.
const SHUTDOWN: Duration = Duration::from_secs(20);

/// Serves health and registrations, waits for the lease, runs the controllers, and ends when it is told to or when the lease is lost.
pub async fn start(
    configuration: Configuration,
    listen: SocketAddr,
    register: SocketAddr,
    namespace: &str,
    identity: &str,
) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let metrics = Arc::new(Metrics::default());
    let health = Health::new(metrics.clone());
    let server = tokio::spawn(http::serve(
        listen,
        health.clone(),
        stop.clone().cancelled_owned(),
    ));
    tokio::spawn(cancel_on_signal(stop.clone()));

    let client = Client::try_default()
        .await
        .context("cannot find the API server")?;
    let github = Github::new(configuration.github.clone(), Arc::new(SystemClock))
        .context("the configuration's github part is wrong")?;
    metrics.observe(github.clone());
    let artifacts = configuration
        .flux
        .enabled
        .then(|| Artifacts::new(&configuration.flux.hosts, &configuration.github))
        .transpose()
        .context("the configuration's flux part is wrong")?;
    let version = client
        .apiserver_version()
        .await
        .context("the API server does not answer")?;
    definitions::check(&client).await?;
    // Before the process is ready: then pods are sent here.
    let sessions = serve_registrations(&client, &configuration, register, &metrics, &stop).await?;
    let (sessions, registrations) = sessions.unzip();
    health.set_ready();
    tracing::info!(kubernetes = version.git_version, identity, "ready to lead");

    let manager = LeaseManagerBuilder::new(client.clone(), LEASE)
        .with_namespace(namespace)
        .with_identity(identity)
        .with_duration(LEASE_SECONDS)
        .with_grace(LEASE_GRACE_SECONDS)
        .with_create_mode(LeaseCreateMode::AutoCreate)
        .with_field_manager(format!("{}/lease", labels::MANAGER))
        .build()
        .await
        .context("cannot set up the lease")?;
    let (mut leads, lease) = manager.watch().await;
    let outcome = lead(
        &mut leads,
        client,
        configuration,
        (github, artifacts, sessions),
        metrics,
        stop.clone(),
    )
    .await;
    stop.cancel();
    // Closing the channel releases the lease, so that the next replica need not wait until it expires.
    drop(leads);
    lease
        .await
        .context("the lease task ended badly")?
        .context("the lease could not be released")?;
    server.await.context("the health server ended badly")??;
    if let Some(registrations) = registrations {
        registrations
            .await
            .context("the registration endpoint ended badly")?;
    }
    outcome
}

/// Serves registrations, which needs no lease, and finds what pods are made with. Nothing without sessions.
async fn serve_registrations(
    client: &Client,
    configuration: &Configuration,
    address: SocketAddr,
    metrics: &Arc<Metrics>,
    stop: &CancellationToken,
) -> anyhow::Result<Option<(Sessions, JoinHandle<()>)>> {
    let Some(sessions) = &configuration.sessions else {
        return Ok(None);
    };
    let authority = Authority::ensure(client.clone(), &sessions.release.namespace).await?;
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    let server = tokio::spawn(registration::serve(
        listener,
        authority.server_config(),
        registration::Registrar::new(client.clone(), metrics.clone()),
        stop.clone(),
    ));
    let sessions = Sessions::find(client, sessions, &authority).await?;
    Ok(Some((sessions, server)))
}

async fn lead(
    leads: &mut tokio::sync::watch::Receiver<bool>,
    client: Client,
    configuration: Configuration,
    (github, artifacts, sessions): (Github, Option<Artifacts>, Option<Sessions>),
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        leads = leads.wait_for(|leads| *leads) => {
            leads.context("the lease task ended")?;
        }
    }
    metrics.leads(true);
    tracing::info!("leading");
    let too_late = async {
        stop.cancelled().await;
        tokio::time::sleep(SHUTDOWN).await;
    };
    tokio::select! {
        // They end by themselves after `stop`, with what was under way finished.
        ended = controllers(client, configuration, github, artifacts, sessions, metrics, stop.clone()) => ended?,
        () = too_late => tracing::warn!("giving up what is still under way; it is done again by the next leader"),
        lost = leads.wait_for(|leads| !*leads) => {
            drop(lost);
            // Another replica may be at work already: ending the process is the only way to be sure that nothing here is.
            bail!("the lease is lost");
        }
    }
    Ok(())
}
