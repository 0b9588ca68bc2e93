//! What happens to runs when the operator goes, comes back or is replaced. These stories are told alone.

use codeworkspace_api::{CodeRun, CodeRunSpec, CodeWorkspace, WorkspaceReference};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use crate::support::{End, Operator, Story, alone, end, inline};

/// A workspace whose body says how often it was started, which nothing but a second run could change.
fn spec(body: &str, description: &str) -> serde_json::Value {
    json!({
        "code": {"sources": [inline("body.py", body)]},
        "run": "body.py",
        "description": description,
    })
}

/// What must not change while the operator does.
fn identity(pod: &Pod) -> (Option<String>, Vec<i32>) {
    let containers = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    let restarts = containers
        .into_iter()
        .flatten()
        .map(|container| container.restart_count);
    (pod.uid(), restarts.collect())
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_run_ends_and_is_recorded_although_the_operator_was_away() {
    alone(async |story| {
        let body = "import time\nprint('began', flush=True)\ntime.sleep(15)\nprint('ended')\n";
        let workspace = story
            .looked_at(&story.apply("tool", &spec(body, "")).await?)
            .await?;
        let name = workspace.status.clone().unwrap().last_run.unwrap().name;
        let running = story.body_runs(&name).await?;

        let operator = Operator::new(&story.client);
        operator.stop().await?;
        let ended = story
            .until(&name, "ended", |pod: &Pod| {
                pod.status
                    .as_ref()
                    .is_some_and(|status| status.phase.as_deref() == Some("Succeeded"))
            })
            .await?;
        assert_eq!(identity(&ended), identity(&running));
        operator.start().await?;

        let (_, run) = story.ran(&workspace).await?;
        assert_eq!(run.name_any(), name);
        assert_eq!(end(&run), End::SUCCEEDED, "{:?}", run.status);
        let status = run.status.unwrap();
        assert_eq!(status.stdout.unwrap().tail, "began\nended\n");
        assert_eq!(status.pod_uid, running.uid());
        assert_eq!(story.list::<CodeRun>().await?.len(), 1);
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn an_upgrade_of_the_operator_restarts_no_runner() {
    alone(async |story| {
        let body = "import time\nprint('began', flush=True)\ntime.sleep(3600)\n";
        let workspace = story
            .looked_at(&story.apply("tool", &spec(body, "")).await?)
            .await?;
        let name = workspace.status.clone().unwrap().last_run.unwrap().name;
        let before = story.body_runs(&name).await?;

        Operator::new(&story.client).upgrade(&[]).await?;
        reconciled_again(story, body).await?;

        let after: Pod = story.api().get(&name).await?;
        assert_eq!(identity(&after), identity(&before));
        assert_eq!(after.status.unwrap().phase.as_deref(), Some("Running"));
        let pods: Vec<_> = story
            .list::<Pod>()
            .await?
            .iter()
            .map(kube::ResourceExt::name_any)
            .collect();
        assert_eq!(pods, [name]);
        Ok(())
    })
    .await;
}

/// A change that makes no new bundle, and that the operator has looked at: whatever it would start is started by then.
async fn reconciled_again(story: &Story, body: &str) -> anyhow::Result<CodeWorkspace> {
    let mark = story
        .api::<CodeWorkspace>()
        .get("tool")
        .await?
        .resource_version()
        .unwrap_or_default();
    story
        .looked_at(&story.apply("tool", &spec(body, &mark)).await?)
        .await
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn the_current_key_runs_once_whatever_is_deleted() {
    alone(async |story| {
        let body = "print('once')\n";
        let (workspace, run) = story.ran(&story.apply("tool", &spec(body, "")).await?).await?;
        let last_run = workspace.status.unwrap().last_run;

        // The time to live of finished runs is shorter than the life of a run that is made by hand and waits for its own end. The current
        // one stays nevertheless.
        let by_hand = CodeRunSpec {
            workspace_ref: WorkspaceReference {
                name: "tool".to_owned(),
            },
            args: Vec::new(),
            timeout_seconds: None,
            ttl_seconds_after_finished: Some(4),
            digest: None,
        };
        story.create(&CodeRun::new("by-hand", by_hand)).await?;
        story.ended("by-hand").await?;
        story.until_gone::<CodeRun>("by-hand").await?;
        story.until_gone::<Pod>("by-hand").await?;
        let kept = story.api::<CodeRun>().get(&run.name_any()).await?;
        assert_eq!(kept.uid(), run.uid());

        Operator::new(&story.client).restart().await?;
        let after_restart = reconciled_again(story, body).await?;
        assert_eq!(after_restart.status.unwrap().last_run, last_run);
        let runs: Vec<_> = story
            .list::<CodeRun>()
            .await?
            .iter()
            .map(kube::ResourceExt::uid)
            .collect();
        assert_eq!(runs, [run.uid()]);

        story
            .api::<CodeRun>()
            .delete(&run.name_any(), &DeleteParams::background())
            .await?;
        story.until_gone::<CodeRun>(&run.name_any()).await?;
        story.until_gone::<Pod>(&run.name_any()).await?;
        let after_deletion = reconciled_again(story, body).await?;
        assert_eq!(after_deletion.status.unwrap().last_run, last_run);
        Operator::new(&story.client).restart().await?;
        let after_both = reconciled_again(story, body).await?;
        assert_eq!(after_both.status.unwrap().last_run, last_run);
        story.nothing_started().await?;
        Ok(())
    })
    .await;
}
