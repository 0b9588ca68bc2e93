//! What heals by itself is tried again soon, and what was interrupted is made good.

use std::sync::Arc;

use codeworkspace_api::CodeRun;

use super::*;
use crate::controller::run;

const SOON: Duration = Duration::from_mins(1);

fn pinned(commit: &str) -> Value {
    json!({"code": {"sources": [{"github": {"repo": "octo/tool", "ref": commit}}]}, "run": "main.py"})
}

fn inline(content: &str) -> Value {
    json!({"code": {"sources": [{"inline": {"path": "main.py", "content": content}}]}, "run": "main.py"})
}

fn down() -> Switches {
    Switches {
        answer: Some(Answer {
            status: 503,
            ..Answer::default()
        }),
        ..Switches::default()
    }
}

#[tokio::test]
async fn a_download_that_fails_is_tried_again_soon_also_for_a_pinned_commit() {
    let story = Story::new().await;
    let commit = story.commit("print(1)");
    story.github.set_switches(down());
    story.apply(1, &pinned(&commit));
    let delay = story.reconcile().await;
    assert_eq!(story.condition("Reconciling").0, "True");
    assert!(delay < SOON, "{delay:?}");
    story.github.set_switches(Switches::default());
    story.clock.advance(delay);
    story.reconcile().await;
    assert_eq!(story.condition("Ready").0, "True");
}

#[tokio::test]
async fn a_refused_config_map_or_run_is_tried_again_soon_and_told_in_status() {
    for (refused, reason) in [("/configmaps", "DeliveryFailed"), ("/coderuns", "RunNotCreated")] {
        let story = Story::new().await;
        story.api.refuse(refused, "exceeded quota");
        story.apply(1, &inline("print(1)"));
        let delay = story.reconcile().await;
        assert!(delay < SOON, "{delay:?}");
        assert_eq!(story.ready().reason, reason);
        assert!(story.ready().message.contains("exceeded quota"));
    }
}

#[tokio::test]
async fn a_run_whose_policy_or_bundle_is_refused_says_so_in_the_servers_words() {
    for (refused, told) in [
        (
            "/networkpolicies/",
            "NetworkPolicy codeworkspace-default-deny could not be applied: no policies here",
        ),
        ("/configmaps/", "could not be held for this run: no policies here"),
    ] {
        let story = Story::new().await;
        story.apply(1, &inline("print(1)"));
        story.reconcile().await;
        let path = story.api.paths(RUNS).remove(0);
        story.api.refuse(refused, "no policies here");
        let run: CodeRun = serde_json::from_value(story.api.get(&path).unwrap()).unwrap();
        run::reconcile(Arc::new(run), story.context.clone())
            .await
            .unwrap();
        let status = &story.api.get(&path).unwrap()["status"];
        assert_eq!(status["reason"], "PodRejected", "{status}");
        assert!(status["message"].as_str().unwrap().contains(told), "{status}");
        assert_eq!(
            story.api.paths("/api/v1/namespaces/default/pods/"),
            Vec::<String>::new()
        );
    }
}

#[tokio::test]
async fn a_run_of_somebody_else_with_the_name_of_ours_is_named_in_status() {
    let story = Story::new().await;
    story.apply(1, &inline("print(1)"));
    story.reconcile().await;
    let path = story.api.paths(RUNS).remove(0);
    let mut run = story.api.get(&path).unwrap();
    run["metadata"]["ownerReferences"] = json!([]);
    story.api.put(&path, run);
    let mut workspace = story.api.get(WORKSPACE).unwrap();
    workspace["status"] = json!({"observedGeneration": -1});
    story.api.put(WORKSPACE, workspace);
    story.reconcile().await;
    assert_eq!(story.ready().reason, "RunNotCreated");
    assert!(story.ready().message.contains("delete it"));
}

#[tokio::test]
async fn a_state_whose_run_was_replaced_before_it_started_is_run_when_it_comes_back() {
    let story = Story::new().await;
    story.apply(1, &inline("print(1)"));
    story.reconcile().await;
    let first = story.api.paths(RUNS).remove(0);
    story.apply(2, &inline("print(2)"));
    story.reconcile().await;
    let mut run = story.api.get(&first).unwrap();
    run["status"] = json!({"outcome": "Cancelled", "reason": "Superseded"});
    story.api.put(&first, run);
    story.apply(3, &inline("print(1)"));
    story.reconcile().await;
    assert!(story.api.get(&first).unwrap()["status"].is_null());
    let last = story.workspace().status.unwrap().last_run.unwrap();
    assert!(first.ends_with(&last.name));
    assert_eq!(last.outcome, None);
}

#[tokio::test]
async fn a_state_that_was_run_is_not_run_again_when_it_comes_back() {
    let story = Story::new().await;
    story.apply(1, &inline("print(1)"));
    story.reconcile().await;
    let first = story.api.paths(RUNS).remove(0);
    let mut run = story.api.get(&first).unwrap();
    run["status"] = json!({"outcome": "Failed", "reason": "NonZeroExit", "exitCode": 3, "podUid": "0002"});
    story.api.put(&first, run.clone());
    for (generation, content) in [(2, "print(2)"), (3, "print(1)")] {
        story.apply(generation, &inline(content));
        story.reconcile().await;
    }
    assert_eq!(story.api.get(&first).unwrap()["status"], run["status"]);
    let last = story.workspace().status.unwrap().last_run.unwrap();
    assert_eq!(last.exit_code, Some(3));
}

#[tokio::test]
async fn an_old_bundle_stays_while_a_run_that_has_not_said_so_yet_holds_it() {
    let story = Story::new().await;
    story.apply(1, &inline("print(1)"));
    story.reconcile().await;
    let run = story.api.paths(RUNS).remove(0);
    story.api.remove(&run);
    let by_hand = format!("{RUNS}by-hand");
    story.api.put(
        &by_hand,
        json!({
            "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeRun",
            "metadata": {"name": "by-hand", "namespace": "default", "uid": "0009"},
            "spec": {"workspaceRef": {"name": "tool"}}
        }),
    );
    let first = story.api.paths(CONFIG_MAPS).remove(0);
    let mut bundle = story.api.get(&first).unwrap();
    bundle["metadata"]["ownerReferences"]
        .as_array_mut()
        .unwrap()
        .push(json!({"apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeRun", "name": "by-hand", "uid": "0009"}));
    story.api.put(&first, bundle);
    story.apply(2, &inline("print(2)"));
    story.reconcile().await;
    assert!(story.api.get(&first).is_some());
    assert_eq!(story.api.paths(CONFIG_MAPS).len(), 2);
}

#[tokio::test]
async fn a_template_that_vanishes_is_told_also_while_github_is_down() {
    let mut story = Story::new().await;
    story.commit("print(1)");
    story.apply(1, &pinned("main"));
    let delay = story.reconcile().await;
    story.github.set_switches(down());
    story.clock.advance(delay);
    story.restart_without_templates();
    story.reconcile().await;
    assert_eq!(story.ready().reason, "NoMatchingTemplate");
    assert_eq!(story.condition("RunnerResolved").0, "False");
    assert_eq!(story.condition("Stale").0, "True");
}

#[tokio::test]
async fn a_suspended_workspace_keeps_what_was_known_and_does_not_become_ready() {
    let story = Story::new().await;
    story.apply(1, &inline("print(1)"));
    story.reconcile().await;
    let suspended = |mut spec: Value| {
        spec["suspend"] = json!(true);
        spec
    };
    story.apply(2, &suspended(inline("print(1)")));
    story.reconcile().await;
    assert_eq!(
        story.condition("Ready"),
        ("True".to_owned(), "Suspended".to_owned())
    );
    assert_eq!(story.condition("SourcesResolved").0, "True");
    story.apply(
        3,
        &json!({"code": {"sources": [{"local": "data/"}]}, "run": "main.py"}),
    );
    story.reconcile().await;
    assert!(story.workspace().status.unwrap().bundle.is_some());
    story.apply(4, &suspended(inline("print(1)")));
    story.reconcile().await;
    assert_eq!(
        story.condition("Ready"),
        ("False".to_owned(), "Suspended".to_owned())
    );
    assert_eq!(story.condition("SourcesResolved").0, "False");
}

#[tokio::test]
async fn a_workspace_that_cannot_be_read_is_told_so_once_and_keeps_what_is_known_of_it() {
    let story = Story::new().await;
    story.apply(1, &inline("print(1)"));
    story.reconcile().await;
    let former = story.workspace().status.unwrap();
    story.apply(2, &json!({"code": [], "suspend": "yes"}));
    story.api.take_writes();
    for _ in 0..2 {
        let found: Readable<CodeWorkspace> =
            serde_json::from_value(story.api.get(WORKSPACE).unwrap()).unwrap();
        refuse(found.0.unwrap_err(), story.context.clone()).await.unwrap();
    }
    assert_eq!(story.api.take_writes(), [format!("PATCH {WORKSPACE}/status")]);
    story.apply(2, &inline("print(1)"));
    let status = story.workspace().status.unwrap();
    assert_eq!(status.observed_generation, Some(2));
    assert_eq!(
        story.ready().message,
        "the object cannot be read: invalid type: string \"yes\", expected a boolean"
    );
    assert_eq!(story.ready().reason, "ManifestValidationError");
    assert_eq!(story.condition("Stalled").0, "True");
    assert_eq!((status.bundle, status.last_run), (former.bundle, former.last_run));
}
