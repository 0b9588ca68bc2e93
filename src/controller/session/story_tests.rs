//! Whole reconciles of sessions against a small API server.

use std::sync::Arc;
use std::time::Duration;

use codeworkspace_api::{CodeInterpreter, CodeSession, RunnerTemplate, SessionReason, SessionState};
use kube::runtime::controller::Action;
use serde_json::{Value, json};

use super::reconcile;
use crate::controller::session_story::SessionStory;

const SESSION: &str = "/apis/codeworkspace.dev/v1alpha1/namespaces/team-a/codesessions/one";
const POD: &str = "/api/v1/namespaces/team-a/pods/pod";

/// An interpreter, a session of it that wants a pod, and that pod, which is warm.
fn story() -> SessionStory {
    let mut story = SessionStory::new();
    let template: RunnerTemplate = serde_json::from_value(json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "RunnerTemplate", "metadata": {"name": "python"},
        "spec": {"image": "example/image", "languages": ["python"], "kernels": ["python3"]}
    }))
    .unwrap();
    story.see_template(template);
    let interpreter: CodeInterpreter = serde_json::from_value(json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeInterpreter",
        "metadata": {"name": "tool", "namespace": "team-a"}, "spec": {}
    }))
    .unwrap();
    story.see_interpreter(interpreter);
    story.api.put(
        SESSION,
        json!({
            "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeSession",
            "metadata": {
                "name": "one", "namespace": "team-a", "uid": "uid-s", "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z"
            },
            "spec": {
                "interpreterRef": {"name": "tool"}, "timeoutSeconds": 900, "parametersDigest": "x", "podName": "pod"
            },
            "status": {"observedGeneration": -1}
        }),
    );
    story.api.put(
        POD,
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "pod", "namespace": "team-a", "uid": "uid-p",
                "labels": {"codeworkspace.dev/class": "session", "codeworkspace.dev/state": "warm"}
            },
            "spec": {"containers": []},
            "status": {"phase": "Running", "startTime": "2025-12-31T23:50:00Z"}
        }),
    );
    story
}

fn claim(story: &SessionStory) {
    story.change_pod("pod", |pod| {
        pod["metadata"]["labels"]["codeworkspace.dev/state"] = json!("claimed");
        pod["metadata"]["labels"]["codeworkspace.dev/session"] = json!("one");
        pod["spec"]["activeDeadlineSeconds"] = json!(1500);
    });
}

fn change(story: &SessionStory, change: impl FnOnce(&mut Value)) {
    let mut session = story.api.get(SESSION).unwrap();
    change(&mut session);
    story.api.put(SESSION, session);
}

fn read(story: &SessionStory) -> CodeSession {
    serde_json::from_value(story.api.get(SESSION).unwrap()).unwrap()
}

fn status(story: &SessionStory) -> (Option<SessionState>, Option<SessionReason>) {
    let status = read(story).status.unwrap();
    (status.state, status.reason)
}

/// A look at what the watches show now.
async fn look(story: &mut SessionStory) -> Action {
    story.see_pods();
    let session = read(story);
    story.see_session(session.clone());
    reconcile(Arc::new(session), story.context.clone()).await.unwrap()
}

const fn state(state: SessionState, reason: SessionReason) -> (Option<SessionState>, Option<SessionReason>) {
    (Some(state), Some(reason))
}

#[tokio::test]
async fn a_warm_claim_costs_one_write_of_status() {
    let mut story = story();
    assert_eq!(look(&mut story).await, Action::requeue(Duration::from_secs(5)));
    claim(&story);
    look(&mut story).await;
    look(&mut story).await;
    assert_eq!(story.api.take_writes(), [format!("PATCH {SESSION}/status")]);
    assert_eq!(status(&story), state(SessionState::Ready, SessionReason::Claimed));
    let written = read(&story).status.unwrap();
    assert_eq!(written.pod_uid.as_deref(), Some("uid-p"));
    assert_eq!(
        written.expires_at.unwrap().0,
        "2026-01-01T00:15:00Z".parse().unwrap()
    );
}

#[tokio::test]
async fn a_stopped_session_loses_its_pod_first_and_is_forgotten_a_day_later() {
    let mut story = story();
    claim(&story);
    look(&mut story).await;
    story.api.take_writes();
    change(&story, |session| session["spec"]["stop"] = json!(true));
    look(&mut story).await;
    assert_eq!(
        story.api.take_writes(),
        [format!("DELETE {POD}"), format!("PATCH {SESSION}/status")]
    );
    assert_eq!(
        status(&story),
        state(SessionState::Terminated, SessionReason::Stopped)
    );
    assert_eq!(story.api.events("Stopped"), Vec::<String>::new());
    story.clock.advance(Duration::from_hours(23));
    look(&mut story).await;
    assert_eq!(story.api.take_writes(), Vec::<String>::new());
    story.clock.advance(Duration::from_hours(1));
    look(&mut story).await;
    assert_eq!(story.api.take_writes(), [format!("DELETE {SESSION}")]);
}

#[tokio::test]
async fn a_session_whose_pod_ended_says_why_and_leaves_nothing() {
    for (ended, reason, told) in [
        (
            json!({"phase": "Failed", "reason": "DeadlineExceeded"}),
            SessionReason::SessionTimeout,
            0,
        ),
        (
            json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
            SessionReason::Evicted,
            1,
        ),
    ] {
        let mut story = story();
        claim(&story);
        look(&mut story).await;
        story.change_pod("pod", |pod| pod["status"] = ended);
        look(&mut story).await;
        assert_eq!(status(&story), state(SessionState::Terminated, reason));
        assert_eq!(story.api.get(POD), None);
        assert_eq!(story.api.events(reason.as_str()).len(), told);
        let text = story.context.metrics.text().unwrap();
        let line = format!(
            "codeworkspace_sessions_ended_total{{reason=\"{}\"}} 1",
            reason.as_str()
        );
        assert!(text.contains(&line), "{text}");
    }
}

#[tokio::test]
async fn a_pod_that_is_gone_ends_its_session() {
    let mut story = story();
    claim(&story);
    look(&mut story).await;
    story.api.remove(POD);
    look(&mut story).await;
    assert_eq!(
        status(&story),
        state(SessionState::Terminated, SessionReason::PodDeleted)
    );
    assert_eq!(story.api.events("PodDeleted").len(), 1);
}

#[tokio::test]
async fn a_pod_that_was_claimed_for_a_session_after_its_end_is_deleted() {
    let mut story = story();
    change(&story, |session| session["spec"]["stop"] = json!(true));
    look(&mut story).await;
    assert_eq!(
        status(&story),
        state(SessionState::Terminated, SessionReason::Stopped)
    );
    claim(&story);
    look(&mut story).await;
    assert_eq!(story.api.get(POD), None);
}

#[tokio::test]
async fn a_session_without_a_pod_waits_and_gives_up() {
    let mut story = story();
    story.api.remove(POD);
    change(&story, |session| session["spec"]["podName"] = Value::Null);
    look(&mut story).await;
    assert_eq!(
        status(&story),
        state(SessionState::Pending, SessionReason::WaitingForPod)
    );
    story.clock.advance(Duration::from_mins(5));
    look(&mut story).await;
    assert_eq!(
        status(&story),
        state(SessionState::Terminated, SessionReason::StartFailed)
    );
    assert_eq!(story.api.events("StartFailed").len(), 1);
}

#[tokio::test]
async fn an_end_is_never_replaced_although_the_watch_lags_behind() {
    let mut story = story();
    claim(&story);
    look(&mut story).await;
    let before = read(&story);
    change(&story, |session| session["spec"]["stop"] = json!(true));
    look(&mut story).await;
    let after = story.api.get(SESSION);
    // The pod, too, is seen as it was.
    let action = reconcile(Arc::new(before), story.context.clone()).await.unwrap();
    assert_eq!(action, Action::requeue(Duration::from_mins(5)));
    assert_eq!(story.api.get(SESSION), after);
}

#[tokio::test]
async fn a_pod_of_a_former_session_of_the_same_name_is_deleted() {
    let mut story = story();
    claim(&story);
    let mut other = story.api.get(POD).unwrap();
    other["metadata"]["name"] = json!("other");
    other["metadata"]["uid"] = json!("uid-o");
    story.api.put("/api/v1/namespaces/team-a/pods/other", other);
    look(&mut story).await;
    assert_eq!(status(&story), state(SessionState::Ready, SessionReason::Claimed));
    assert_eq!(story.pods().len(), 1);
    assert!(story.api.get(POD).is_some());
}
