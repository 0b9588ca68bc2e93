//! The controllers, and the watches that they share.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use codeworkspace_api::{CodeRun, CodeWorkspace, FluxKind, SecretInventory, labels};
use codeworkspace_source::{Artifacts, Github, SystemClock};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::controller::{self, Action, Config};
use kube::runtime::{Controller, WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::looks::WantedLooks;
use super::session_looks::{SessionLooks, WantedSessions};
use super::stores::{Stores, Writers};
use super::turns::Turns;
use super::watches::{Wanted, kept, kept_pods, tell};
use super::{
    Backoff, Context, Error, Readable, Sessions, Unreadable, interpreter, inventory, pool, run, session,
    workspace,
};
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
    sessions: Option<Sessions>,
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
    let context = Arc::new(context.with_artifacts(artifacts).with_sessions(sessions));
    let (wants, wanted) = WantedLooks::new(context.clone());
    let (session_wants, session_wanted) = SessionLooks::new(context.clone());
    let (wants, session_wants) = (Arc::new(wants), Arc::new(session_wants));
    let watching = tokio::spawn(watch(
        client.clone(),
        writers,
        wants,
        session_wants.clone(),
        stop.clone(),
    ));
    // Without the templates every workspace would be told for a moment that there are none, without the workspaces that those which
    // it refers to are missing.
    let listed = tokio::time::timeout(PATIENCE, stores.wait_until_ready(context.sessions.is_some()));
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
            run_workspaces(&context, wanted.workspaces, &stop),
            run_inventories(&context, wanted.inventories, &stop),
            run_runs(&client, &context, wanted.runs, &stop),
            run_sessions(&context, session_wanted, &session_wants, &stop)
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

/// Runs every watch until `stop`.
async fn watch(
    client: Client,
    writers: Writers,
    wants: Arc<WantedLooks>,
    session_wants: Arc<SessionLooks>,
    stop: CancellationToken,
) {
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
    let interpreters = kept(Api::all(client.clone()), writers.interpreters);
    let sessions = kept(Api::all(client.clone()), writers.sessions);
    let session_pods = kept_pods(
        Api::all(client.clone()),
        &of_class(labels::CLASS_SESSION),
        writers.session_pods,
    );
    let watch_sessions = async {
        // Whoever has none of them need not have their definitions either.
        if wants.context().sessions.is_some() {
            tokio::join!(
                tell("CodeInterpreter", interpreters, stopped(), |change| {
                    session_wants.interpreter(change);
                }),
                tell("CodeSession", sessions, stopped(), |change| session_wants
                    .session(change)),
                tell("Pod", session_pods, stopped(), |change| session_wants.pod(change)),
            );
        }
    };
    let flux_kind = async |kind: FluxKind| {
        // A cluster without Flux has no such kinds.
        if wants.context().artifacts.is_some() {
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
        tell("RunnerTemplate", templates, stopped(), |_| {
            wants.template();
            session_wants.template();
        }),
        tell("SecretInventory", inventories, stopped(), |change| wants
            .inventory(change)),
        tell("ConfigMap", config_maps, stopped(), |change| wants
            .config_map(change)),
        tell("Namespace", namespaces, stopped(), |change| wants
            .namespace(change)),
        watch_sessions,
        flux_kind(FluxKind::GitRepository),
        flux_kind(FluxKind::OCIRepository),
    );
}

async fn run_workspaces(
    context: &Arc<Context>,
    wanted: Wanted<Readable<CodeWorkspace>>,
    stop: &CancellationToken,
) {
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

async fn run_inventories(
    context: &Arc<Context>,
    wanted: Wanted<Readable<SecretInventory>>,
    stop: &CancellationToken,
) {
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
    wanted: Wanted<Readable<CodeRun>>,
    stop: &CancellationToken,
) {
    // The pods of sessions are watched by themselves.
    let ours = watcher::Config::default().labels(&of_class(labels::CLASS_RUN));
    let controller = Controller::for_shared_stream(stream::pending(), context.stores.runs.clone())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .reconcile_on(wanted)
        .owns(Api::<Pod>::all(client.clone()), ours)
        .graceful_shutdown_on(stop.clone().cancelled_owned());
    // The schema of runs keeps nothing that it does not know, so that there is nobody to tell.
    let refuse = |_: Unreadable, _: Arc<Context>| async { Ok(()) };
    drive("CodeRun", controller, context.clone(), run::reconcile, refuse).await;
}

/// Selects the operator's own pods of one class.
fn of_class(class: &str) -> String {
    format!(
        "{}={},{}={class}",
        labels::MANAGED_BY,
        labels::MANAGER,
        labels::CLASS
    )
}

/// Runs the controllers of sessions, if somebody looks after sessions here.
async fn run_sessions(
    context: &Arc<Context>,
    wanted: WantedSessions,
    wants: &Arc<SessionLooks>,
    stop: &CancellationToken,
) {
    if context.sessions.is_none() {
        return;
    }
    let interpreters = Controller::for_shared_stream(stream::pending(), context.stores.interpreters.clone())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .reconcile_on(wanted.interpreters)
        .graceful_shutdown_on(stop.clone().cancelled_owned());
    let sessions = Controller::for_shared_stream(stream::pending(), context.stores.sessions.clone())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .reconcile_on(wanted.sessions)
        .graceful_shutdown_on(stop.clone().cancelled_owned());
    // The schema of sessions keeps nothing that it does not know, so that there is nobody to tell.
    let refuse = |_: Unreadable, _: Arc<Context>| async { Ok(()) };
    tokio::join!(
        drive(
            "CodeSession",
            sessions,
            context.clone(),
            session::reconcile,
            refuse,
        ),
        drive(
            "CodeInterpreter",
            interpreters,
            context.clone(),
            interpreter::reconcile,
            interpreter::refuse,
        ),
        pool::run(context, wanted.namespaces, wants.clone(), stop),
    );
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
