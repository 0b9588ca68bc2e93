use serde_json::{Value, json};

use super::*;

fn pod(metadata: Value, status: Value) -> Pod {
    let mut pod = json!({});
    pod["metadata"] = metadata;
    pod["status"] = status;
    serde_json::from_value(pod).unwrap()
}

fn reason(metadata: Value, status: Value) -> Option<SessionReason> {
    ending(&pod(metadata, status)).map(|ending| ending.reason)
}

fn container(exit_code: i32, reason: &str, message: &str) -> Value {
    json!([{
        "name": "session", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": exit_code, "reason": reason, "message": message}}
    }])
}

fn record(cause: Cause) -> String {
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut record = RunRecord::running(at).finished(at, cause);
    if matches!(cause, Cause::IdleTimeout | Cause::Stopped) {
        record.exit_code = Some(0);
    }
    record.message = Some("the runner says so".to_owned());
    record.to_message()
}

#[test]
fn a_session_whose_pod_runs_has_not_ended() {
    let running = json!([{
        "name": "session", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}
    }]);
    assert_eq!(
        ending(&pod(
            json!({}),
            json!({"phase": "Running", "containerStatuses": running})
        )),
        None
    );
    assert_eq!(ending(&pod(json!({}), json!({}))), None);
}

#[test]
fn what_the_node_says_of_the_pod_comes_first() {
    for (said, expected) in [
        ("DeadlineExceeded", SessionReason::SessionTimeout),
        ("Evicted", SessionReason::Evicted),
        ("NodeShutdown", SessionReason::Evicted),
        ("Preempting", SessionReason::Evicted),
        ("NodeLost", SessionReason::NodeLost),
        ("UnexpectedAdmissionError", SessionReason::RunnerFailed),
    ] {
        let status = json!({
            "phase": "Failed", "reason": said,
            "containerStatuses": container(137, "OOMKilled", &record(Cause::IdleTimeout))
        });
        assert_eq!(reason(json!({}), status), Some(expected), "{said}");
    }
}

#[test]
fn the_runners_record_tells_the_rest() {
    for (exit_code, why, message, expected) in [
        (
            0,
            "Completed",
            record(Cause::IdleTimeout),
            SessionReason::IdleTimeout,
        ),
        (0, "Completed", record(Cause::Stopped), SessionReason::Stopped),
        // One kernel was killed for memory, and the session went on.
        (
            0,
            "OOMKilled",
            record(Cause::IdleTimeout),
            SessionReason::IdleTimeout,
        ),
        (137, "OOMKilled", String::new(), SessionReason::OutOfMemory),
        // Whoever kills the runner cannot make it say that it ended in order.
        (
            137,
            "Error",
            record(Cause::IdleTimeout),
            SessionReason::RunnerFailed,
        ),
        (
            1,
            "Error",
            record(Cause::RunnerFailed),
            SessionReason::RunnerFailed,
        ),
        (0, "Completed", "nonsense".to_owned(), SessionReason::RunnerFailed),
    ] {
        let status = json!({"phase": "Failed", "containerStatuses": container(exit_code, why, &message)});
        assert_eq!(
            reason(json!({}), status),
            Some(expected),
            "{exit_code} {why} {message}"
        );
    }
    let status =
        json!({"phase": "Failed", "containerStatuses": container(1, "Error", &record(Cause::RunnerFailed))});
    assert_eq!(
        ending(&pod(json!({}), status)).unwrap().message,
        "the runner says so"
    );
    assert_eq!(
        reason(json!({}), json!({"phase": "Succeeded"})),
        Some(SessionReason::RunnerFailed)
    );
}

#[test]
fn a_pod_that_somebody_wants_gone_says_who() {
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    assert_eq!(
        reason(deleted.clone(), json!({"phase": "Running"})),
        Some(SessionReason::PodDeleted)
    );
    // Asked to end, the runner ends in order.
    let ended = json!({"phase": "Succeeded", "containerStatuses": container(0, "Completed", &record(Cause::Stopped))});
    assert_eq!(reason(deleted.clone(), ended), Some(SessionReason::PodDeleted));
    for (said, expected) in [
        ("EvictionByEvictionAPI", SessionReason::Evicted),
        ("PreemptionByScheduler", SessionReason::Evicted),
        ("TerminationByKubelet", SessionReason::Evicted),
        ("DeletionByTaintManager", SessionReason::NodeLost),
        ("DeletionByPodGC", SessionReason::NodeLost),
    ] {
        let status = json!({
            "phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": said}]
        });
        assert_eq!(reason(deleted.clone(), status), Some(expected), "{said}");
    }
}
