use codeworkspace_api::{CodeRunSpec, WorkspaceReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::*;

const PATIENCE: SignedDuration = SignedDuration::from_secs(300);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A run made at second 100; with a key, by the operator.
fn run(key: Option<&str>, digest: Option<&str>) -> CodeRun {
    let spec = CodeRunSpec {
        workspace_ref: WorkspaceReference {
            name: "tool".to_owned(),
        },
        args: Vec::new(),
        timeout_seconds: None,
        ttl_seconds_after_finished: None,
        digest: digest.map(str::to_owned),
    };
    let mut run = CodeRun::new("tool-1", spec);
    run.metadata.creation_timestamp = Some(Time(at(100)));
    run.metadata.annotations = key.map(|key| [(labels::RUN_KEY.to_owned(), key.to_owned())].into());
    run
}

/// A workspace that is ready and whose current key is `1:a`, with `change` merged over its status.
fn world(change: &serde_json::Value) -> World {
    let mut status = json!({
        "observedGeneration": 2,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": at(0).to_string()
        }],
        "bundle": {"digest": "sha256:a", "files": 1, "sizeBytes": 1, "compressedBytes": 1, "delivery": "ConfigMap"},
        "run": {"form": "file", "argv": ["python", "/workspace/main.py"]},
        "runner": {
            "engine": "subprocess", "template": "python",
            "needs": {"language": "python", "native": [], "npm": [], "pip": []},
            "limits": {"memory_mb": 256, "timeout_ms": 1000}
        },
        "lastRun": {"key": "1:a", "name": "tool-1"}
    });
    for (key, value) in change.as_object().into_iter().flatten() {
        status[key] = value.clone();
    }
    let workspace = json!({
        "metadata": {"name": "tool", "generation": 2},
        "spec": {"code": {"sources": []}},
        "status": status
    });
    World {
        pod: None,
        workspace: Some(serde_json::from_value(workspace).unwrap()),
        current: None,
    }
}

fn decide<'a>(run: &CodeRun, world: &'a World, looked_at_again: bool, now: i64) -> Readiness<'a> {
    readiness(run, world, looked_at_again, at(now), PATIENCE)
}

fn waits(readiness: &Readiness) -> (OutcomeReason, String) {
    match readiness {
        Readiness::Waiting(reason, message) => (*reason, message.clone()),
        other => panic!("does not wait: {other:?}"),
    }
}

fn never(readiness: &Readiness) -> (Outcome, OutcomeReason) {
    match readiness {
        Readiness::Never(settled) => (settled.outcome, settled.reason),
        other => panic!("may still start: {other:?}"),
    }
}

#[test]
fn the_run_of_the_current_key_starts_with_what_the_status_says() {
    let key = current_key();
    let world = world(&json!({"lastRun": {"key": key, "name": "tool-1"}}));
    let start = match decide(&run(Some(&key), Some("sha256:a")), &world, false, 101) {
        Readiness::Ready(start) => start,
        other => panic!("not ready: {other:?}"),
    };
    assert_eq!(
        (start.bundle.digest.as_str(), start.argv, start.template),
        (
            "sha256:a",
            &["python".to_owned(), "/workspace/main.py".to_owned()][..],
            "python"
        )
    );
}

#[test]
fn a_run_waits_for_its_workspace_to_exist_to_be_looked_at_and_to_be_ready() {
    let run = run(None, None);
    let missing = World {
        pod: None,
        workspace: None,
        current: None,
    };
    assert_eq!(
        waits(&decide(&run, &missing, false, 101)).0,
        OutcomeReason::WorkspaceNotFound
    );
    let unseen = world(&json!({"observedGeneration": 1}));
    assert!(
        waits(&decide(&run, &unseen, true, 101))
            .1
            .contains("not been looked at")
    );
    let failed = world(&json!({"conditions": [{
        "type": "Ready", "status": "False", "reason": "SourceResolutionError", "message": "1 of 2 sources failed",
        "lastTransitionTime": at(0).to_string()
    }]}));
    assert_eq!(
        waits(&decide(&run, &failed, true, 101)),
        (
            OutcomeReason::WorkspaceNotReady,
            "CodeWorkspace tool: SourceResolutionError: 1 of 2 sources failed".to_owned()
        )
    );
}

#[test]
fn a_run_made_by_hand_waits_until_the_sources_were_looked_at_after_it_was_made() {
    let (run, world) = (run(None, None), world(&json!({})));
    assert!(
        waits(&decide(&run, &world, false, 101))
            .1
            .contains("looked at again")
    );
    assert!(matches!(decide(&run, &world, true, 101), Readiness::Ready(_)));
}

#[test]
fn a_pinned_digest_that_is_not_the_bundle_any_more_never_runs() {
    let world = world(&json!({}));
    let end = never(&decide(&run(None, Some("sha256:b")), &world, true, 101));
    assert_eq!(end, (Outcome::StartError, OutcomeReason::BundleNotAvailable));
}

#[test]
fn a_shared_bundle_has_nothing_to_run() {
    let world = world(&json!({"run": null, "runner": null}));
    assert_eq!(
        never(&decide(&run(None, None), &world, true, 101)),
        (Outcome::StartError, OutcomeReason::NothingToRun)
    );
}

#[test]
fn a_run_whose_key_was_replaced_before_it_started_is_cancelled() {
    let mut world = world(&json!({"lastRun": {"key": "1:b", "name": "tool-2"}}));
    let mut later = run(Some("1:b"), None);
    later.metadata.name = Some("tool-2".to_owned());
    later.metadata.creation_timestamp = Some(Time(at(150)));
    world.current = Some(later);
    assert_eq!(
        never(&decide(&run(Some("1:a"), None), &world, false, 160)),
        (Outcome::Cancelled, OutcomeReason::Superseded)
    );
}

#[test]
fn a_run_that_the_status_does_not_name_yet_waits_but_not_for_ever() {
    let mut world = world(&json!({"lastRun": {"key": "1:z", "name": "tool-0"}}));
    let mut earlier = run(Some("1:z"), None);
    earlier.metadata.creation_timestamp = Some(Time(at(50)));
    world.current = Some(earlier);
    let fresh = run(Some("1:a"), None);
    assert!(
        waits(&decide(&fresh, &world, false, 101))
            .1
            .contains("not yet its workspace's current one")
    );
    assert_eq!(
        never(&decide(&fresh, &world, false, 401)),
        (Outcome::Cancelled, OutcomeReason::Superseded)
    );
}

#[test]
fn a_run_whose_own_arguments_make_the_command_too_long_never_starts() {
    let world = world(&json!({}));
    let mut run = run(None, None);
    run.spec.args = vec!["x".repeat(8192); 16];
    assert_eq!(
        never(&decide(&run, &world, true, 101)),
        (Outcome::StartError, OutcomeReason::CommandNotStarted)
    );
    run.spec.args.pop();
    assert!(matches!(decide(&run, &world, true, 101), Readiness::Ready(_)));
}

/// The key of what the status in [`world`] says.
fn current_key() -> String {
    let world = world(&json!({}));
    let status = world.workspace.unwrap().status.unwrap();
    RunKey::of_status(&status).unwrap().hash()
}

#[test]
fn a_run_never_starts_with_anything_else_than_what_its_key_stands_for() {
    // The command was changed together with `runPolicy: OnDemand`, so that no other run took over the key.
    let world = world(&json!({
        "lastRun": {"key": current_key(), "name": "tool-1"},
        "run": {"form": "file", "argv": ["python", "/workspace/other.py"]}
    }));
    assert_eq!(
        never(&decide(&run(Some(&current_key()), None), &world, false, 101)),
        (Outcome::Cancelled, OutcomeReason::Superseded)
    );
}
