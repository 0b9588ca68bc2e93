//! Private repositories, and what opens them.

use std::time::Duration;

use codeworkspace_api::{CodeWorkspace, SecretInventory};
use github_server::AppKey;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::support::{End, Repository, Story, condition, end, leaks, source_error, story, verdict};

/// Longest that a mended credential may go unnoticed, though nobody is told of it.
const HEALING: Duration = Duration::from_secs(30);

/// A private repository of the story's own, with a body.
async fn private(story: &Story) -> anyhow::Result<Repository> {
    let repository = story.repository().await?;
    repository.commit(&[("main.py", "print('private')\n")]).await?;
    repository.make_private().await?;
    Ok(repository)
}

/// A workspace that nothing but its own connector makes worth another look.
fn spec(repository: &Repository) -> Value {
    json!({
        "code": {"sources": [{"github": {"repo": repository.full_name(), "ref": "main"}}]},
        "run": "main.py",
        "scanInterval": "24h",
    })
}

/// A token of the story's own, in the form of GitHub's.
fn token(story: &Story) -> String {
    format!("ghp_{:0<36}", story.namespace.replace('-', ""))
}

/// Waits until the workspace, which nobody touches, is told so.
async fn told(story: &Story, reason: &str) -> anyhow::Result<CodeWorkspace> {
    let what = format!("says {reason}");
    story
        .within(HEALING, "tool", &what, |workspace: &CodeWorkspace| {
            source_error(workspace).is_some_and(|(told, _)| told == reason)
        })
        .await
}

/// Waits until the workspace, which nobody touches, is ready, and gives what its run printed.
async fn heals(story: &Story, workspace: &CodeWorkspace) -> anyhow::Result<String> {
    story
        .within(HEALING, "tool", "heals", |workspace: &CodeWorkspace| {
            condition(workspace, "Ready").is_some_and(|ready| ready.status == "True")
        })
        .await?;
    let (after, run) = story.ran(workspace).await?;
    assert_eq!(after.metadata.generation, workspace.metadata.generation);
    assert_eq!(end(&run), End::SUCCEEDED);
    Ok(run.status.unwrap().stdout.unwrap().tail)
}

/// What the inventory's connector is told, once it is this.
async fn inventory_says(story: &Story, reason: Option<&str>) -> anyhow::Result<SecretInventory> {
    let what = format!("says {reason:?}");
    let says = |inventory: &SecretInventory| {
        let connectors = inventory.status.iter().flat_map(|status| &status.connectors);
        connectors
            .into_iter()
            .any(|connector| connector.reason.as_deref() == reason && connector.ready == reason.is_none())
    };
    story.within(HEALING, "inventory", &what, says).await
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn secrets_are_read_in_namespaces_that_an_administrator_opted_in_and_in_no_other() {
    story(async |story| {
        let repository = private(story).await?;
        repository.accept_token(&token(story)).await?;
        story.secret("github", &[("token", &token(story))]).await?;
        let workspace = story
            .looked_at(&story.apply("tool", &spec(&repository)).await?)
            .await?;
        let (reason, _) = source_error(&workspace).unwrap();
        assert_eq!(reason, "RepoOrRefNotFound");

        story.inventory("github").await?;
        let refused = told(story, "SecretNotReadable").await?;
        let message = source_error(&refused).unwrap().1;
        assert!(
            message.contains("the chart's value secrets.namespaces"),
            "{message}"
        );
        // It heals by itself as soon as somebody permits it.
        let inventory = inventory_says(story, Some("SecretNotReadable")).await?;
        assert_eq!(verdict(&inventory)?, "InProgress");
        story.nothing_started().await?;

        story.permit_secrets().await?;
        assert_eq!(heals(story, &workspace).await?, "private\n");
        let inventory = inventory_says(story, None).await?;
        assert_eq!(verdict(&inventory)?, "Current");
        let connectors = inventory.status.unwrap().connectors;
        assert_eq!(connectors[0].credential.as_deref(), Some("PersonalAccessToken"));
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_mended_token_is_noticed_within_half_a_minute_though_nobody_touches_the_workspace() {
    story(async |story| {
        let repository = private(story).await?;
        repository.accept_token(&token(story)).await?;
        story.permit_secrets().await?;
        story.inventory("github").await?;
        let workspace = story
            .looked_at(&story.apply("tool", &spec(&repository)).await?)
            .await?;
        let (reason, message) = source_error(&workspace).unwrap();
        assert_eq!(reason, "SecretNotFound", "{message}");
        let inventory = inventory_says(story, Some("SecretNotFound")).await?;
        assert_eq!(verdict(&inventory)?, "InProgress");

        let wrong = token(story).replace("ghp_e2e", "ghp_old");
        story.secret("github", &[("token", &wrong)]).await?;
        told(story, "AuthFailed").await?;
        // People paste a line end with the token.
        let pasted = format!("{}\n", token(story));
        story.secret("github", &[("token", &pasted)]).await?;
        assert_eq!(heals(story, &workspace).await?, "private\n");
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn an_app_opens_a_private_repository_with_a_token_for_reading_it_and_nothing_else() {
    story(async |story| {
        let (app, installation) = (4711, 4712);
        let repository = private(story).await?;
        let key = AppKey::generate()?;
        repository.accept_app(app, installation, &key).await?;
        story.permit_secrets().await?;
        let values = [("appId", "4711"), ("privateKey", key.private_pem.as_str())];
        story.secret("github", &values).await?;
        story.inventory("github").await?;
        let (workspace, run) = story.ran(&story.apply("tool", &spec(&repository)).await?).await?;
        assert!(source_error(&workspace).is_none());
        assert_eq!(run.status.unwrap().stdout.unwrap().tail, "private\n");
        let issued = repository.tokens_of_app(app).await?;
        assert_eq!(issued[0]["repositories"], json!([repository.full_name()]));
        assert_eq!(issued[0]["permissions"]["contents"], "read");
        let inventory = inventory_says(story, None).await?;
        let connectors = inventory.status.unwrap().connectors;
        assert_eq!(connectors[0].credential.as_deref(), Some("GitHubApp"));
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_secret_that_is_written_down_would_be_found_at_the_end_of_each_story() {
    story(async |story| {
        let repository = private(story).await?;
        let token = token(story);
        repository.accept_token(&token).await?;
        assert_eq!(leaks(story).await?, Vec::<String>::new());
        let mut spec = spec(&repository);
        spec["description"] = json!(format!("somebody wrote {token} here"));
        let careless = story.apply("tool", &spec).await?;
        let found = leaks(story).await?;
        assert!(
            found
                .iter()
                .any(|place| place.starts_with("CodeWorkspaces: after `")),
            "{found:?}"
        );
        assert!(found.iter().all(|place| !place.contains(&token)), "{found:?}");
        story
            .api::<CodeWorkspace>()
            .delete(&careless.name_any(), &kube::api::DeleteParams::default())
            .await?;
        story.until_gone::<CodeWorkspace>("tool").await?;
        Ok(())
    })
    .await;
}
