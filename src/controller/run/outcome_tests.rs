//! What each kind of end looks like, as kubelet 1.34 with containerd reports it.

use codeworkspace_protocol::{Cause, RunRecord};
use serde_json::json;

use super::*;

const BUDGET: SignedDuration = SignedDuration::from_secs(300);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn pod(status: &serde_json::Value) -> Pod {
    serde_json::from_value(
        json!({"metadata": {"name": "run", "creationTimestamp": at(0).to_string()}, "status": status}),
    )
    .unwrap()
}

fn ended(exit_code: i32, reason: &str, message: &str) -> Pod {
    let phase = if exit_code == 0 { "Succeeded" } else { "Failed" };
    pod(&json!({
        "phase": phase,
        "containerStatuses": [{
            "name": BODY, "image": "example", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {
                "exitCode": exit_code, "reason": reason, "message": message,
                "startedAt": at(5).to_string(), "finishedAt": at(9).to_string()
            }}
        }]
    }))
}

fn finished(cause: Cause, exit_code: Option<i32>, signal: Option<i32>) -> RunRecord {
    let mut record = RunRecord::running(at(6)).finished(at(8), cause);
    record.exit_code = exit_code;
    record.signal = signal;
    record.stdout.total_bytes = 3;
    record.stdout.tail = "hi\n".to_owned();
    record
}

fn settled(pod: &Pod) -> Settled {
    match observe(pod, at(20), BUDGET) {
        Observation::Settled(settled) => *settled,
        other => panic!("not settled: {other:?}"),
    }
}

/// The parts that tell ends apart.
fn end(settled: &Settled) -> (Outcome, OutcomeReason, Option<i32>, Option<i32>) {
    (settled.outcome, settled.reason, settled.exit_code, settled.signal)
}

#[test]
fn an_exit_code_is_reported_as_the_body_gave_it_also_above_128() {
    for (code, outcome, reason) in [
        (0, Outcome::Succeeded, OutcomeReason::Completed),
        (3, Outcome::Failed, OutcomeReason::NonZeroExit),
        (137, Outcome::Failed, OutcomeReason::NonZeroExit),
    ] {
        let pod = ended(
            code,
            if code == 0 { "Completed" } else { "Error" },
            &finished(Cause::Exited, Some(code), None).to_message(),
        );
        let settled = settled(&pod);
        assert_eq!(end(&settled), (outcome, reason, Some(code), None));
        assert_eq!(
            (settled.started_at, settled.finished_at),
            (Some(at(6)), Some(at(8)))
        );
        assert_eq!(
            settled.stdout,
            Some(StreamStatus {
                tail: "hi\n".to_owned(),
                total_bytes: 3,
                truncated: false
            })
        );
    }
}

#[test]
fn a_signal_is_no_exit_code() {
    let pod = ended(
        137,
        "Error",
        &finished(Cause::Signalled, None, Some(9)).to_message(),
    );
    assert_eq!(
        end(&settled(&pod)),
        (Outcome::Failed, OutcomeReason::Signal, None, Some(9))
    );
}

#[test]
fn an_out_of_memory_kill_is_told_apart_whatever_the_body_exits_with() {
    for code in [0, 3] {
        let pod = ended(
            code,
            "OOMKilled",
            &finished(Cause::Exited, Some(code), None).to_message(),
        );
        assert_eq!(
            end(&settled(&pod)),
            (Outcome::OOMKilled, OutcomeReason::MemoryLimit, Some(code), None)
        );
    }
    let whole_container = ended(137, "OOMKilled", &RunRecord::running(at(6)).to_message());
    assert_eq!(
        end(&settled(&whole_container)),
        (Outcome::OOMKilled, OutcomeReason::MemoryLimit, None, None)
    );
}

#[test]
fn an_out_of_memory_kill_that_only_the_runner_saw_counts_too() {
    let mut record = finished(Cause::Exited, Some(3), None);
    record.oom_kills = Some(1);
    assert_eq!(
        end(&settled(&ended(3, "Error", &record.to_message()))).0,
        Outcome::OOMKilled
    );
}

#[test]
fn the_time_limit_is_told_by_the_runner_or_by_the_pods_deadline() {
    let by_runner = ended(
        143,
        "Error",
        &finished(Cause::TimedOut, None, Some(15)).to_message(),
    );
    assert_eq!(
        end(&settled(&by_runner)),
        (Outcome::TimedOut, OutcomeReason::TimeLimit, None, Some(15))
    );
    let mut by_deadline = ended(137, "Error", "");
    by_deadline.status.as_mut().unwrap().reason = Some("DeadlineExceeded".to_owned());
    assert_eq!(
        end(&settled(&by_deadline)),
        (Outcome::TimedOut, OutcomeReason::TimeLimit, None, None)
    );
}

#[test]
fn an_evicted_pod_is_evicted_although_its_container_says_137_error() {
    let mut pod = ended(137, "Error", &RunRecord::running(at(6)).to_message());
    let status = pod.status.as_mut().unwrap();
    status.reason = Some("Evicted".to_owned());
    status.message = Some("Usage of EmptyDir volume \"tmp\" exceeds the limit \"64Mi\".".to_owned());
    let settled = settled(&pod);
    assert_eq!(
        end(&settled),
        (Outcome::Evicted, OutcomeReason::Evicted, None, None)
    );
    assert!(settled.message.unwrap().contains("EmptyDir volume \"tmp\""));
}

#[test]
fn a_record_that_contradicts_the_containers_exit_is_not_believed() {
    // The body wrote that it exited with 0 and then had its container killed.
    let pod = ended(137, "Error", &finished(Cause::Exited, Some(0), None).to_message());
    assert_eq!(
        end(&settled(&pod)),
        (Outcome::Failed, OutcomeReason::NoRecord, None, None)
    );
}

#[test]
fn the_record_of_a_runner_that_died_is_not_believed() {
    let pod = ended(2, "Error", &RunRecord::running(at(6)).to_message());
    assert_eq!(
        end(&settled(&pod)),
        (Outcome::Failed, OutcomeReason::NoRecord, Some(2), None)
    );
}

#[test]
fn a_command_that_the_image_lacks_is_a_start_error_with_the_runners_words() {
    let mut record = finished(Cause::SpawnFailed, None, None);
    record.message = Some("`pythn` was not found".to_owned());
    let settled = settled(&ended(127, "Error", &record.to_message()));
    assert_eq!(
        end(&settled),
        (Outcome::StartError, OutcomeReason::CommandNotStarted, None, None)
    );
    assert_eq!(settled.message.as_deref(), Some("`pythn` was not found"));
}

#[test]
fn a_bundle_that_is_not_the_one_of_the_digest_never_runs() {
    let mut record = RunRecord::running(at(1)).finished(at(2), Cause::DigestMismatch);
    record.message = Some("the bundle is sha256:bbbb".to_owned());
    let pod = pod(&json!({
        "phase": "Failed",
        "initContainerStatuses": [{
            "name": PREPARE, "image": "example", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 1, "reason": "Error", "message": record.to_message()}}
        }],
        "containerStatuses": [{
            "name": BODY, "image": "example", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "PodInitializing"}}
        }]
    }));
    let settled = settled(&pod);
    assert_eq!(
        end(&settled),
        (Outcome::StartError, OutcomeReason::DigestMismatch, None, None)
    );
    assert_eq!(settled.message.as_deref(), Some("the bundle is sha256:bbbb"));
}

fn pulling(reason: &str) -> Pod {
    pod(&json!({
        "phase": "Pending",
        "initContainerStatuses": [{
            "name": PREPARE, "image": "example/operator", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}
        }],
        "containerStatuses": [{
            "name": BODY, "image": "example/nope:1", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": reason, "message": "not found"}}
        }]
    }))
}

#[test]
fn a_failing_image_pull_is_final_only_after_the_start_budget() {
    let pod = pulling("ImagePullBackOff");
    assert_eq!(
        observe(&pod, at(299), BUDGET),
        Observation::Starting("ImagePullBackOff for image example/nope:1: not found".to_owned())
    );
    match observe(&pod, at(300), BUDGET) {
        Observation::GaveUp(settled) => {
            assert_eq!(
                end(&settled),
                (Outcome::StartError, OutcomeReason::ImagePullFailed, None, None)
            );
            assert!(
                settled
                    .message
                    .unwrap()
                    .contains("within 300 seconds: ImagePullBackOff for image example/nope:1")
            );
        }
        other => panic!("still patient: {other:?}"),
    }
}

#[test]
fn a_pod_without_a_node_says_what_the_scheduler_said() {
    let pod = pod(&json!({
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient memory."}]
    }));
    match observe(&pod, at(300), BUDGET) {
        Observation::GaveUp(settled) => {
            assert_eq!(
                end(&settled),
                (Outcome::StartError, OutcomeReason::NotScheduled, None, None)
            );
            assert!(settled.message.unwrap().ends_with("1 Insufficient memory."));
        }
        other => panic!("still patient: {other:?}"),
    }
}

#[test]
fn a_running_body_is_running_however_long() {
    let pod = pod(&json!({
        "phase": "Running",
        "containerStatuses": [{
            "name": BODY, "image": "example", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": at(5).to_string()}}
        }]
    }));
    assert_eq!(
        observe(&pod, at(100_000), BUDGET),
        Observation::Running {
            started_at: Some(at(5))
        }
    );
}

#[test]
fn a_run_whose_pod_is_deleted_is_lost_but_a_body_that_stops_its_own_runner_ended_by_itself() {
    let mut pod = ended(
        143,
        "Error",
        &finished(Cause::Terminated, None, Some(15)).to_message(),
    );
    assert_eq!(
        end(&settled(&pod)),
        (Outcome::Failed, OutcomeReason::Signal, None, Some(15))
    );
    pod.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(7)));
    assert_eq!(
        end(&settled(&pod)),
        (Outcome::Lost, OutcomeReason::PodDeleted, None, Some(15))
    );
}

#[test]
fn a_body_that_makes_up_a_record_and_takes_its_runner_along_is_not_believed() {
    for cause in [Cause::TimedOut, Cause::Terminated] {
        let made_up = ended(137, "OOMKilled", &finished(cause, Some(0), None).to_message());
        assert_eq!(
            end(&settled(&made_up)),
            (Outcome::OOMKilled, OutcomeReason::MemoryLimit, None, None)
        );
    }
}

#[test]
fn a_record_cannot_put_its_end_outside_of_the_containers_own_time() {
    let mut made_up = RunRecord::running(at(-1_000_000)).finished(at(9_000_000), Cause::Exited);
    made_up.exit_code = Some(137);
    let settled = settled(&ended(137, "OOMKilled", &made_up.to_message()));
    assert_eq!(
        (settled.started_at, settled.finished_at),
        (Some(at(5)), Some(at(9)))
    );
}

#[test]
fn a_drained_node_is_an_eviction_in_the_words_of_who_drained_it() {
    let records = [
        finished(Cause::Terminated, None, Some(15)).to_message(),
        RunRecord::running(at(6)).to_message(),
    ];
    for record in records {
        let mut pod = ended(143, "Error", &record);
        pod.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(7)));
        pod.status.as_mut().unwrap().conditions = Some(
            serde_json::from_value(json!([{
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting"
            }]))
            .unwrap(),
        );
        let settled = settled(&pod);
        assert_eq!(
            (settled.outcome, settled.reason),
            (Outcome::Evicted, OutcomeReason::Evicted)
        );
        assert_eq!(
            settled.message.as_deref(),
            Some("EvictionByEvictionAPI: Eviction API: evicting")
        );
    }
}

#[test]
fn a_container_that_its_node_lost_sight_of_is_lost_and_not_unstarted() {
    let pod = ended(
        137,
        "ContainerStatusUnknown",
        "The container could not be located when the pod was terminated",
    );
    assert_eq!(
        end(&settled(&pod)),
        (Outcome::Lost, OutcomeReason::NoRecord, None, None)
    );
}

#[test]
fn a_pod_that_its_node_refuses_is_a_start_error_at_once() {
    for reason in ["OutOfmemory", "TopologyAffinityError"] {
        let pod = pod(&json!({"phase": "Failed", "reason": reason, "message": "no room"}));
        let settled = settled(&pod);
        assert_eq!(
            end(&settled),
            (Outcome::StartError, OutcomeReason::NotScheduled, None, None)
        );
        assert!(settled.message.unwrap().ends_with(&format!("{reason}: no room")));
    }
}
