use serde_json::json;

use super::*;

fn pool() -> Pool {
    Pool {
        namespace: "team".to_owned(),
        template: "interpreter".to_owned(),
    }
}

fn pod(name: &str, state: &str, session: Option<&str>, ready: bool) -> Pod {
    let mut labels = json!({
        "codeworkspace.dev/class": "session",
        "codeworkspace.dev/template": "interpreter",
        "codeworkspace.dev/state": state,
    });
    if let Some(session) = session {
        labels["codeworkspace.dev/session"] = json!(session);
    }
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "team", "uid": format!("uid-{name}"), "labels": labels,
            "annotations": {"codeworkspace.dev/key-digest": "sha256:aa"},
        },
        "status": {
            "podIP": "10.0.0.7", "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        },
    }))
    .unwrap()
}

fn names(index: &Index) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(pod) = index.take(&pool(), 0) {
        names.push(pod.name);
    }
    names
}

#[test]
fn only_pods_that_are_ready_registered_and_free_are_given_out_and_each_once() {
    let index = Index::default();
    index.apply(&pod("a", "warm", None, true));
    index.apply(&pod("b", "warm", None, false));
    index.apply(&pod("c", "claimed", Some("s1"), true));
    let mut unregistered = pod("d", "warm", None, true);
    unregistered.metadata.annotations = None;
    index.apply(&unregistered);
    let mut leaving = pod("e", "warm", None, true);
    leaving.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    index.apply(&leaving);
    let mut run = pod("f", "warm", None, true);
    run.labels_mut()
        .insert("codeworkspace.dev/class".into(), "run".into());
    index.apply(&run);
    assert_eq!(names(&index), ["a"]);
}

#[test]
fn a_pod_that_was_given_back_is_given_out_again() {
    let index = Index::default();
    index.apply(&pod("a", "warm", None, true));
    let taken = index.take(&pool(), 0).unwrap();
    assert_eq!(index.take(&pool(), 0), None);
    index.give_back(&taken);
    assert_eq!(names(&index), ["a"]);
}

#[test]
fn a_taken_pod_stays_taken_when_everything_is_listed_anew_before_the_claim_is_seen() {
    let index = Index::default();
    let warm = [pod("a", "warm", None, true), pod("b", "warm", None, true)];
    index.replace(&warm);
    assert_eq!(index.take(&pool(), 0).unwrap().name, "a");
    index.replace(&warm);
    assert_eq!(names(&index), ["b"]);
}

#[test]
fn a_session_is_found_by_its_pod_until_the_pod_is_gone() {
    let index = Index::default();
    index.apply(&pod("a", "warm", None, true));
    assert_eq!(index.of_session("team", "s1"), None);
    let claimed = pod("a", "claimed", Some("s1"), true);
    index.apply(&claimed);
    assert_eq!(index.of_session("team", "s1").unwrap().name, "a");
    assert_eq!(index.of_session("other", "s1"), None);
    index.delete(&claimed);
    assert_eq!(index.of_session("team", "s1"), None);
}

#[test]
fn different_seeds_begin_at_different_pods() {
    let index = Index::default();
    for name in ["a", "b", "c"] {
        index.apply(&pod(name, "warm", None, true));
    }
    assert_eq!(index.take(&pool(), 1).unwrap().name, "b");
    assert_eq!(index.take(&pool(), 1).unwrap().name, "c");
    assert_eq!(index.take(&pool(), 1).unwrap().name, "a");
    assert_eq!(index.take(&pool(), 1), None);
}
