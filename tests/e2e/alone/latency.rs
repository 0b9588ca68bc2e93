//! How soon a change is noticed. These stories are told alone: what they measure is the operator, and not how busy the machine is.

use std::time::Duration;

use codeworkspace_api::{CodeRun, CodeWorkspace};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use serde_json::json;

use crate::support::{Story, alone, inline};

fn digest(workspace: &CodeWorkspace) -> Option<String> {
    Some(workspace.status.as_ref()?.bundle.as_ref()?.digest.clone())
}

/// Waits that long for a new bundle of the workspace, which nobody touches.
async fn new_bundle(story: &Story, former: &CodeWorkspace, time: Duration) -> anyhow::Result<CodeWorkspace> {
    let another = |workspace: &CodeWorkspace| digest(workspace) != digest(former);
    story
        .within(time, &former.name_any(), "has a new bundle", another)
        .await
}

async fn names_of_runs(story: &Story) -> anyhow::Result<Vec<String>> {
    Ok(story
        .list::<CodeRun>()
        .await?
        .iter()
        .map(kube::ResourceExt::name_any)
        .collect())
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_change_three_references_deep_is_at_the_top_within_two_seconds_with_one_new_run() {
    alone(async |story| {
        // The runs outlast the story, so that each of them can be counted.
        let low = |number: i32| {
            let body = format!("print({number}, flush=True)\nimport time\ntime.sleep(600)\n");
            json!({"code": {"sources": [inline("main.py", &body)]}})
        };
        let refers = |to: &str| json!({"code": {"sources": [{"ref": to}]}});
        story.apply("low", &low(1)).await?;
        story.apply("middle", &refers("./low")).await?;
        story.apply("high", &refers("./middle")).await?;
        let top = json!({"code": "./high", "run": "main.py"});
        let before = story.until::<CodeWorkspace>("tool", "has a run", |workspace| {
            workspace
                .status
                .as_ref()
                .is_some_and(|status| status.last_run.is_some())
        });
        let (_, before) = tokio::try_join!(story.apply("tool", &top), before)?;
        let former = names_of_runs(story).await?;
        assert_eq!(former.len(), 1);
        story.body_runs(&former[0]).await?;

        story.apply("low", &low(2)).await?;
        let after = new_bundle(story, &before, Duration::from_secs(2)).await?;
        let last = after.status.clone().unwrap().last_run.unwrap().name;
        story.body_runs(&last).await?;
        let runs = names_of_runs(story).await?;
        let new: Vec<_> = runs.iter().filter(|name| !former.contains(name)).collect();
        assert_eq!(new, [&last]);
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_changed_config_map_is_a_new_bundle_within_five_seconds() {
    alone(async |story| {
        let files = |text: &str| json!({"data": {"main.py": format!("print('{text}')\n")}});
        story.apply_object::<ConfigMap>("files", files("old")).await?;
        let spec = json!({
            "root": {"configMaps": [{"name": "files"}]},
            "code": {"sources": [{"local": "main.py"}]},
            "run": "main.py",
        });
        let (before, run) = story.ran(&story.apply("tool", &spec).await?).await?;
        story.apply_object::<ConfigMap>("files", files("new")).await?;
        new_bundle(story, &before, Duration::from_secs(5)).await?;
        let (_, next) = story.ran_again(&before, run.metadata.name.as_deref()).await?;
        assert_eq!(next.status.unwrap().stdout.unwrap().tail, "new\n");
        Ok(())
    })
    .await;
}
