use codeworkspace_api::{
    CodeRunSpec, CodeRunStatus, CodeWorkspace, CodeWorkspaceSpec, CodeWorkspaceStatus, LastRunStatus,
    Outcome, WorkspaceReference,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::*;

fn run(key: Option<&str>, ttl: Option<i64>) -> CodeRun {
    let mut run = CodeRun::new(
        "run",
        CodeRunSpec {
            workspace_ref: WorkspaceReference {
                name: "tool".to_owned(),
            },
            args: Vec::new(),
            timeout_seconds: None,
            ttl_seconds_after_finished: ttl,
            digest: None,
        },
    );
    run.metadata.annotations = key.map(|key| [(labels::RUN_KEY.to_owned(), key.to_owned())].into());
    run.status = Some(CodeRunStatus {
        outcome: Some(Outcome::Succeeded),
        finished_at: Some(Time(Timestamp::UNIX_EPOCH)),
        ..CodeRunStatus::default()
    });
    run
}

fn world(last_key: Option<&str>) -> World {
    let spec: CodeWorkspaceSpec = serde_json::from_value(json!({"code": {"sources": []}})).unwrap();
    let mut workspace = CodeWorkspace::new("tool", spec);
    workspace.status = Some(CodeWorkspaceStatus {
        last_run: last_key.map(|key| LastRunStatus {
            key: key.to_owned(),
            name: "x".to_owned(),
            outcome: None,
            exit_code: None,
        }),
        ..CodeWorkspaceStatus::default()
    });
    World {
        pod: None,
        workspace: Some(workspace),
        current: None,
    }
}

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn after(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

#[test]
fn the_run_of_the_current_key_stays_for_ever() {
    assert_eq!(
        lifetime(
            &run(Some("1:a"), Some(0)),
            &world(Some("1:a")),
            HOUR,
            after(1_000_000)
        ),
        Lifetime::Stays
    );
    // Before the status names any key, the run may be the one that it is about to name.
    assert_eq!(
        lifetime(&run(Some("1:a"), Some(0)), &world(None), HOUR, after(1_000_000)),
        Lifetime::Stays
    );
}

#[test]
fn a_run_of_a_former_key_or_made_by_hand_goes_after_its_time() {
    let former = run(Some("1:a"), None);
    assert_eq!(
        lifetime(&former, &world(Some("1:b")), HOUR, after(600)),
        Lifetime::Until(SignedDuration::from_mins(50))
    );
    assert_eq!(
        lifetime(&former, &world(Some("1:b")), HOUR, after(3600)),
        Lifetime::Over
    );
    assert_eq!(
        lifetime(&run(None, Some(1)), &world(Some("1:a")), HOUR, after(1)),
        Lifetime::Over
    );
    assert_eq!(
        lifetime(&run(None, Some(0)), &world(Some("1:a")), HOUR, after(0)),
        Lifetime::Over
    );
}
