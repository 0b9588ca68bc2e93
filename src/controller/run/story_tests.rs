//! Whole reconciles of runs against a small API server.

use std::sync::Arc;
use std::time::Duration;

use codeworkspace_api::{CodeRun, Outcome, OutcomeReason};
use codeworkspace_source::{Clock, Github, GithubConfiguration, ManualClock};
use jiff::Timestamp;
use kube::runtime::controller::Action;
use serde_json::{Value, json};

use crate::controller::fake_api::FakeApi;
use crate::controller::{Context, Stores, run::reconcile};
use crate::metrics::Metrics;

const RUN: &str = "/apis/codeworkspace.dev/v1alpha1/namespaces/default/coderuns/tool-1";
const POD: &str = "/api/v1/namespaces/default/pods/tool-1";

struct Story {
    api: FakeApi,
    clock: Arc<ManualClock>,
    context: Arc<Context>,
}

impl Story {
    /// A run of a workspace that does not exist, made at the time that the clock shows.
    fn new(status: &Value) -> Self {
        let made: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Arc::new(ManualClock::new(made));
        let time: Arc<dyn Clock> = clock.clone();
        let api = FakeApi::default();
        let (stores, _) = Stores::new();
        let context = Context::new(
            api.client(),
            serde_saphyr::from_str("runnerImage: {reference: example/operator}").unwrap(),
            Github::new(GithubConfiguration::default(), time.clone()).unwrap(),
            time,
            Arc::new(Metrics::default()),
            stores,
        );
        api.put(
            RUN,
            json!({
                "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeRun",
                "metadata": {"name": "tool-1", "namespace": "default", "uid": "0001", "generation": 1,
                    "creationTimestamp": made.to_string()},
                "spec": {"workspaceRef": {"name": "tool"}},
                "status": status
            }),
        );
        Self {
            api,
            clock,
            context: Arc::new(context),
        }
    }

    fn run(&self) -> CodeRun {
        serde_json::from_value(self.api.get(RUN).unwrap()).unwrap()
    }

    async fn reconcile(&self, seen: CodeRun) -> Action {
        reconcile(Arc::new(seen), self.context.clone()).await.unwrap()
    }
}

/// The run as a watch shows it that has not heard of any status yet.
fn before_its_status(mut run: CodeRun) -> CodeRun {
    run.status = None;
    run
}

#[tokio::test]
async fn a_run_that_had_a_pod_gets_no_second_one_although_the_watch_lags_behind() {
    let story = Story::new(&json!({"observedGeneration": 1, "podName": "tool-1", "podUid": "0002"}));
    story.reconcile(before_its_status(story.run())).await;
    let status = story.run().status.unwrap();
    assert_eq!(
        (status.outcome, status.reason),
        (Some(Outcome::Lost), Some(OutcomeReason::PodDeleted))
    );
    let run_status = format!("PATCH {RUN}/status");
    assert_eq!(story.api.take_writes(), [run_status]);
}

#[tokio::test]
async fn an_outcome_is_never_replaced_although_the_watch_lags_behind() {
    let story = Story::new(&json!({
        "observedGeneration": 1, "podUid": "0002", "outcome": "StartError", "reason": "NotScheduled",
        "finishedAt": "2026-01-01T00:00:00Z"
    }));
    let before = story.api.get(RUN);
    story.reconcile(before_its_status(story.run())).await;
    assert_eq!(story.api.get(RUN), before);
    assert_eq!(story.api.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_that_another_one_of_its_name_has_followed_is_left_alone() {
    let story = Story::new(&json!({"observedGeneration": -1}));
    let mut former = story.run();
    former.metadata.uid = Some("0000".to_owned());
    assert_eq!(story.reconcile(former).await, Action::await_change());
    assert_eq!(story.api.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_that_waits_for_long_asks_ever_more_rarely_and_writes_once() {
    let story = Story::new(&json!({"observedGeneration": -1}));
    for (more, delay) in [(0, 2), (10, 2), (90, 10), (86_400, 60)] {
        story.clock.advance(Duration::from_secs(more));
        assert_eq!(
            story.reconcile(story.run()).await,
            Action::requeue(Duration::from_secs(delay))
        );
    }
    assert_eq!(
        story.run().status.unwrap().reason,
        Some(OutcomeReason::WorkspaceNotFound)
    );
    assert_eq!(story.api.take_writes().len(), 1);
}

/// A pod of the run's name that belongs to another run, such as an earlier one of the same name.
fn pod_of_another_run() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "tool-1", "namespace": "default", "uid": "0009", "ownerReferences": [{
            "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeRun", "name": "tool-1", "uid": "0000"
        }]}
    })
}

#[tokio::test]
async fn a_run_whose_name_another_pod_still_has_waits_for_it_to_go_but_not_for_ever() {
    let story = Story::new(&json!({"observedGeneration": -1}));
    story.api.put(POD, pod_of_another_run());
    let reason = || {
        let status = story.run().status.unwrap();
        (status.outcome, status.reason)
    };
    story.reconcile(story.run()).await;
    assert_eq!(reason(), (None, Some(OutcomeReason::PodRejected)));
    story.api.remove(POD);
    story.reconcile(story.run()).await;
    assert_eq!(reason(), (None, Some(OutcomeReason::WorkspaceNotFound)));
    story.api.put(POD, pod_of_another_run());
    story.clock.advance(Duration::from_mins(5));
    story.reconcile(story.run()).await;
    assert_eq!(
        reason(),
        (Some(Outcome::StartError), Some(OutcomeReason::PodRejected))
    );
}

#[tokio::test]
async fn a_run_whose_pod_was_replaced_by_another_one_is_lost() {
    let story = Story::new(&json!({"observedGeneration": 1, "podName": "tool-1", "podUid": "0002"}));
    story.api.put(POD, pod_of_another_run());
    story.reconcile(story.run()).await;
    let status = story.run().status.unwrap();
    assert_eq!(
        (status.outcome, status.reason),
        (Some(Outcome::Lost), Some(OutcomeReason::PodDeleted))
    );
}
