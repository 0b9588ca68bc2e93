//! Runs that people make by hand.

use codeworkspace_api::{CodeRun, CodeRunSpec, WorkspaceReference};
use serde_json::json;

use crate::support::{End, end, inline, story};

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_run_made_by_hand_takes_its_own_arguments_and_time_limit() {
    story(async |story| {
        let body = "import sys, time\nprint(sys.argv[1:])\ntime.sleep(float(sys.argv[1]))\n";
        let spec = json!({
            "code": {"sources": [inline("body.py", body)]},
            "run": "body.py",
            "runPolicy": "OnDemand",
        });
        let workspace = story.looked_at(&story.apply("tool", &spec).await?).await?;
        assert_eq!(workspace.status.clone().unwrap().last_run, None);
        story.nothing_started().await?;

        story
            .create_run("with-arguments", "tool", &["0", "a b", "$HOME", "$(HOME)"])
            .await?;
        let ended = story.ended("with-arguments").await?;
        assert_eq!(end(&ended), End::SUCCEEDED, "{:?}", ended.status);
        let status = ended.status.unwrap();
        assert_eq!(status.stdout.unwrap().tail, "['0', 'a b', '$HOME', '$(HOME)']\n");
        let bundle = workspace.status.unwrap().bundle.unwrap();
        assert_eq!(status.bundle_digest, Some(bundle.digest));

        let impatient = CodeRunSpec {
            workspace_ref: WorkspaceReference {
                name: "tool".to_owned(),
            },
            args: vec!["3600".to_owned()],
            timeout_seconds: Some(2),
            ttl_seconds_after_finished: Some(3600),
            digest: None,
        };
        story.create(&CodeRun::new("impatient", impatient)).await?;
        let ended = story.ended("impatient").await?;
        assert_eq!(
            (end(&ended).outcome, end(&ended).reason),
            ("TimedOut", "TimeLimit"),
            "{:?}",
            ended.status
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_run_waits_for_its_workspace_and_starts_when_it_is_ready() {
    story(async |story| {
        story.create_run("early", "tool", &[]).await?;
        let waits = story
            .until("early", "waits", |run: &CodeRun| {
                run.status.as_ref().is_some_and(|status| status.reason.is_some())
            })
            .await?;
        assert_eq!(
            (end(&waits).outcome, end(&waits).reason),
            ("none", "WorkspaceNotFound")
        );

        let spec = json!({
            "code": {"sources": [inline("body.sh", "echo at last\n")]},
            "run": "body.sh",
            "runPolicy": "OnDemand",
        });
        story.apply("tool", &spec).await?;
        let ended = story.ended("early").await?;
        assert_eq!(end(&ended), End::SUCCEEDED, "{:?}", ended.status);
        assert_eq!(ended.status.unwrap().stdout.unwrap().tail, "at last\n");
        Ok(())
    })
    .await;
}
