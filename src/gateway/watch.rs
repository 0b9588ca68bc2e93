//! What the gateway watches: pods of sessions, interpreters, sessions, and its access keys.

use std::future::Future;
use std::sync::Arc;

use codeworkspace_api::{CodeInterpreter, CodeSession, labels};
use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch as signal;

use super::access_key::{ACCESS_KEY, AccessKeys};
use super::index::Index;
use crate::controller::Readable;

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
    selector: &str,
    keeper: Arc<impl Keeper<K>>,
    listed: signal::Sender<bool>,
    stop: impl Future<Output = ()> + Send,
) where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let events = watch(api, watcher::Config::default().labels(selector))
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

/// Everything that is watched, with the means to wait until all of it was listed.
pub struct Watches {
    client: Client,
    namespace: String,
    index: Arc<Index>,
    keys: Arc<AccessKeys>,
    interpreters: Writer<Readable<CodeInterpreter>>,
    sessions: Writer<Readable<CodeSession>>,
}

impl Watches {
    /// Puts the parts together. `namespace` is the gateway's own, where its access keys are.
    pub fn new(
        client: Client,
        namespace: &str,
        index: Arc<Index>,
        keys: Arc<AccessKeys>,
        interpreters: Writer<Readable<CodeInterpreter>>,
        sessions: Writer<Readable<CodeSession>>,
    ) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            index,
            keys,
            interpreters,
            sessions,
        }
    }

    /// Watches until `stop`. The receivers turn true when pods and keys were listed.
    pub fn run<F: Future<Output = ()> + Send + 'static>(
        self,
        stops: [F; 4],
    ) -> (
        impl Future<Output = ()> + Send + use<F>,
        [signal::Receiver<bool>; 2],
    ) {
        let (pods_listed, pods) = signal::channel(false);
        let (keys_listed, keys) = signal::channel(false);
        let class = format!("{}={}", labels::CLASS, labels::CLASS_SESSION);
        let is_key = format!("{ACCESS_KEY}=true");
        let client = self.client;
        let watching = async move {
            let [one, two, three, four] = stops;
            tokio::join!(
                keep(
                    "Pod",
                    Api::all(client.clone()),
                    &class,
                    self.index,
                    pods_listed,
                    one
                ),
                keep(
                    "Secret",
                    Api::namespaced(client.clone(), &self.namespace),
                    &is_key,
                    self.keys,
                    keys_listed,
                    two
                ),
                reflect(
                    "CodeInterpreter",
                    Api::all(client.clone()),
                    self.interpreters,
                    three
                ),
                reflect("CodeSession", Api::all(client), self.sessions, four),
            );
        };
        (watching, [pods, keys])
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
