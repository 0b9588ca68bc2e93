//! What the gateway watches: pods of sessions, interpreters, sessions, and its access keys.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use codeworkspace_api::{CodeInterpreter, CodeSession, labels};
use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch as signal;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::access_key::{ACCESS_KEY, AccessKeys};
use super::index::Index;
use crate::controller::Readable;

/// Longest that the first lists may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// Whoever keeps what a watch tells.
pub trait Keeper<K>: Send + Sync {
    /// An object came or changed.
    fn apply(&self, object: &K);
    /// An object went.
    fn delete(&self, object: &K);
    /// Everything was listed anew.
    fn replace(&self, objects: &[K]);
}

impl Keeper<Pod> for Index {
    fn apply(&self, pod: &Pod) {
        Self::apply(self, pod);
    }

    fn delete(&self, pod: &Pod) {
        Self::delete(self, pod);
    }

    fn replace(&self, pods: &[Pod]) {
        Self::replace(self, pods);
    }
}

impl Keeper<Secret> for AccessKeys {
    fn apply(&self, secret: &Secret) {
        Self::apply(self, secret);
    }

    fn delete(&self, secret: &Secret) {
        Self::delete(self, secret);
    }

    fn replace(&self, secrets: &[Secret]) {
        Self::replace(self, secrets);
    }
}

/// Watches a kind for a keeper until `stop`; `listed` is told once everything was listed.
async fn keep<K>(
    kind: &'static str,
    api: Api<K>,
    selector: String,
    keeper: Arc<impl Keeper<K>>,
    listed: signal::Sender<bool>,
    stop: impl Future<Output = ()> + Send,
) where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let events = watch(api, watcher::Config::default().labels(&selector))
        .default_backoff()
        .take_until(stop);
    pin_mut!(events);
    let mut list = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object)) => keeper.apply(&object),
            Ok(Event::Delete(object)) => keeper.delete(&object),
            Ok(Event::Init) => list.clear(),
            Ok(Event::InitApply(object)) => list.push(object),
            Ok(Event::InitDone) => {
                keeper.replace(&list);
                list = Vec::new();
                listed.send_replace(true);
            }
            Err(error) => tracing::warn!(kind, %error, "objects cannot be watched"),
        }
    }
}

/// What the watches know. Clones share it.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Pods of sessions.
    pub index: Arc<Index>,
    /// Access keys.
    pub keys: Arc<AccessKeys>,
    /// Every interpreter.
    pub interpreters: Store<Readable<CodeInterpreter>>,
    /// The object of every session.
    pub sessions: Store<Readable<CodeSession>>,
}

impl Watched {
    /// Watches until `stop`, and returns once everything was listed. `namespace` is the gateway's own, where its access keys are.
    pub async fn start(
        client: &Client,
        namespace: &str,
        stop: &CancellationToken,
    ) -> anyhow::Result<(Self, JoinHandle<()>)> {
        let (interpreters, interpreters_writer) = reflector::store();
        let (sessions, sessions_writer) = reflector::store();
        let watched = Self {
            index: Arc::default(),
            keys: Arc::default(),
            interpreters,
            sessions,
        };
        let (pods_told, mut pods_listed) = signal::channel(false);
        let (keys_told, mut keys_listed) = signal::channel(false);
        let stopped = || stop.clone().cancelled_owned();
        let pods = keep(
            "Pod",
            Api::all(client.clone()),
            format!("{}={}", labels::CLASS, labels::CLASS_SESSION),
            watched.index.clone(),
            pods_told,
            stopped(),
        );
        let keys = keep(
            "Secret",
            Api::namespaced(client.clone(), namespace),
            format!("{ACCESS_KEY}=true"),
            watched.keys.clone(),
            keys_told,
            stopped(),
        );
        let interpreters = reflect(
            "CodeInterpreter",
            Api::all(client.clone()),
            interpreters_writer,
            stopped(),
        );
        let sessions = reflect(
            "CodeSession",
            Api::all(client.clone()),
            sessions_writer,
            stopped(),
        );
        let watching = tokio::spawn(async move {
            tokio::join!(pods, keys, interpreters, sessions);
        });
        let all_listed = async {
            pods_listed.wait_for(|listed| *listed).await?;
            keys_listed.wait_for(|listed| *listed).await?;
            watched.interpreters.wait_until_ready().await?;
            watched.sessions.wait_until_ready().await?;
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, all_listed)
            .await
            .with_context(|| {
                format!(
                    "not everything could be listed within {} s; the warnings before this one name what: does the gateway's role \
                     permit it?",
                    PATIENCE.as_secs()
                )
            })?
            .context("the watches ended before they had begun")?;
        Ok((watched, watching))
    }
}

async fn reflect<K>(kind: &'static str, api: Api<K>, writer: Writer<K>, stop: impl Future<Output = ()> + Send)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static,
{
    let events = watch(api, watcher::Config::default())
        .default_backoff()
        .modify(|object| object.meta_mut().managed_fields = None)
        .reflect(writer)
        .take_until(stop);
    pin_mut!(events);
    while let Some(event) = events.next().await {
        if let Err(error) = event {
            tracing::warn!(kind, %error, "objects cannot be watched");
        }
    }
}
