//! Sources: all of them are tried, and what becomes of each stands in status.

use std::time::Duration;

use codeworkspace_api::{CodeWorkspace, SourceState, SourceStatus, labels};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::support::{End, bundle, condition, end, inline, story};

/// A source's status, as far as it is the same in each run of the story.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    path: String,
    kind: Option<String>,
    state: SourceState,
    files: Option<i64>,
    size_bytes: Option<i64>,
    revision: Option<String>,
    error: Option<(String, String)>,
}

fn seen(workspace: &CodeWorkspace) -> Vec<Seen> {
    let sources = workspace.status.clone().unwrap_or_default().sources;
    let one = |source: SourceStatus| Seen {
        path: source.path,
        kind: source.kind,
        state: source.state,
        files: source.files,
        size_bytes: source.size_bytes,
        revision: source.revision,
        error: source.error.map(|error| (error.class, error.reason)),
    };
    sources.into_iter().map(one).collect()
}

fn resolved(index: usize, kind: &str, files: i64, size_bytes: i64, revision: Option<&str>) -> Seen {
    Seen {
        path: format!("code.sources[{index}]"),
        kind: Some(kind.to_owned()),
        state: SourceState::Resolved,
        files: Some(files),
        size_bytes: Some(size_bytes),
        revision: revision.map(str::to_owned),
        error: None,
    }
}

fn failed(index: usize, reason: &str, revision: Option<&str>) -> Seen {
    Seen {
        path: format!("code.sources[{index}]"),
        kind: Some("github".to_owned()),
        state: SourceState::Failed,
        files: None,
        size_bytes: None,
        revision: revision.map(str::to_owned),
        error: Some(("SourceResolutionError".to_owned(), reason.to_owned())),
    }
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn while_a_source_fails_nothing_starts_and_each_one_tells_what_became_of_it() {
    story(async |story| {
        let repository = story.repository().await?;
        let commit = repository
            .commit(&[("lib/a.py", "A = 41\n"), ("lib/b.txt", "bb\n")])
            .await?;
        let repo = repository.full_name();
        let spec = |path: &str| {
            json!({
                "code": {"sources": [
                    inline("main.py", "from lib.a import A\nprint(A + 1)\n"),
                    {"github": {"repo": repo, "ref": commit, "path": "lib"}},
                    {"github": {"repo": repo, "ref": "later", "path": "lib/b.txt"}},
                    {"github": {"repo": repo, "ref": "refs/heads/main", "path": path}},
                ]},
                "run": "main.py",
                "scanInterval": "1s",
            })
        };
        let two_fail = story
            .looked_at(&story.apply("tool", &spec("no/such/folder")).await?)
            .await?;
        assert_eq!(
            seen(&two_fail),
            [
                resolved(0, "inline", 1, 33, None),
                resolved(1, "github", 2, 10, Some(&commit)),
                failed(2, "RepoOrRefNotFound", None),
                failed(3, "PathNotFound", Some(&commit)),
            ]
        );
        let ready = condition(&two_fail, "Ready").unwrap();
        assert_eq!(
            (ready.status.as_str(), ready.reason.as_str()),
            ("False", "SourceResolutionError")
        );
        for part in ["2 of 4 sources failed", "code.sources[2]", "code.sources[3]"] {
            assert!(ready.message.contains(part), "{part} is not in {}", ready.message);
        }
        story.nothing_started().await?;

        let one_fails = story
            .looked_at(&story.apply("tool", &spec("lib/b.txt")).await?)
            .await?;
        let states: Vec<_> = seen(&one_fails)
            .into_iter()
            .map(|source| (source.state, source.error))
            .collect();
        let not_found = ("SourceResolutionError".to_owned(), "RepoOrRefNotFound".to_owned());
        assert_eq!(
            states,
            [
                (SourceState::Resolved, None),
                (SourceState::Resolved, None),
                (SourceState::Failed, Some(not_found)),
                (SourceState::Resolved, None),
            ]
        );
        story.nothing_started().await?;

        // The other one is mended where it is, and the next scan finds it.
        repository.branch("later", &commit).await?;
        let (all_good, run) = story.ran(&one_fails).await?;
        let ready = condition(&all_good, "Ready").unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Ready"));
        assert_eq!(end(&run), End::SUCCEEDED);
        assert_eq!(run.status.unwrap().stdout.unwrap().tail, "42\n");
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_moved_branch_leads_to_a_new_bundle_and_a_new_run() {
    story(async |story| {
        let repository = story.repository().await?;
        let first_commit = repository.commit(&[("main.py", "print('one')\n")]).await?;
        let spec = json!({
            "code": {"sources": [{"github": {"repo": repository.full_name(), "ref": "main"}}]},
            "run": "main.py",
            "scanInterval": "1s",
        });
        let (first, first_run) = story.ran(&story.apply("tool", &spec).await?).await?;
        let first_status = first.status.clone().unwrap();
        assert_eq!(
            first_status.sources[0].revision.as_deref(),
            Some(first_commit.as_str())
        );
        assert_eq!(first_run.status.unwrap().stdout.unwrap().tail, "one\n");

        let second_commit = repository.commit(&[("main.py", "print('two')\n")]).await?;
        let first_name = &first_status.last_run.unwrap().name;
        let (second, second_run) = story.ran_again(&first, Some(first_name)).await?;
        let status = second.status.unwrap();
        assert_eq!(
            status.sources[0].revision.as_deref(),
            Some(second_commit.as_str())
        );
        let digest = |source: &str| anyhow::Ok(bundle(&[("main.py", source)])?.digest.to_string());
        assert_eq!(
            status.history,
            [digest("print('two')\n")?, digest("print('one')\n")?]
        );
        assert_eq!(second_run.spec.digest.as_ref(), Some(&status.history[0]));
        assert_eq!(end(&second_run), End::SUCCEEDED);
        assert_eq!(second_run.status.unwrap().stdout.unwrap().tail, "two\n");
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn an_annotation_asks_for_a_scan_now() {
    story(async |story| {
        let repository = story.repository().await?;
        repository.commit(&[("main.py", "print('one')\n")]).await?;
        let spec = json!({
            "code": {"sources": [{"github": {"repo": repository.full_name(), "ref": "main"}}]},
            "run": "main.py",
            "scanInterval": "24h",
        });
        let (first, first_run) = story.ran(&story.apply("tool", &spec).await?).await?;
        repository.commit(&[("main.py", "print('two')\n")]).await?;
        // A look-up's answer is shared for the resolver's floor, so that the first wish may still be told the former commit.
        let wishes = async {
            let mut every = tokio::time::interval(Duration::from_secs(1));
            for wish in 0.. {
                every.tick().await;
                let annotations =
                    json!({"metadata": {"annotations": {labels::RECONCILE_AT: wish.to_string()}}});
                let parameters = PatchParams::default();
                story
                    .api::<CodeWorkspace>()
                    .patch("tool", &parameters, &Patch::Merge(annotations))
                    .await?;
            }
            anyhow::Ok(())
        };
        let ran = tokio::select! {
            ran = story.ran_again(&first, first_run.metadata.name.as_deref()) => ran?,
            Err(error) = wishes => return Err(error),
        };
        assert_eq!(ran.1.status.unwrap().stdout.unwrap().tail, "two\n");
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn while_github_is_down_the_last_bundle_stands_and_runs() {
    story(async |story| {
        let repository = story.repository().await?;
        let commit = repository.commit(&[("main.py", "print('still here')\n")]).await?;
        let spec = json!({
            "code": {"sources": [{"github": {"repo": repository.full_name(), "ref": "main"}}]},
            "run": "main.py",
            "scanInterval": "1s",
        });
        let (before, _) = story.ran(&story.apply("tool", &spec).await?).await?;
        assert!(condition(&before, "Stale").is_none());

        repository.break_down().await?;
        let stale = story
            .until("tool", "is stale", |workspace: &CodeWorkspace| {
                condition(workspace, "Stale").is_some_and(|stale| stale.status == "True")
            })
            .await?;
        assert_eq!(condition(&stale, "Ready").unwrap().status, "True");
        let (before, after) = (before.status.unwrap(), stale.status.clone().unwrap());
        assert_eq!(after.bundle, before.bundle);
        assert_eq!(after.last_run, before.last_run);
        let source = &after.sources[0];
        assert_eq!(
            (source.state, source.revision.as_ref()),
            (SourceState::Stale, Some(&commit))
        );
        assert_eq!(source.error.as_ref().unwrap().class, "SourceResolutionError");
        story.create_run("by-hand", "tool", &[]).await?;
        let by_hand = story.ended("by-hand").await?;
        assert_eq!(end(&by_hand), End::SUCCEEDED);
        assert_eq!(by_hand.status.unwrap().stdout.unwrap().tail, "still here\n");

        repository.recover().await?;
        let fresh = story
            .until("tool", "is fresh again", |workspace: &CodeWorkspace| {
                condition(workspace, "Stale").is_none()
            })
            .await?;
        let fresh = fresh.status.unwrap();
        assert_eq!(fresh.sources, before.sources);
        assert_eq!((fresh.bundle, fresh.last_run), (before.bundle, before.last_run));
        Ok(())
    })
    .await;
}
