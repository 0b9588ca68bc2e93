//! Runs the looks at pools, one namespace at a time and many namespaces at once.

use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::core::PartialObjectMeta;
use kube::runtime::Controller;
use kube::runtime::controller::{Action, Config};
use tokio_util::sync::CancellationToken;

use super::reconcile::reconcile;
use crate::controller::session_looks::SessionLooks;
use crate::controller::watches::Wanted;
use crate::controller::{Backoff, Context, Error};

/// Namespaces that are looked at at once.
const CONCURRENCY: u16 = 32;
/// What metrics and logs call it.
const KIND: &str = "Pool";

/// Runs until `stop`.
pub async fn run(
    context: &Arc<Context>,
    wanted: Wanted<PartialObjectMeta<Namespace>>,
    wants: Arc<SessionLooks>,
    stop: &CancellationToken,
) {
    let backoff = Arc::new(Backoff::default());
    let succeeded = backoff.clone();
    Controller::for_shared_stream(stream::pending(), context.stores.namespaces.clone())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .reconcile_on(wanted)
        .graceful_shutdown_on(stop.clone().cancelled_owned())
        .run(
            move |namespace: Arc<PartialObjectMeta<Namespace>>, context: Arc<Context>| {
                let (wants, backoff) = (wants.clone(), succeeded.clone());
                async move {
                    let Some(sessions) = &context.sessions else {
                        return Ok(Action::await_change());
                    };
                    let started = Instant::now();
                    let name = namespace.name_any();
                    let looked = reconcile(&context, sessions, &name).await;
                    let label = looked.as_ref().map_or_else(Error::label, |_| "ok");
                    context.metrics.reconciled(KIND, label, started.elapsed());
                    let looked = looked?;
                    backoff.succeeded(&name);
                    if looked.news {
                        wants.news(&name);
                    }
                    Ok(Action::requeue(looked.again))
                }
            },
            move |namespace: Arc<PartialObjectMeta<Namespace>>, error: &Error, _| {
                let name = namespace.name_any();
                let delay = backoff.failed(&name);
                tracing::warn!(kind = KIND, name, %error, delay_seconds = delay.as_secs(), "reconcile failed");
                Action::requeue(delay)
            },
            context.clone(),
        )
        .for_each(|_| async {})
        .await;
}
