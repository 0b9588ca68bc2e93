//! Workspaces that take their sources from others.

use codeworkspace_api::{CodeRun, CodeWorkspace};
use futures::StreamExt as _;
use kube::api::{DeleteParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::support::{End, condition, end, inline, source_error, story, verdict};

fn sources(sources: &Value) -> Value {
    json!({"code": {"sources": sources}})
}

fn is_ready(workspace: &CodeWorkspace, status: &str) -> bool {
    condition(workspace, "Ready").is_some_and(|ready| ready.status == status)
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_workspace_waits_for_the_one_it_refers_to_and_heals_and_breaks_with_it() {
    story(async |story| {
        let waiting = story
            .looked_at(&story.apply("tool", &json!({"code": "./base", "run": "main.py"})).await?)
            .await?;
        assert_eq!(
            source_error(&waiting),
            Some((
                "Waiting",
                "code: nothing is at `./base`: no CodeWorkspace of this namespace has that `path`, and there is no `root` to \
                 look into"
            ))
        );
        assert_eq!(condition(&waiting, "Stalled"), None);
        assert_eq!(condition(&waiting, "Reconciling").unwrap().status, "True");
        assert_eq!(verdict(&waiting)?, "InProgress");
        story.nothing_started().await?;

        let base = sources(&json!([inline("main.py", "print('from below')\n")]));
        story.apply("base", &base).await?;
        let (healed, run) = story.ran(&waiting).await?;
        assert!(is_ready(&healed, "True"));
        assert_eq!(end(&run), End::SUCCEEDED);
        assert_eq!(run.status.unwrap().stdout.unwrap().tail, "from below\n");

        story
            .api::<CodeWorkspace>()
            .delete("base", &DeleteParams::default())
            .await?;
        let broken = story
            .until("tool", "is told that base is gone", |workspace: &CodeWorkspace| {
                is_ready(workspace, "False")
            })
            .await?;
        assert_eq!(source_error(&broken).map(|(reason, _)| reason), Some("Waiting"));
        // The bundle that was good stays on record.
        assert_eq!(
            broken.status.clone().unwrap().bundle,
            healed.status.unwrap().bundle
        );
        assert_eq!(verdict(&broken)?, "InProgress");
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_cycle_is_named_in_full_and_nothing_starts() {
    story(async |story| {
        story.apply("b", &sources(&json!([{"ref": "./c"}]))).await?;
        story.apply("c", &sources(&json!([{"ref": "./tool"}]))).await?;
        let spec = json!({"code": {"sources": [{"ref": "./b"}]}, "run": "main.py"});
        story.apply("tool", &spec).await?;
        let told = story
            .until("tool", "names the cycle", |workspace: &CodeWorkspace| {
                source_error(workspace).is_some_and(|(reason, _)| reason == "Cycle")
            })
            .await?;
        assert_eq!(
            source_error(&told).unwrap().1,
            "code.sources[0] > b > code.sources[0] > c > code.sources[0]: is a cycle: tool > b > c > tool"
        );
        assert_eq!(verdict(&told)?, "Failed");
        story.nothing_started().await?;
        Ok(())
    })
    .await;
}

/// Every version of the workspace after `former`, until one is as `last` wants it.
async fn versions_after(
    workspaces: &Api<CodeWorkspace>,
    former: &CodeWorkspace,
    last: impl Fn(&CodeWorkspace) -> bool,
) -> anyhow::Result<Vec<CodeWorkspace>> {
    let name = former.name_any();
    let parameters = WatchParams::default()
        .fields(&format!("metadata.name={name}"))
        .timeout(60);
    let watched = workspaces
        .watch(&parameters, &former.resource_version().unwrap_or_default())
        .await?;
    let mut watched = std::pin::pin!(watched);
    let mut versions = Vec::new();
    while let Some(event) = watched.next().await {
        if let WatchEvent::Modified(workspace) = event? {
            let is_last = last(&workspace);
            versions.push(workspace);
            if is_last {
                return Ok(versions);
            }
        }
    }
    anyhow::bail!("{name} did not become what was waited for; it was {versions:#?}")
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_change_that_leaves_the_bytes_equal_changes_nothing_above() {
    story(async |story| {
        let body = |content: &str| sources(&json!([inline("main.py", content)]));
        let files = json!([{"inline": {"path": "main.py", "content": "print(1)\n"}}]);
        story.apply("low", &sources(&files)).await?;
        story.apply("high", &sources(&json!([{"ref": "./low"}]))).await?;
        let top = json!({"code": {"sources": [{"ref": {"path": "./high"}}]}, "run": "main.py"});
        let (_, run) = story.ran(&story.apply("tool", &top).await?).await?;
        let before = story
            .until("tool", "knows of its run's end", |workspace: &CodeWorkspace| {
                workspace.status.as_ref().is_some_and(|status| {
                    let last = status.last_run.as_ref();
                    last.is_some_and(|last| last.outcome.is_some())
                })
            })
            .await?;

        // A description, then the same keys in another order. Each was looked at when the status of `low` says so.
        let mut described = sources(&files);
        described["description"] = json!("says more now");
        story.looked_at(&story.apply("low", &described).await?).await?;
        let reordered: Value = serde_json::from_str(
            r#"{"description": "and again", "code": {"sources": [{"inline": {"content": "print(1)\n", "path": "main.py"}}]}}"#,
        )?;
        story.looked_at(&story.apply("low", &reordered).await?).await?;

        // What was to be written for that would come before what is written for a change that counts.
        story.apply("low", &body("print(2)\n")).await?;
        let history = |workspace: &CodeWorkspace| workspace.status.clone().unwrap_or_default().history;
        let versions = versions_after(&story.api(), &before, |workspace| {
            history(workspace) != history(&before)
        })
        .await?;
        assert_eq!(versions.len(), 1, "{versions:#?}");
        assert_eq!(history(&versions[0]).len(), 2);
        let (_, next) = story
            .ran_again(&before, run.metadata.name.as_deref())
            .await?;
        assert_eq!(next.status.unwrap().stdout.unwrap().tail, "2\n");
        // The former run may be gone by now, and no third one came.
        let others: Vec<_> = story
            .list::<CodeRun>()
            .await?
            .iter()
            .map(kube::ResourceExt::name_any)
            .filter(|name| Some(name) != next.metadata.name.as_ref() && Some(name) != run.metadata.name.as_ref())
            .collect();
        assert_eq!(others, Vec::<String>::new());
        Ok(())
    })
    .await;
}
