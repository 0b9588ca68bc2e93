//! What takes minutes by its nature.

use std::time::Duration;

use anyhow::{Result, ensure};
use codeworkspace_api::CodeWorkspace;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::json;

use crate::support::{Operator, Story, alone, condition};

const WORKSPACES: u32 = 1_000;
const MINUTE: Duration = Duration::from_mins(1);
/// Requests to the API server at once.
const AT_ONCE: usize = 16;

async fn applied_and_ready(story: &Story, name: &str, repository: &str) -> Result<()> {
    let spec = json!({
        "code": {"sources": [{"github": {"repo": repository, "ref": "main"}}]},
        "scanInterval": "1m",
    });
    story.apply(name, &spec).await?;
    let ready =
        |workspace: &CodeWorkspace| condition(workspace, "Ready").is_some_and(|ready| ready.status == "True");
    story.until(name, "is ready", ready).await?;
    Ok(())
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e --long"]
async fn a_thousand_workspaces_on_one_branch_ask_github_less_than_five_times_a_minute() {
    alone(async |story| {
        let operator = Operator::new(&story.client);
        // As users have it; the other stories cannot wait that long.
        operator
            .upgrade(&["configuration.github.lookupFloorSeconds=30"])
            .await?;
        let outcome = three_minutes(story, &operator).await;
        operator
            .upgrade(&["configuration.github.lookupFloorSeconds=1"])
            .await?;
        outcome
    })
    .await;
}

async fn three_minutes(story: &Story, operator: &Operator) -> Result<()> {
    let repository = story.repository().await?;
    repository.commit(&[("main.py", "print('shared')\n")]).await?;
    let name = repository.full_name();
    stream::iter(0..WORKSPACES)
        .map(|number| {
            let name = &name;
            async move { applied_and_ready(story, &format!("tool-{number}"), name).await }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    for minute in 1..=3 {
        let before = (repository.api_requests().await?, operator.looks().await?);
        // A minute is what is measured here.
        tokio::time::sleep(MINUTE).await;
        let (asked, looks) = (
            repository.api_requests().await? - before.0,
            operator.looks().await? - before.1,
        );
        let resident = operator.resident_bytes().await? >> 20;
        let measured = format!(
            "minute {minute}: {asked} requests to GitHub, {looks} looks at workspaces, {resident} MiB resident"
        );
        println!("{measured}");
        ensure!(asked < 5, "too many requests: {measured}");
        // Otherwise few requests would mean that nobody looks.
        ensure!(
            looks >= u64::from(WORKSPACES) * 9 / 10,
            "too few looks: {measured}"
        );
    }
    Ok(())
}
