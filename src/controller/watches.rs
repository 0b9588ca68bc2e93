//! One watch for each kind, shared by the controllers, and what a change makes worth a look.

use std::future::Future;

use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use futures::{Stream, StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as start};
use kube::{Api, ResourceExt};

/// What a watch tells.
#[derive(Debug)]
pub enum Change<'a, K> {
    /// This object came or changed.
    Of(&'a K),
    /// This object went.
    Gone(&'a K),
    /// All objects were listed anew: any of them may have changed, and any that was known may be gone.
    Any,
}

/// Objects that a controller shall look at, as it waits for them.
pub type Wanted<K> = UnboundedReceiver<ObjectRef<K>>;

/// Where objects are named that a controller shall look at.
#[derive(Clone, Debug)]
pub struct Wants<K: kube::Resource<DynamicType = ()> + Clone + 'static>(UnboundedSender<ObjectRef<K>>);

impl<K: kube::Resource<DynamicType = ()> + Clone + 'static> Wants<K> {
    /// Makes both ends.
    pub fn new() -> (Self, Wanted<K>) {
        let (sender, receiver) = mpsc::unbounded();
        (Self(sender), receiver)
    }

    /// Asks for a look at each of the objects. The controller takes several requests for one object as one.
    pub fn look_at(&self, objects: impl IntoIterator<Item = ObjectRef<K>>) {
        for object in objects {
            // The other end goes when the operator stops: then nobody looks any more.
            let _ = self.0.unbounded_send(object);
        }
    }
}

/// Watches a kind and keeps its objects, without the record of who manages which field: that is half of an object's bytes, and nobody
/// here reads it.
pub fn kept<K>(api: Api<K>, writer: Writer<K>) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
    K: serde::de::DeserializeOwned,
{
    start(api, watcher::Config::default())
        .default_backoff()
        .modify(|object| object.managed_fields_mut().clear())
        .reflect(writer)
}

/// Watches pods with this label and keeps what the controllers of sessions read of them: of a spec, only what is not the same in all.
pub fn kept_pods(
    api: Api<Pod>,
    labels: &str,
    writer: Writer<Pod>,
) -> impl Stream<Item = watcher::Result<Event<Pod>>> + Send + use<> {
    start(api, watcher::Config::default().labels(labels))
        .default_backoff()
        .modify(|pod| {
            pod.managed_fields_mut().clear();
            pod.spec = pod.spec.take().map(|spec| PodSpec {
                node_name: spec.node_name,
                active_deadline_seconds: spec.active_deadline_seconds,
                ..PodSpec::default()
            });
        })
        .reflect(writer)
}

/// Tells of each change until `stop`.
pub async fn tell<K>(
    kind: &'static str,
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send,
    stop: impl Future<Output = ()> + Send,
    changed: impl Fn(&Change<'_, K>) + Send,
) {
    let events = events.take_until(stop);
    pin_mut!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object)) => changed(&Change::Of(&object)),
            Ok(Event::Delete(object)) => changed(&Change::Gone(&object)),
            Ok(Event::InitDone) => changed(&Change::Any),
            Ok(Event::Init | Event::InitApply(_)) => {}
            Err(error) => tracing::warn!(kind, %error, "objects cannot be watched"),
        }
    }
}

/// Every object of a store.
pub fn all<K>(store: &Store<K>) -> Vec<ObjectRef<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    store
        .state()
        .iter()
        .map(|object| ObjectRef::from_obj(object.as_ref()))
        .collect()
}
