use std::sync::Arc;

use codeworkspace_api::SessionState;
use serde_json::{Value, json};

use super::*;

type Change = fn(&mut Value);

const LIMITS: Limits = Limits {
    start_budget: SignedDuration::from_mins(5),
    record: SignedDuration::from_hours(24),
};

fn at(minute: &str) -> Timestamp {
    format!("2026-01-01T{minute}Z").parse().unwrap()
}

fn session(spec: Value, status: Value) -> CodeSession {
    let Value::Object(spec) = spec else {
        panic!("a spec is an object");
    };
    let mut session = json!({
        "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeSession",
        "metadata": {"name": "one", "namespace": "team-a", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"interpreterRef": {"name": "tool"}, "timeoutSeconds": 900, "parametersDigest": "x"}
    });
    session["spec"].as_object_mut().unwrap().extend(spec);
    session["status"] = status;
    serde_json::from_value(session).unwrap()
}

fn pod(change: impl FnOnce(&mut Value)) -> Pod {
    let mut pod = json!({
        "metadata": {
            "name": "pod", "namespace": "team-a", "uid": "uid-1",
            "labels": {"codeworkspace.dev/state": "claimed", "codeworkspace.dev/session": "one"}
        },
        "spec": {"containers": [], "activeDeadlineSeconds": 1000},
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    });
    change(&mut pod);
    serde_json::from_value(pod).unwrap()
}

fn world(pod: Option<Pod>) -> World {
    World {
        pod: pod.map(Arc::new),
        claimed: Vec::new(),
        asked: None,
        unavailable: None,
        pool_error: None,
    }
}

fn ended(step: &Step) -> Option<SessionReason> {
    match step {
        Step::End(ending) => Some(ending.reason),
        _ => None,
    }
}

fn live() -> Step {
    Step::Live {
        pod_uid: "uid-1".to_owned(),
        expires_at: Some(at("00:16:40")),
    }
}

#[test]
fn a_session_is_ready_once_a_pod_is_claimed_for_it_and_no_other() {
    let session = session(json!({"podName": "pod"}), json!({}));
    let decided = |pod| decide(&session, &world(Some(pod)), LIMITS, at("00:01:00"));
    assert_eq!(decided(pod(|_| {})), live());
    let others: [Change; 2] = [
        |pod| pod["metadata"]["labels"]["codeworkspace.dev/session"] = json!("two"),
        |pod| pod["metadata"]["labels"]["codeworkspace.dev/state"] = json!("warm"),
    ];
    for change in others {
        assert!(matches!(decided(pod(change)), Step::Wait { told: Some(_), .. }));
    }
}

#[test]
fn a_claim_that_takes_a_moment_is_not_told() {
    let claiming = session(json!({"podName": "pod"}), json!({}));
    assert_eq!(
        decide(&claiming, &world(None), LIMITS, at("00:00:01")),
        Step::Wait {
            told: None,
            until: at("00:00:05")
        }
    );
    let cold = session(json!({}), json!({}));
    assert_eq!(
        decide(&cold, &world(None), LIMITS, at("00:00:01")),
        Step::Wait {
            told: Some("no pod is free: one is started".to_owned()),
            until: at("00:05:00")
        }
    );
}

#[test]
fn a_session_that_gets_no_pod_in_time_says_why() {
    let world = World {
        pool_error: Some("no image".to_owned()),
        ..world(None)
    };
    assert_eq!(
        decide(&session(json!({}), json!({})), &world, LIMITS, at("00:05:00")),
        Step::End(Ending::new(
            SessionReason::StartFailed,
            "the session had no pod within 300 seconds: no image"
        ))
    );
}

#[test]
fn without_its_interpreter_a_session_that_waits_ends_and_one_that_lives_goes_on() {
    let gone = |pod| World {
        unavailable: Some("CodeInterpreter tool does not exist".to_owned()),
        ..world(pod)
    };
    let waiting = session(json!({}), json!({}));
    // The watch of interpreters may lag behind that of sessions.
    assert!(matches!(
        decide(&waiting, &gone(None), LIMITS, at("00:00:01")),
        Step::Wait { told: None, .. }
    ));
    let step = decide(&waiting, &gone(None), LIMITS, at("00:00:10"));
    assert_eq!(ended(&step), Some(SessionReason::InterpreterUnavailable));
    let session = session(json!({"podName": "pod"}), json!({}));
    assert_eq!(
        decide(&session, &gone(Some(pod(|_| {}))), LIMITS, at("00:01:00")),
        live()
    );
}

#[test]
fn stopping_ends_a_session_wherever_it_stands_but_does_not_rewrite_how_it_ended() {
    let stopped = session(json!({"podName": "pod", "stop": true}), json!({}));
    let of = |pod| ended(&decide(&stopped, &world(pod), LIMITS, at("00:01:00")));
    assert_eq!(of(None), Some(SessionReason::Stopped));
    assert_eq!(of(Some(pod(|_| {}))), Some(SessionReason::Stopped));
    let going = pod(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:59Z"));
    assert_eq!(of(Some(going)), Some(SessionReason::Stopped));
    let over = pod(|pod| pod["status"] = json!({"phase": "Failed", "reason": "DeadlineExceeded"}));
    assert_eq!(of(Some(over)), Some(SessionReason::SessionTimeout));
}

#[test]
fn a_pod_that_vanished_is_asked_for_before_its_session_is_over() {
    let had = session(
        json!({"podName": "pod"}),
        json!({"state": "Ready", "podUid": "uid-1"}),
    );
    let of = |asked| {
        let world = World { asked, ..world(None) };
        decide(&had, &world, LIMITS, at("00:01:00"))
    };
    assert_eq!(of(None), Step::Ask);
    assert!(matches!(of(Some(true)), Step::Wait { told: None, .. }));
    assert_eq!(ended(&of(Some(false))), Some(SessionReason::PodDeleted));
    // A namesake of the pod is another pod.
    let namesake = pod(|pod| pod["metadata"]["uid"] = json!("uid-2"));
    assert_eq!(
        decide(&had, &world(Some(namesake)), LIMITS, at("00:01:00")),
        Step::Ask
    );
}

#[test]
fn a_node_that_does_not_end_a_session_is_not_waited_for_for_ever() {
    let session = session(json!({"podName": "pod"}), json!({}));
    let of = |now| ended(&decide(&session, &world(Some(pod(|_| {}))), LIMITS, at(now)));
    assert_eq!(of("00:17:00"), None);
    assert_eq!(of("00:17:40"), Some(SessionReason::SessionTimeout));
}

#[test]
fn the_record_of_a_session_stays_for_a_day() {
    let over = session(
        json!({"podName": "pod"}),
        json!({"state": "Terminated", "endedAt": "2026-01-01T00:00:00Z"}),
    );
    assert_eq!(
        over.status.as_ref().unwrap().state,
        Some(SessionState::Terminated)
    );
    assert_eq!(
        decide(&over, &world(None), LIMITS, at("23:59:59")),
        Step::Keep("2026-01-02T00:00:00Z".parse().unwrap())
    );
    let next_day = "2026-01-02T00:00:00Z".parse().unwrap();
    assert_eq!(decide(&over, &world(None), LIMITS, next_day), Step::Forget);
}
