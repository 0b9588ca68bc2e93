//! Runs the controllers: one leader at a time, stopped in order.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use codeworkspace_api::{CodeRun, CodeWorkspace, RunnerTemplate, labels};
use codeworkspace_source::{Github, SystemClock};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::controller::{self, Action, Config};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{Controller, WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use kube_lease_manager::{LeaseCreateMode, LeaseManagerBuilder};
use tokio_util::sync::CancellationToken;

use super::{Backoff, Context, Error, Readable, Unreadable, run, workspace};
use crate::configuration::Configuration;
use crate::http::{self, Health};
use crate::metrics::Metrics;

/// Name of the lease.
const LEASE: &str = "codeworkspace-operator";
/// Seconds after which another replica may take over from a silent leader, and how long before that it renews.
const LEASE_SECONDS: u64 = 15;
const LEASE_GRACE_SECONDS: u64 = 5;
/// Time to finish what is under way at the end: a download may take longer, and the lease must be released before the pod is killed.
const SHUTDOWN: Duration = Duration::from_secs(20);
/// Objects of one kind that are reconciled at once.
const CONCURRENCY: u16 = 16;

/// Serves health, waits for the lease, runs the controllers, and ends when it is told to or when the lease is lost.
pub async fn start(
    configuration: Configuration,
    listen: SocketAddr,
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
    let version = client
        .apiserver_version()
        .await
        .context("the API server does not answer")?;
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
    let outcome = lead(&mut leads, client, configuration, github, metrics, stop.clone()).await;
    stop.cancel();
    // Closing the channel releases the lease, so that the next replica need not wait until it expires.
    drop(leads);
    lease
        .await
        .context("the lease task ended badly")?
        .context("the lease could not be released")?;
    server.await.context("the health server ended badly")??;
    outcome
}

async fn lead(
    leads: &mut tokio::sync::watch::Receiver<bool>,
    client: Client,
    configuration: Configuration,
    github: Github,
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
        () = controllers(client, configuration, github, metrics, stop.clone()) => {}
        () = too_late => tracing::warn!("giving up what is still under way; it is done again by the next leader"),
        lost = leads.wait_for(|leads| !*leads) => {
            drop(lost);
            // Another replica may be at work already: ending the process is the only way to be sure that nothing here is.
            bail!("the lease is lost");
        }
    }
    Ok(())
}

/// Runs all controllers until `stop`; reconciles that are under way are finished.
async fn controllers(
    client: Client,
    configuration: Configuration,
    github: Github,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) {
    let (templates, writer) = reflector::store();
    let watch_templates = watcher(
        Api::<RunnerTemplate>::all(client.clone()),
        watcher::Config::default(),
    )
    .default_backoff()
    .reflect(writer)
    .touched_objects()
    .take_until(stop.clone().cancelled_owned())
    .for_each(|touched| async move {
        if let Err(error) = touched {
            tracing::warn!(%error, "runner templates cannot be watched");
        }
    });
    let watch_templates = tokio::spawn(watch_templates);
    let context = Arc::new(Context::new(
        client.clone(),
        configuration,
        github,
        Arc::new(SystemClock),
        metrics,
        templates.clone(),
    ));
    // Without the templates every workspace would be told for a moment that there are none.
    if templates.wait_until_ready().await.is_err() {
        return;
    }
    tokio::join!(
        run_workspaces(&client, &context, &stop),
        run_runs(&client, &context, &stop)
    );
    // The task ends by `stop` too; its end cannot fail.
    drop(watch_templates.await);
}

async fn run_workspaces(client: &Client, context: &Arc<Context>, stop: &CancellationToken) {
    let controller = Controller::new(
        Api::<Readable<CodeWorkspace>>::all(client.clone()),
        watcher::Config::default(),
    );
    let store = controller.store();
    let of_templates = store.clone();
    let controller = controller
        .with_config(Config::default().concurrency(CONCURRENCY))
        .watches(
            Api::<Readable<CodeRun>>::all(client.clone()),
            watcher::Config::default(),
            |run| {
                let run = run.0.ok()?;
                let namespace = run.namespace()?;
                Some(ObjectRef::new(&run.spec.workspace_ref.name).within(&namespace))
            },
        )
        .watches(
            Api::<Readable<RunnerTemplate>>::all(client.clone()),
            watcher::Config::default(),
            move |_| {
                of_templates
                    .state()
                    .iter()
                    .map(|workspace| ObjectRef::from_obj(workspace.as_ref()))
                    .collect::<Vec<_>>()
            },
        )
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

async fn run_runs(client: &Client, context: &Arc<Context>, stop: &CancellationToken) {
    let ours = watcher::Config::default().labels(&format!("{}={}", labels::MANAGED_BY, labels::MANAGER));
    let controller = Controller::new(
        Api::<Readable<CodeRun>>::all(client.clone()),
        watcher::Config::default(),
    );
    let store = controller.store();
    let controller = controller
        .with_config(Config::default().concurrency(CONCURRENCY))
        .owns(Api::<Pod>::all(client.clone()), ours)
        .watches(
            Api::<Readable<CodeWorkspace>>::all(client.clone()),
            watcher::Config::default(),
            move |workspace| {
                let (name, namespace) = (workspace.name_any(), workspace.namespace());
                let waits = |run: &Readable<CodeRun>| {
                    run.0.as_ref().is_ok_and(|run| {
                        run.spec.workspace_ref.name == name
                            && run.namespace() == namespace
                            && !run
                                .status
                                .as_ref()
                                .is_some_and(codeworkspace_api::CodeRunStatus::is_finished)
                    })
                };
                let runs = store.state();
                runs.iter()
                    .filter(|run| waits(run))
                    .map(|run| ObjectRef::from_obj(run.as_ref()))
                    .collect::<Vec<_>>()
            },
        )
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
    let (reconcile, refuse) = (Arc::new(reconcile), Arc::new(refuse));
    controller
        .run(
            move |object: Arc<Readable<K>>, context: Arc<Context>| {
                let (reconcile, refuse, backoff) = (reconcile.clone(), refuse.clone(), succeeded.clone());
                async move {
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

async fn cancel_on_signal(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return stop.cancel();
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    tracing::info!("asked to stop: finishing what is under way");
    stop.cancel();
}
