//! What the real kstatus library makes of a new object, from its creation to its end.

use codeworkspace_api::CodeWorkspace;
use futures::StreamExt as _;
use kube::api::{WatchEvent, WatchParams};
use serde_json::{Value, json};

use crate::support::{Story, inline, kstatus, story};

/// Every version of the story's workspaces, until one is settled.
async fn versions(story: &Story, spec: &Value) -> anyhow::Result<Vec<CodeWorkspace>> {
    let api = story.api::<CodeWorkspace>();
    // The watch stands before the object does, so that no version is missed.
    let watched = api.watch(&WatchParams::default().timeout(120), "0").await?;
    let mut watched = std::pin::pin!(watched);
    story.apply("tool", spec).await?;
    let mut versions = Vec::new();
    while let Some(event) = watched.next().await {
        if let WatchEvent::Added(workspace) | WatchEvent::Modified(workspace) = event? {
            let status = workspace.status.clone().unwrap_or_default();
            let settled = status.observed_generation == workspace.metadata.generation
                && status.last_run.is_none_or(|last| last.outcome.is_some());
            versions.push(workspace);
            if settled {
                break;
            }
        }
    }
    Ok(versions)
}

async fn verdicts(story: &Story, spec: &Value) -> anyhow::Result<Vec<(bool, String)>> {
    let versions = versions(story, spec).await?;
    let observed = versions.iter().map(|version| {
        version
            .status
            .as_ref()
            .and_then(|status| status.observed_generation)
            == version.metadata.generation
    });
    let texts = versions
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(observed.zip(kstatus(&texts)?).collect())
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_new_workspace_is_in_progress_until_it_was_looked_at_and_current_then() {
    story(async |story| {
        let spec = json!({
            "code": {"sources": [inline("body.sh", "true\n")]},
            "run": "body.sh",
        });
        let verdicts = verdicts(story, &spec).await?;
        assert_eq!(verdicts.first(), Some(&(false, "InProgress".to_owned())));
        assert_eq!(verdicts.last(), Some(&(true, "Current".to_owned())));
        for (observed, verdict) in &verdicts {
            assert!(*observed || verdict == "InProgress", "{verdicts:?}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_workspace_that_only_a_change_can_help_is_failed() {
    story(async |story| {
        let spec = json!({
            "code": {"sources": [inline("main.py", "")]},
            "run": "mian.py",
        });
        let verdicts = verdicts(story, &spec).await?;
        assert_eq!(verdicts.first(), Some(&(false, "InProgress".to_owned())));
        assert_eq!(verdicts.last(), Some(&(true, "Failed".to_owned())));
        assert!(
            verdicts.iter().all(|(_, verdict)| verdict != "Current"),
            "{verdicts:?}"
        );
        Ok(())
    })
    .await;
}
