//! The controllers, and the watches that they share.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use codeworkspace_api::{CodeRun, CodeRunStatus, CodeWorkspace, FluxKind, SecretInventory, labels};
use codeworkspace_source::{Artifacts, Github, SystemClock};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::controller::{self, Action, Config};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::dependencies::Dependency;
use super::stores::{Stores, Writers};
use super::turns::Turns;
use super::watches::{Change, Wanted, Wants, all, kept, tell};
use super::{Backoff, Context, Error, Readable, Unreadable, inventory, run, workspace};
use crate::configuration::Configuration;
use crate::metrics::Metrics;

/// Longest that the first list of everything may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// Objects of one kind that are reconciled at once.
const CONCURRENCY: u16 = 64;
/// Delay of an object whose namespace has no place left.
const NEXT_TURN: Duration = Duration::from_millis(500);

/// Runs all controllers until `stop`; reconciles that are under way are finished.
pub async fn controllers(
    client: Client,
    configuration: Configuration,
    github: Github,
    artifacts: Option<Artifacts>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let (stores, writers) = Stores::new();
    let context = Context::new(
        client.clone(),
        configuration,
        github,
        Arc::new(SystemClock),
        metrics,
        stores.clone(),
    );
    let context = Arc::new(context.with_artifacts(artifacts));
    let (wants_workspaces, wanted_workspaces) = Wants::new();
    let (wants_runs, wanted_runs) = Wants::new();
    let (wants_inventories, wanted_inventories) = Wants::new();
    let wants = Arc::new(WantedLooks {
        workspaces: wants_workspaces,
        runs: wants_runs,
        inventories: wants_inventories,
        context: context.clone(),
        generations: Generations::default(),
        inventory_generations: Generations::default(),
        pins: Mutex::default(),
    });
    let watching = tokio::spawn(watch(client.clone(), writers, wants, stop.clone()));
    // Without the templates every workspace would be told for a moment that there are none, without the workspaces that those which
    // it refers to are missing.
    let listed = tokio::time::timeout(PATIENCE, stores.wait_until_ready());
    let Ok(listed) = listed.await else {
        bail!(
            "not everything could be listed within {} s; the warnings before this one name what: does the operator's role permit it?",
            PATIENCE.as_secs()
        );
    };
    if listed.is_err() {
        // The watches ended before they had begun, by `stop`.
        return Ok(());
    }
    let controllers = async {
        tokio::join!(
            run_workspaces(&context, wanted_workspaces, &stop),
            run_inventories(&context, wanted_inventories, &stop),
            run_runs(&client, &context, wanted_runs, &stop)
        )
    };
    tokio::pin!(controllers);
    tokio::select! {
        _ = &mut controllers => {}
        ended = watching => {
            ended.context("the watches ended by a fault of the operator")?;
            if !stop.is_cancelled() {
                bail!("the watches ended by themselves");
            }
            controllers.await;
        }
    }
    Ok(())
}

/// Turns changes of objects into looks at those whom they concern.
struct WantedLooks {
    workspaces: Wants<CodeWorkspace>,
    runs: Wants<CodeRun>,
    inventories: Wants<SecretInventory>,
    context: Arc<Context>,
    /// The generation of each workspace that was last told to those who refer to it: they build from its spec, and its status, which
    /// changes far more often, does not concern them.
    generations: Generations<CodeWorkspace>,
    /// The same of inventories.
    inventory_generations: Generations<SecretInventory>,
    /// What each namespace's label says about pins.
    pins: Mutex<HashMap<String, Option<String>>>,
}

impl WantedLooks {
    fn workspace(&self, change: &Change<'_, Readable<CodeWorkspace>>) {
        let stores = &self.context.stores;
        let workspace = match *change {
            Change::Any => {
                self.generations.forget();
                self.context.dependencies.retain_workspaces(|namespace, name| {
                    let workspace = ObjectRef::new(name).within(namespace);
                    stores.workspaces.get(&workspace).is_some()
                });
                self.workspaces.look_at(all(&stores.workspaces));
                self.runs.look_at(all(&stores.runs));
                return;
            }
            Change::Of(workspace) | Change::Gone(workspace) => workspace,
        };
        let this = ObjectRef::from_obj(workspace);
        if self.generations.is_news(change) {
            let namespace = workspace.namespace().unwrap_or_default();
            let stood_for = Dependency::Workspace(workspace.name_any());
            self.dependents(&namespace, &stood_for);
            if let Some(path) = workspace::path(workspace) {
                self.dependents(&namespace, &Dependency::Path(path));
            }
        }
        self.runs.look_at(waiting_for(workspace, &stores.runs));
        if matches!(change, Change::Gone(_)) {
            let namespace = workspace.namespace().unwrap_or_default();
            self.context
                .dependencies
                .retain(&namespace, &workspace.name_any(), &BTreeSet::new());
        } else {
            self.workspaces.look_at([this]);
        }
    }

    fn run(&self, change: &Change<'_, Readable<CodeRun>>) {
        match *change {
            Change::Any => self.runs.look_at(all(&self.context.stores.runs)),
            Change::Of(run) | Change::Gone(run) => {
                self.runs.look_at([ObjectRef::from_obj(run)]);
                if let (Ok(read), Some(namespace)) = (&run.0, run.namespace()) {
                    let workspace = ObjectRef::new(&read.spec.workspace_ref.name).within(&namespace);
                    self.workspaces.look_at([workspace]);
                }
            }
        }
    }

    /// Any template may be the one that a workspace lacks, or the one that it shall no longer have.
    fn template(&self) {
        self.workspaces.look_at(all(&self.context.stores.workspaces));
    }

    fn config_map(&self, change: &Change<'_, PartialObjectMeta<ConfigMap>>) {
        match *change {
            Change::Any => self.workspaces.look_at(all(&self.context.stores.workspaces)),
            Change::Of(map) | Change::Gone(map) => {
                let dependency = Dependency::ConfigMap(map.name_any());
                self.dependents(&map.namespace().unwrap_or_default(), &dependency);
            }
        }
    }

    fn flux_source(&self, kind: FluxKind, change: &Change<'_, PartialObjectMeta<DynamicObject>>) {
        match *change {
            Change::Any => self.workspaces.look_at(all(&self.context.stores.workspaces)),
            Change::Of(source) | Change::Gone(source) => {
                let dependency = workspace::flux_dependency(kind, &source.name_any());
                self.dependents(&source.namespace().unwrap_or_default(), &dependency);
            }
        }
    }

    fn inventory(&self, change: &Change<'_, Readable<SecretInventory>>) {
        match *change {
            Change::Any => {
                self.inventories.look_at(all(&self.context.stores.inventories));
                self.workspaces.look_at(all(&self.context.stores.workspaces));
            }
            Change::Of(inventory) | Change::Gone(inventory) => {
                // Its status is the operator's own.
                if !self.inventory_generations.is_news(change) {
                    return;
                }
                // A connector may be one of two, of which the other stands in another inventory.
                let inventories = all(&self.context.stores.inventories);
                let of_namespace = inventories
                    .into_iter()
                    .filter(|other| other.namespace == inventory.namespace());
                self.inventories.look_at(of_namespace);
                let namespace = inventory.namespace().unwrap_or_default();
                self.dependents(&namespace, &Dependency::Inventories);
            }
        }
    }

    /// A namespace's label says whether its workspaces may follow branches and tags.
    fn namespace(&self, change: &Change<'_, PartialObjectMeta<Namespace>>) {
        if let Change::Of(namespace) | Change::Gone(namespace) = *change
            && lock(&self.pins).get(&namespace.name_any()) == Some(&pin_of(namespace))
        {
            return;
        }
        let namespaces = self.context.stores.namespaces.state();
        let now: HashMap<String, Option<String>> = namespaces
            .iter()
            .map(|namespace| (namespace.name_any(), pin_of(namespace)))
            .collect();
        let former = std::mem::replace(&mut *lock(&self.pins), now.clone());
        let workspaces = all(&self.context.stores.workspaces);
        self.workspaces
            .look_at(workspaces.into_iter().filter(|workspace| {
                let namespace = workspace.namespace.as_deref().unwrap_or_default();
                former.get(namespace) != now.get(namespace)
            }));
    }

    fn dependents(&self, namespace: &str, dependency: &Dependency) {
        let dependents = self.context.dependencies.dependents(namespace, dependency);
        self.workspaces.look_at(
            dependents
                .iter()
                .map(|name| ObjectRef::new(name).within(namespace)),
        );
    }
}

/// The generation of each object that was told last.
struct Generations<K: Resource<DynamicType = ()> + Clone + 'static>(
    Mutex<HashMap<ObjectRef<Readable<K>>, Option<i64>>>,
);

impl<K: Resource<DynamicType = ()> + Clone + 'static> Default for Generations<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Generations<K> {
    fn forget(&self) {
        lock(&self.0).clear();
    }

    /// Whether an object has another spec than was told, or is gone.
    fn is_news(&self, change: &Change<'_, Readable<K>>) -> bool {
        match *change {
            Change::Any => true,
            Change::Gone(object) => {
                lock(&self.0).remove(&ObjectRef::from_obj(object));
                true
            }
            Change::Of(object) => {
                let generation = object.meta().generation;
                let former = lock(&self.0).insert(ObjectRef::from_obj(object), generation);
                former != Some(generation)
            }
        }
    }
}

fn pin_of(namespace: &PartialObjectMeta<Namespace>) -> Option<String> {
    namespace.labels().get(labels::REQUIRE_PIN).cloned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runs of a workspace that have not ended.
fn waiting_for(
    workspace: &Readable<CodeWorkspace>,
    runs: &Store<Readable<CodeRun>>,
) -> Vec<ObjectRef<Readable<CodeRun>>> {
    let (name, namespace) = (workspace.name_any(), workspace.namespace());
    let waits = |run: &Readable<CodeRun>| {
        run.0.as_ref().is_ok_and(|run| {
            run.spec.workspace_ref.name == name
                && run.namespace() == namespace
                && !run.status.as_ref().is_some_and(CodeRunStatus::is_finished)
        })
    };
    let runs = runs.state();
    runs.iter()
        .filter(|run| waits(run))
        .map(|run| ObjectRef::from_obj(run.as_ref()))
        .collect()
}

/// Runs every watch until `stop`.
async fn watch(client: Client, writers: Writers, wants: Arc<WantedLooks>, stop: CancellationToken) {
    let stopped = || stop.clone().cancelled_owned();
    // Bundles are ConfigMaps too. They are many, ours, and nobody's source.
    let of_others =
        watcher::Config::default().labels(&format!("{}!={}", labels::MANAGED_BY, labels::MANAGER));
    let config_maps = watcher(
        Api::<PartialObjectMeta<ConfigMap>>::all(client.clone()),
        of_others,
    )
    .default_backoff();
    let namespaces = kept(
        Api::<PartialObjectMeta<Namespace>>::all(client.clone()),
        writers.namespaces,
    );
    let workspaces = kept(Api::all(client.clone()), writers.workspaces);
    let runs = kept(Api::all(client.clone()), writers.runs);
    let templates = kept(Api::all(client.clone()), writers.templates);
    let inventories = kept(Api::all(client.clone()), writers.inventories);
    let flux_kind = async |kind: FluxKind| {
        // A cluster without Flux has no such kinds.
        if wants.context.artifacts.is_some() {
            let sources = Api::<PartialObjectMeta<DynamicObject>>::all_with(
                client.clone(),
                &workspace::flux_resource(kind),
            );
            let sources = watcher(sources, watcher::Config::default()).default_backoff();
            tell(kind.as_str(), sources, stopped(), |change| {
                wants.flux_source(kind, change);
            })
            .await;
        }
    };
    tokio::join!(
        tell("CodeWorkspace", workspaces, stopped(), |change| wants
            .workspace(change)),
        tell("CodeRun", runs, stopped(), |change| wants.run(change)),
        tell("RunnerTemplate", templates, stopped(), |_| wants.template()),
        tell("SecretInventory", inventories, stopped(), |change| wants
            .inventory(change)),
        tell("ConfigMap", config_maps, stopped(), |change| wants
            .config_map(change)),
        tell("Namespace", namespaces, stopped(), |change| wants
            .namespace(change)),
        flux_kind(FluxKind::GitRepository),
        flux_kind(FluxKind::OCIRepository),
    );
}

async fn run_workspaces(context: &Arc<Context>, wanted: Wanted<CodeWorkspace>, stop: &CancellationToken) {
    let controller = Controller::for_shared_stream(stream::pending(), context.stores.workspaces.clone())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .reconcile_on(wanted)
        .graceful_shutdown_on(stop.clone().cancelled_owned());
    drive(
        "CodeWorkspace",
        controller,
        context.clone(),
        workspace::reconcile,
        workspace::refuse,
    )
    .await;
}

async fn run_inventories(context: &Arc<Context>, wanted: Wanted<SecretInventory>, stop: &CancellationToken) {
    let controller = Controller::for_shared_stream(stream::pending(), context.stores.inventories.clone())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .reconcile_on(wanted)
        .graceful_shutdown_on(stop.clone().cancelled_owned());
    drive(
        "SecretInventory",
        controller,
        context.clone(),
        inventory::reconcile,
        inventory::refuse,
    )
    .await;
}

async fn run_runs(
    client: &Client,
    context: &Arc<Context>,
    wanted: Wanted<CodeRun>,
    stop: &CancellationToken,
) {
    let ours = watcher::Config::default().labels(&format!("{}={}", labels::MANAGED_BY, labels::MANAGER));
    let controller = Controller::for_shared_stream(stream::pending(), context.stores.runs.clone())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .reconcile_on(wanted)
        .owns(Api::<Pod>::all(client.clone()), ours)
        .graceful_shutdown_on(stop.clone().cancelled_owned());
    // The schema of runs keeps nothing that it does not know, so that there is nobody to tell.
    let refuse = |_: Unreadable, _: Arc<Context>| async { Ok(()) };
    drive("CodeRun", controller, context.clone(), run::reconcile, refuse).await;
}

/// Runs one controller to its end, with metrics, logs and growing delays for failures.
async fn drive<K, Reconcile, Reconciled, Refuse, Refused>(
    kind: &'static str,
    controller: Controller<Readable<K>>,
    context: Arc<Context>,
    reconcile: Reconcile,
    refuse: Refuse,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
    K: serde::de::DeserializeOwned,
    <Readable<K> as Resource>::DynamicType: Default + Clone + Eq + Hash + Debug + Unpin + Send + Sync,
    Reconcile: Fn(Arc<K>, Arc<Context>) -> Reconciled + Send + Sync + 'static,
    Reconciled: Future<Output = Result<Action, Error>> + Send + 'static,
    Refuse: Fn(Unreadable, Arc<Context>) -> Refused + Send + Sync + 'static,
    Refused: Future<Output = Result<(), Error>> + Send + 'static,
{
    let backoff = Arc::new(Backoff::default());
    let succeeded = backoff.clone();
    let turns = Turns::default();
    let (reconcile, refuse) = (Arc::new(reconcile), Arc::new(refuse));
    controller
        .run(
            move |object: Arc<Readable<K>>, context: Arc<Context>| {
                let (reconcile, refuse, backoff) = (reconcile.clone(), refuse.clone(), succeeded.clone());
                let turn = turns.take(&object.namespace().unwrap_or_default());
                async move {
                    // Held to the end.
                    let Some(_turn) = turn else {
                        return Ok(Action::requeue(NEXT_TURN));
                    };
                    let started = Instant::now();
                    let name = identity(object.as_ref());
                    let object = match &object.0 {
                        Ok(object) => Arc::new(object.clone()),
                        Err(unreadable) => {
                            tracing::warn!(kind, name, error = unreadable.error, "object cannot be read");
                            context.metrics.reconciled(kind, "unreadable", started.elapsed());
                            refuse(unreadable.clone(), context).await?;
                            // Only a change of the object helps.
                            return Ok(Action::await_change());
                        }
                    };
                    let result = reconcile(object, context.clone()).await;
                    let label = result.as_ref().map_or_else(Error::label, |_| "ok");
                    context.metrics.reconciled(kind, label, started.elapsed());
                    if result.is_ok() {
                        backoff.succeeded(&name);
                    }
                    result
                }
            },
            move |object: Arc<Readable<K>>, error: &Error, _| {
                let name = identity(object.as_ref());
                let delay = backoff.failed(&name);
                tracing::warn!(kind, name, %error, delay_seconds = delay.as_secs(), "reconcile failed");
                Action::requeue(delay)
            },
            context,
        )
        .for_each(|done| async move {
            // Failed reconciles were told above. What a controller cannot watch it never reconciles, so that must not pass in silence.
            if let Err(controller::Error::QueueError(error)) = done {
                tracing::warn!(kind, %error, "objects cannot be watched");
            }
        })
        .await;
}

fn identity(object: &impl ResourceExt) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}
