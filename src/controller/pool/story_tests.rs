//! Whole looks at the pools of a namespace against a small API server.

use std::time::Duration;

use codeworkspace_api::{CodeInterpreter, CodeSession, RunnerTemplate};
use serde_json::{Value, json};

use super::reconcile::{Looked, reconcile};
use crate::controller::session_story::SessionStory;

const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/team-a/networkpolicies/";

fn template(name: &str, image: &str) -> RunnerTemplate {
    serde_json::from_value(json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "RunnerTemplate", "metadata": {"name": name},
        "spec": {"image": image, "languages": ["python"], "kernels": ["python3"]}
    }))
    .unwrap()
}

fn interpreter(name: &str, spec: &Value) -> CodeInterpreter {
    serde_json::from_value(json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeInterpreter",
        "metadata": {"name": name, "namespace": "team-a"}, "spec": spec
    }))
    .unwrap()
}

fn session(name: &str, pod: Option<&str>, state: Option<&str>) -> CodeSession {
    serde_json::from_value(json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeSession",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {
            "interpreterRef": {"name": "tool"}, "timeoutSeconds": 900, "parametersDigest": "x", "podName": pod
        },
        "status": {"state": state}
    }))
    .unwrap()
}

async fn look(story: &SessionStory) -> Looked {
    reconcile(&story.context, story.sessions(), "team-a")
        .await
        .unwrap()
}

fn names(story: &SessionStory) -> Vec<String> {
    let pods = story.pods().into_iter();
    pods.filter_map(|pod| pod.metadata.name).collect()
}

fn start(story: &SessionStory) {
    for name in names(story) {
        story.change_pod(&name, |pod| {
            pod["metadata"]["annotations"]["codeworkspace.dev/key-digest"] = json!("sha256:00");
            pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        });
    }
}

fn claim(story: &SessionStory, pod: &str, session: &str) {
    story.change_pod(pod, |pod| {
        pod["metadata"]["labels"]["codeworkspace.dev/state"] = json!("claimed");
        pod["metadata"]["labels"]["codeworkspace.dev/session"] = json!(session);
    });
}

fn fail(story: &SessionStory) {
    for name in names(story) {
        story.change_pod(&name, |pod| {
            pod["status"] = json!({"phase": "Failed", "reason": "NodeAffinity", "message": "no"});
        });
    }
}

#[tokio::test]
async fn a_pool_is_filled_behind_policies_once_although_the_watch_lags_behind() {
    let mut story = SessionStory::new();
    story.see_template(template("python", "example/python:1"));
    story.see_interpreter(interpreter("tool", &json!({"warmPool": {"size": 2}})));
    let looked = look(&story).await;
    assert!(looked.news);
    assert_eq!(
        story.api.take_writes(),
        [
            format!("PATCH {POLICIES}codeworkspace-default-deny"),
            format!("PATCH {POLICIES}codeworkspace-sessions"),
            "POST /api/v1/namespaces/team-a/pods".to_owned(),
            "POST /api/v1/namespaces/team-a/pods".to_owned(),
        ]
    );
    look(&story).await;
    story.see_pods();
    look(&story).await;
    start(&story);
    story.see_pods();
    assert!(look(&story).await.news);
    assert!(!look(&story).await.news);
    assert_eq!(story.api.take_writes(), Vec::<String>::new());
    let report = story.memory().report("team-a", "python").unwrap();
    assert_eq!((report.size, report.ready, report.starting), (2, 2, 0));
}

#[tokio::test]
async fn a_claimed_pod_is_replaced_by_one_write_and_never_touched() {
    let mut story = SessionStory::new();
    story.see_template(template("python", "example/python:1"));
    story.see_interpreter(interpreter("tool", &json!({"warmPool": {"size": 1}})));
    look(&story).await;
    start(&story);
    story.see_pods();
    look(&story).await;
    let first = names(&story).remove(0);
    // While a session is about to claim it, the next one is made already.
    story.see_session(session("one", Some(&first), None));
    story.api.take_writes();
    look(&story).await;
    assert_eq!(
        story.api.take_writes(),
        ["POST /api/v1/namespaces/team-a/pods".to_owned()]
    );
    claim(&story, &first, "one");
    story.see_pods();
    story.see_session(session("one", Some(&first), Some("Ready")));
    look(&story).await;
    assert_eq!(story.api.take_writes(), Vec::<String>::new());
    // The interpreter goes: what waits goes with it, what somebody has stays.
    let mut gone = interpreter("tool", &json!({}));
    gone.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    story.see_interpreter(gone);
    look(&story).await;
    assert_eq!(names(&story), [first]);
}

#[tokio::test]
async fn a_pod_that_was_claimed_unseen_is_not_deleted() {
    let mut story = SessionStory::new();
    story.see_template(template("python", "example/python:1"));
    story.see_interpreter(interpreter("tool", &json!({"warmPool": {"size": 1}})));
    look(&story).await;
    start(&story);
    story.see_pods();
    let first = names(&story).remove(0);
    claim(&story, &first, "one");
    story.see_interpreter(interpreter("tool", &json!({"warmPool": {"size": 0}})));
    let looked = look(&story).await;
    assert_eq!(looked.again, Duration::from_secs(1));
    assert_eq!(names(&story), [first]);
}

#[tokio::test]
async fn sessions_without_warm_pods_get_cold_ones_up_to_the_interpreters_limit() {
    let mut story = SessionStory::new();
    story.see_template(template("python", "example/python:1"));
    story.see_interpreter(interpreter("tool", &json!({"warmPool": {"size": 0, "max": 2}})));
    look(&story).await;
    assert_eq!(names(&story).len(), 0);
    for name in ["one", "two", "three"] {
        story.see_session(session(name, None, None));
    }
    look(&story).await;
    assert_eq!(names(&story).len(), 2);
}

#[tokio::test]
async fn all_pools_of_a_namespace_share_its_limit() {
    let mut story = SessionStory::new();
    story.see_template(template("python", "example/python:1"));
    story.see_template(template("other", "example/other:1"));
    story.see_interpreter(interpreter(
        "one",
        &json!({"template": "python", "warmPool": {"size": 15}}),
    ));
    story.see_interpreter(interpreter(
        "two",
        &json!({"template": "other", "warmPool": {"size": 15}}),
    ));
    for _ in 0..5 {
        look(&story).await;
        story.see_pods();
    }
    assert_eq!(names(&story).len(), 20);
}

#[tokio::test]
async fn a_changed_template_gives_new_pods_while_the_former_ones_still_serve() {
    let mut story = SessionStory::new();
    story.see_template(template("python", "example/python:1"));
    story.see_interpreter(interpreter("tool", &json!({"warmPool": {"size": 1}})));
    look(&story).await;
    start(&story);
    story.see_pods();
    let former = names(&story).remove(0);
    story.see_template(template("python", "example/python:2"));
    look(&story).await;
    story.see_pods();
    look(&story).await;
    assert_eq!(names(&story).len(), 2);
    start(&story);
    story.see_pods();
    look(&story).await;
    let now = names(&story);
    assert_eq!(now.len(), 1);
    assert_ne!(now, [former]);
}

#[tokio::test]
async fn starts_that_fail_are_told_and_tried_again_later_one_by_one() {
    let mut story = SessionStory::new();
    story.see_template(template("python", "example/python:1"));
    story.see_interpreter(interpreter("tool", &json!({"warmPool": {"size": 3}})));
    look(&story).await;
    fail(&story);
    story.see_pods();
    let looked = look(&story).await;
    assert_eq!(looked.again, Duration::from_secs(5));
    story.see_pods();
    assert_eq!(names(&story).len(), 0);
    let report = story.memory().report("team-a", "python").unwrap();
    assert_eq!(report.last_error.as_deref(), Some("NodeAffinity: no"));
    look(&story).await;
    assert_eq!(names(&story).len(), 0);
    story.clock.advance(Duration::from_secs(5));
    look(&story).await;
    assert_eq!(names(&story).len(), 1);
}

#[tokio::test]
async fn a_refusal_of_the_api_server_is_told_in_its_own_words() {
    let mut story = SessionStory::new();
    story.see_template(template("python", "example/python:1"));
    story.see_interpreter(interpreter("tool", &json!({"warmPool": {"size": 3}})));
    story.api.refuse("/pods", "exceeded quota: pods=10");
    let looked = look(&story).await;
    assert_eq!(looked.again, Duration::from_secs(5));
    let report = story.memory().report("team-a", "python").unwrap();
    assert_eq!(report.last_error.as_deref(), Some("exceeded quota: pods=10"));
    look(&story).await;
    let pods = story.api.take_writes();
    assert_eq!(
        pods.iter()
            .filter(|write| write.as_str() == "POST /api/v1/namespaces/team-a/pods")
            .count(),
        1
    );
}

#[tokio::test]
async fn a_claimed_pod_without_a_session_is_deleted_and_counted_unless_somebody_deleted_the_session() {
    for (departed, leaked) in [(true, 0), (false, 1)] {
        let mut story = SessionStory::new();
        story.see_template(template("python", "example/python:1"));
        story.see_interpreter(interpreter("tool", &json!({"warmPool": {"size": 1}})));
        look(&story).await;
        let pod = names(&story).remove(0);
        claim(&story, &pod, "one");
        story.see_pods();
        if departed {
            story.memory().departed("team-a", "one");
        }
        story.see_interpreter(interpreter("tool", &json!({"warmPool": {"size": 0}})));
        look(&story).await;
        assert_eq!(names(&story).len(), 0);
        let text = story.context.metrics.text().unwrap();
        let line = format!("codeworkspace_leaked_pods_total {leaked}\n");
        assert!(text.contains(&line), "{text}");
    }
}

#[tokio::test]
async fn a_session_that_the_watch_has_not_shown_yet_keeps_its_pod() {
    let mut story = SessionStory::new();
    story.see_template(template("python", "example/python:1"));
    story.see_interpreter(interpreter("tool", &json!({"warmPool": {"size": 1}})));
    look(&story).await;
    let pod = names(&story).remove(0);
    claim(&story, &pod, "one");
    story.see_pods();
    story.api.put(
        "/apis/codeworkspace.dev/v1alpha1/namespaces/team-a/codesessions/one",
        serde_json::to_value(session("one", Some(&pod), None)).unwrap(),
    );
    look(&story).await;
    assert!(names(&story).contains(&pod));
}
