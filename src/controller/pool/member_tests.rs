use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T00:10:00Z";

fn standing_of(change: impl FnOnce(&mut Value), reserved: bool) -> Standing {
    let mut pod = json!({
        "metadata": {
            "name": "codeworkspace-session-1", "uid": "1", "creationTimestamp": "2026-01-01T00:08:00Z",
            "labels": {"codeworkspace.dev/state": "warm", "codeworkspace.dev/pool": "hash"},
            "annotations": {"codeworkspace.dev/key-digest": "sha256:00"}
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    });
    change(&mut pod);
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let member = Member::of(&pod, reserved, NOW.parse().unwrap(), SignedDuration::from_mins(5));
    assert_eq!((member.hash.as_str(), member.uid.as_str()), ("hash", "1"));
    member.standing
}

#[test]
fn a_pod_is_ready_once_its_kernels_are_and_its_key_is_known() {
    assert_eq!(standing_of(|_| {}, false), Standing::Ready);
    assert_eq!(
        standing_of(|pod| pod["metadata"]["annotations"] = json!({}), false),
        Standing::Starting
    );
    assert_eq!(
        standing_of(
            |pod| pod["status"]["conditions"][0]["status"] = json!("False"),
            false
        ),
        Standing::Starting
    );
    assert_eq!(
        standing_of(
            |pod| {
                pod.as_object_mut().unwrap().remove("status");
            },
            false
        ),
        Standing::Starting
    );
}

#[test]
fn a_pod_that_a_session_has_or_wants_is_not_warm() {
    assert_eq!(standing_of(|_| {}, true), Standing::Reserved);
    let claimed = |pod: &mut Value| pod["metadata"]["labels"]["codeworkspace.dev/state"] = json!("claimed");
    assert_eq!(standing_of(claimed, false), Standing::Claimed);
    assert_eq!(
        standing_of(
            |pod| {
                claimed(pod);
                pod["status"]["phase"] = json!("Failed");
            },
            false
        ),
        Standing::Ended
    );
    // Whoever takes the label away does not make a pod that others may have.
    assert_eq!(
        standing_of(
            |pod| pod["metadata"]["labels"] = json!({"codeworkspace.dev/pool": "hash"}),
            false
        ),
        Standing::Claimed
    );
    assert_eq!(
        standing_of(
            |pod| {
                claimed(pod);
                pod["metadata"]["deletionTimestamp"] = json!(NOW);
            },
            true
        ),
        Standing::Going
    );
}

#[test]
fn a_pod_that_fails_before_anybody_had_it_says_why() {
    let failed = |status: Value| {
        let Standing::Failed(why) = standing_of(|pod| pod["status"] = status, true) else {
            panic!("it has not failed");
        };
        why
    };
    assert_eq!(
        failed(json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."})),
        "Evicted: The node was low on memory."
    );
    let terminated = |message: &str| {
        json!({
            "phase": "Failed",
            "initContainerStatuses": [{
                "name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": {"exitCode": 1, "reason": "Error", "message": message}}
            }]
        })
    };
    let record = RunRecord::running("2026-01-01T00:08:01Z".parse().unwrap());
    let mut record = record.finished(
        "2026-01-01T00:08:02Z".parse().unwrap(),
        codeworkspace_protocol::Cause::RegistrationFailed,
    );
    record.message = Some("the operator refused the key".to_owned());
    assert_eq!(
        failed(terminated(&record.to_message())),
        "container prepare ended with exit code 1 (Error): the operator refused the key"
    );
    assert_eq!(
        failed(terminated("no record")),
        "container prepare ended with exit code 1 (Error): no record"
    );
    assert_eq!(failed(json!({"phase": "Succeeded"})), "it ended");
}

#[test]
fn a_pod_that_takes_too_long_has_failed_for_what_it_waits_for() {
    let standing = standing_of(
        |pod| {
            pod["metadata"]["creationTimestamp"] = json!("2026-01-01T00:05:00Z");
            pod["status"] = json!({"phase": "Pending", "containerStatuses": [{
                "name": "session", "image": "example/gone:1", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
            }]});
        },
        false,
    );
    assert_eq!(
        standing,
        Standing::Failed(
            "it did not start within 300 seconds: ImagePullBackOff for image example/gone:1: not found"
                .to_owned()
        )
    );
}
