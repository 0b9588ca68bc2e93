//! AWS's own clients, as they come from their registries, and those of the native API and MCP, against the gateway: the programs of
//! `tests/clients`.
//!
//! Told alone: a session's pod runs three kernels, and on a small machine other stories would wait for it.

use anyhow::Result;

use crate::support::{AccessKey, Gateway, Story, alone};

/// Tells a story with a tenant, and looks what is left of its sessions.
async fn with_tenant(tell: impl AsyncFnOnce(&Story, &Gateway, &AccessKey) -> Result<()>) {
    alone(async |story| {
        let gateway = Gateway::of(&story.client).await?;
        let key = gateway.tenant(story).await?;
        tell(story, &gateway, &key).await?;
        gateway.nothing_is_left(story, &key).await
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn boto3_and_the_session_helper_use_every_operation_and_every_tool() {
    with_tenant(async |story, gateway, key| {
        gateway.python(story, "tools.py", key, None)?;
        gateway.python(story, "interpreters.py", key, None)?;
        gateway.python(story, "session_helper.py", key, None)
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn languages_keep_their_state_and_sessions_keep_to_themselves() {
    with_tenant(async |story, gateway, key| gateway.python(story, "languages.py", key, None)).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn whatever_is_printed_arrives_exactly_or_is_whole_in_a_file() {
    with_tenant(async |story, gateway, key| gateway.python(story, "output.py", key, None)).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn bad_input_and_what_only_aws_has_are_refused_by_name() {
    with_tenant(async |story, gateway, key| {
        let other = story.other_namespace().await?;
        let other_key = gateway.tenant(&other).await?;
        gateway.python(story, "refusals.py", key, Some(&other_key))?;
        gateway.nothing_is_left(&other, &other_key).await?;
        gateway.remove(other).await
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_session_that_has_ended_is_gone_for_every_verb() {
    with_tenant(async |story, gateway, key| gateway.python(story, "lifecycle.py", key, None)).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn the_javascript_sdk_and_an_agents_code_runner_do_as_with_aws() {
    with_tenant(async |story, gateway, key| {
        gateway.javascript(story, "verbs.mjs", key)?;
        gateway.javascript(story, "adapter.mjs", key)
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_user_of_the_cluster_follows_code_while_it_runs_and_moves_large_files() {
    with_tenant(async |story, gateway, _| gateway.native(story, "native_story.py")).await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_client_of_mcp_opens_a_session_and_uses_every_tool() {
    with_tenant(async |story, gateway, _| gateway.native(story, "mcp_story.py")).await;
}
