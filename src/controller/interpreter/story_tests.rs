//! Whole reconciles of interpreters against a small API server.

use std::sync::Arc;
use std::time::Duration;

use codeworkspace_api::{
    CodeInterpreter, CodeInterpreterStatus, CodeSession, RunnerTemplate, WarmPoolStatus,
};
use kube::runtime::controller::Action;
use serde_json::{Value, json};

use super::reconcile;
use crate::controller::session_story::SessionStory;

const PATH: &str = "/apis/codeworkspace.dev/v1alpha1/namespaces/team-a/codeinterpreters/tool";

fn interpreter(spec: &Value) -> Value {
    json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeInterpreter",
        "metadata": {"name": "tool", "namespace": "team-a", "uid": "uid-1", "generation": 1}, "spec": spec
    })
}

fn session(name: &str, state: &str) -> CodeSession {
    serde_json::from_value(json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeSession",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {"interpreterRef": {"name": "tool"}, "timeoutSeconds": 900, "parametersDigest": "x"},
        "status": {"state": state}
    }))
    .unwrap()
}

fn template() -> RunnerTemplate {
    serde_json::from_value(json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "RunnerTemplate", "metadata": {"name": "python"},
        "spec": {"image": "example/image", "languages": ["python"], "kernels": ["python3"]}
    }))
    .unwrap()
}

fn report(ready: i32, error: Option<&str>) -> WarmPoolStatus {
    WarmPoolStatus {
        size: 2,
        ready,
        starting: 0,
        last_error: error.map(str::to_owned),
    }
}

async fn look(story: &SessionStory) -> (Action, CodeInterpreterStatus) {
    let read = || -> CodeInterpreter { serde_json::from_value(story.api.get(PATH).unwrap()).unwrap() };
    let action = reconcile(Arc::new(read()), story.context.clone()).await.unwrap();
    (action, read().status.unwrap_or_default())
}

fn conditions(status: &CodeInterpreterStatus) -> Vec<(&str, &str, &str)> {
    status
        .conditions
        .iter()
        .map(|condition| {
            (
                condition.type_.as_str(),
                condition.status.as_str(),
                condition.reason.as_str(),
            )
        })
        .collect()
}

#[tokio::test]
async fn an_interpreter_says_what_its_sessions_get_and_what_stands_ready() {
    let mut story = SessionStory::new();
    story.api.put(PATH, interpreter(&json!({})));
    story.see_template(template());
    story.see_session(session("one", "Ready"));
    story.see_session(session("two", "Pending"));
    story.see_session(session("three", "Terminated"));
    let (_, status) = look(&story).await;
    assert_eq!(
        conditions(&status),
        [
            ("Ready", "Unknown", "Progressing"),
            ("Reconciling", "True", "Progressing")
        ]
    );
    story.memory().set_report("team-a", "python", &report(2, None));
    let (_, status) = look(&story).await;
    assert_eq!(conditions(&status), [("Ready", "True", "Ready")]);
    assert_eq!(status.template.as_deref(), Some("python"));
    assert_eq!(status.sessions, Some(2));
    assert_eq!(status.warm_pool, Some(report(2, None)));
    assert!(status.identifier.unwrap().starts_with("tool-"));
}

#[tokio::test]
async fn pods_that_do_not_start_are_told_and_those_that_wait_are_still_given() {
    let mut story = SessionStory::new();
    story.api.put(PATH, interpreter(&json!({})));
    story.see_template(template());
    story
        .memory()
        .set_report("team-a", "python", &report(1, Some("no image")));
    let (_, status) = look(&story).await;
    assert_eq!(
        conditions(&status),
        [
            ("Ready", "True", "Ready"),
            ("Reconciling", "True", "PodsNotStarting")
        ]
    );
    story
        .memory()
        .set_report("team-a", "python", &report(0, Some("no image")));
    let (_, status) = look(&story).await;
    assert_eq!(
        conditions(&status),
        [
            ("Ready", "False", "PodsNotStarting"),
            ("Reconciling", "True", "PodsNotStarting")
        ]
    );
}

#[tokio::test]
async fn an_interpreter_whose_template_is_gone_is_stalled_and_no_other_template_steps_in() {
    let mut story = SessionStory::new();
    story.api.put(PATH, interpreter(&json!({"template": "gone"})));
    story.see_template(template());
    let (_, status) = look(&story).await;
    assert_eq!(
        conditions(&status),
        [
            ("Ready", "False", "UnknownTemplate"),
            ("Stalled", "True", "UnknownTemplate")
        ]
    );
    assert_eq!((status.template, status.warm_pool), (None, None));
}

#[tokio::test]
async fn numbers_are_told_once_a_second_and_everything_else_at_once() {
    let mut story = SessionStory::new();
    story.api.put(PATH, interpreter(&json!({})));
    story.see_template(template());
    story.memory().set_report("team-a", "python", &report(1, None));
    look(&story).await;
    story.memory().set_report("team-a", "python", &report(2, None));
    let (action, status) = look(&story).await;
    assert_eq!(action, Action::requeue(Duration::from_secs(1)));
    assert_eq!(status.warm_pool, Some(report(1, None)));
    story
        .memory()
        .set_report("team-a", "python", &report(0, Some("no image")));
    let (_, status) = look(&story).await;
    assert_eq!(status.warm_pool, Some(report(0, Some("no image"))));
    story.clock.advance(Duration::from_secs(1));
    story
        .memory()
        .set_report("team-a", "python", &report(0, Some("no image")));
    let writes = story.api.take_writes().len();
    assert_eq!(writes, 2);
    look(&story).await;
    assert_eq!(story.api.take_writes(), Vec::<String>::new());
}
