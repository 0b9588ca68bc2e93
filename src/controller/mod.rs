//! The controllers: what they share, and how they are run.

mod backoff;
mod connector;
mod controllers;
mod definitions;
mod dependencies;
mod events;
#[cfg(test)]
mod fake_api;
pub mod fault;
mod interpreter;
mod inventory;
mod looks;
mod patch;
mod pool;
mod readable;
pub mod registration;
mod run;
mod scans;
mod session;
mod session_looks;
#[cfg(test)]
mod session_story;
mod sessions;
mod start;
mod stores;
mod turns;
mod wait;
mod watches;
pub mod workspace;

use std::sync::Arc;

use codeworkspace_api::{RunnerTemplate, labels};
use codeworkspace_source::{Artifacts, Clock, Github};
use kube::Client;
use tokio::sync::Semaphore;

pub use backoff::Backoff;
pub use dependencies::{Dependencies, Dependency};
pub use events::Events;
#[cfg(test)]
pub(crate) use fake_api::FakeApi;
pub use readable::{Readable, Unreadable};
pub use scans::Scans;
pub use sessions::Sessions;
pub use start::start;
pub use stores::{Stores, Writers};

use crate::configuration::Configuration;
use crate::metrics::Metrics;

/// Field manager of everything that the controllers apply.
pub const FIELD_MANAGER: &str = labels::MANAGER;

/// What every reconcile may use.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// What the administrator decided.
    pub configuration: Configuration,
    /// GitHub, with its caches.
    pub github: Github,
    /// Artifacts of Flux, if they may be a root.
    pub artifacts: Option<Artifacts>,
    /// What sessions are made with, if somebody looks after them here.
    pub sessions: Option<Sessions>,
    /// Volumes that are a root.
    pub volumes: workspace::Volumes,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Notices for people.
    pub events: Events,
    /// Numbers for machines.
    pub metrics: Arc<Metrics>,
    /// When each workspace was looked at.
    pub scans: Scans,
    /// What the watches know.
    pub stores: Stores,
    /// When the status of each interpreter was written.
    pub written: interpreter::Written,
    /// Which workspaces look at what.
    pub dependencies: Dependencies,
    /// Bundling is seconds of CPU for large bundles: it runs beside the reactor, and only so many at once.
    builds: Semaphore,
}

impl Context {
    /// Puts a context together.
    pub fn new(
        client: Client,
        configuration: Configuration,
        github: Github,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
        stores: Stores,
    ) -> Self {
        let builds = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            events: Events::new(client.clone()),
            client,
            configuration,
            github,
            artifacts: None,
            sessions: None,
            volumes: workspace::Volumes::default(),
            clock,
            metrics,
            scans: Scans::default(),
            stores,
            written: interpreter::Written::default(),
            dependencies: Dependencies::default(),
            builds: Semaphore::new(builds),
        }
    }

    /// The same context, with artifacts of Flux.
    #[must_use]
    pub fn with_artifacts(self, artifacts: Option<Artifacts>) -> Self {
        Self { artifacts, ..self }
    }

    /// The same context, with what sessions are made with.
    #[must_use]
    pub fn with_sessions(self, sessions: Option<Sessions>) -> Self {
        Self { sessions, ..self }
    }

    /// Every runner template of the cluster that can be read.
    pub fn templates(&self) -> Vec<RunnerTemplate> {
        let templates = self.stores.templates.state();
        templates
            .iter()
            .filter_map(|template| template.0.as_ref().ok().cloned())
            .collect()
    }

    /// Runs heavy work beside the reactor. Work that panics fails its own reconcile and nobody else's.
    pub async fn build<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        // The semaphore is never closed, so there is always a permit in the end.
        let _permit = self.builds.acquire().await;
        tokio::task::spawn_blocking(work).await.map_err(Error::Panicked)
    }
}

/// Why a reconcile could not be finished; it is tried again with growing delays.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused or could not be reached.
    #[error("{0}")]
    Api(#[from] kube::Error),
    /// A fault of the operator, met by this object.
    #[error("building the bundle failed within the operator: {0}")]
    Panicked(tokio::task::JoinError),
    /// The node has no randomness to give.
    #[error("no random name can be drawn")]
    NoRandomness,
}

impl Error {
    /// A label of a closed set, for metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Api(kube::Error::Api(status)) if status.is_conflict() => "conflict",
            Self::Api(kube::Error::Api(_)) => "api",
            Self::Api(_) => "transport",
            Self::Panicked(_) => "panic",
            Self::NoRandomness => "randomness",
        }
    }
}
