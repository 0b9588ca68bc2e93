//! What an operator that starts while GitHub is down makes of the workspaces that it finds.

use codeworkspace_api::{CodeRun, CodeWorkspace, SourceState};
use kube::ResourceExt as _;
use serde_json::json;

use crate::support::{Operator, alone, condition};

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn after_a_restart_while_github_is_down_pins_are_ready_branches_are_stale_and_nothing_is_built_or_run()
{
    alone(async |story| {
        let repository = story.repository().await?;
        let commit = repository.commit(&[("main.py", "print('good')\n")]).await?;
        let spec = |reference: &str, description: &str| {
            json!({
                "code": {"sources": [{"github": {"repo": repository.full_name(), "ref": reference}}]},
                "run": "main.py",
                "scanInterval": "1s",
                "description": description,
            })
        };
        let (pinned, _) = story
            .ran(&story.apply("pinned", &spec(&commit, "")).await?)
            .await?;
        let (branch, _) = story
            .ran(&story.apply("branch", &spec("main", "")).await?)
            .await?;
        let made = |workspace: &CodeWorkspace| {
            let status = workspace.status.clone().unwrap();
            (status.bundle, status.last_run, status.history)
        };
        let runs = async || {
            let runs = story.list::<CodeRun>().await?;
            anyhow::Ok(runs.iter().map(kube::ResourceExt::uid).collect::<Vec<_>>())
        };
        let former_runs = runs().await?;

        repository.break_down().await?;
        // With the pod goes its volume, and all that is known of GitHub.
        Operator::new(&story.client).restart().await?;
        let stale = story
            .until("branch", "is stale", |workspace: &CodeWorkspace| {
                condition(workspace, "Stale").is_some_and(|stale| stale.status == "True")
            })
            .await?;
        assert_eq!(condition(&stale, "Ready").unwrap().status, "True");
        assert_eq!(made(&stale), made(&branch));
        let source = &stale.status.as_ref().unwrap().sources[0];
        assert_eq!(
            (source.state, source.revision.as_ref()),
            (SourceState::Stale, Some(&commit))
        );

        // The new operator has looked at it once it answers to a change that changes no bundle.
        let looked_at = story
            .looked_at(&story.apply("pinned", &spec(&commit, "looked at")).await?)
            .await?;
        assert_eq!(condition(&looked_at, "Ready").unwrap().status, "True");
        assert!(condition(&looked_at, "Stale").is_none());
        assert_eq!(made(&looked_at), made(&pinned));
        assert_eq!(runs().await?, former_runs);
        assert_eq!(stale.uid(), branch.uid());

        repository.recover().await?;
        let fresh = story
            .until("branch", "is fresh again", |workspace: &CodeWorkspace| {
                condition(workspace, "Stale").is_none()
            })
            .await?;
        assert_eq!(made(&fresh), made(&branch));
        assert_eq!(runs().await?, former_runs);
        Ok(())
    })
    .await;
}
