//! Namespaces whose administrators set limits.

use k8s_openapi::api::core::v1::{LimitRange, Pod, ResourceQuota};
use serde_json::json;

use crate::support::{End, Story, end, inline, story};

/// Makes a quota and waits until it is in force.
async fn quota(story: &Story, hard: serde_json::Value) -> anyhow::Result<()> {
    let quota: ResourceQuota =
        serde_json::from_value(json!({"metadata": {"name": "limits"}, "spec": {"hard": hard}}))?;
    story.create(&quota).await?;
    story
        .until("limits", "is in force", |quota: &ResourceQuota| {
            quota.status.as_ref().is_some_and(|status| status.used.is_some())
        })
        .await?;
    Ok(())
}

fn hello() -> serde_json::Value {
    json!({
        "code": {"sources": [inline("body.py", "print('within limits')\n")]},
        "run": "body.py",
    })
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_namespace_that_allows_no_pods_says_so_in_the_words_of_its_quota() {
    story(async |story| {
        quota(story, json!({"pods": "0"})).await?;
        let (_, run) = story.ran(&story.apply("tool", &hello()).await?).await?;
        let expected = End {
            outcome: "StartError",
            reason: "PodRejected",
            exit_code: None,
            signal: None,
        };
        assert_eq!(end(&run), expected, "{:?}", run.status);
        let message = run.status.unwrap().message.unwrap();
        for part in ["exceeded quota: limits", "requested: pods=1", "limited: pods=0"] {
            assert!(message.contains(part), "{part} is not in {message}");
        }
        let pods = story.list::<Pod>().await?;
        assert_eq!(pods.len(), 0, "{pods:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn runs_fit_into_quotas_on_resources_and_into_limit_ranges() {
    story(async |story| {
        let range: LimitRange = serde_json::from_value(json!({
            "metadata": {"name": "defaults"},
            "spec": {"limits": [{
                "type": "Container",
                "default": {"cpu": "500m", "memory": "64Mi", "ephemeral-storage": "64Mi"},
                "defaultRequest": {"cpu": "100m", "memory": "32Mi", "ephemeral-storage": "16Mi"},
                "max": {"cpu": "2", "memory": "1Gi"},
            }]},
        }))?;
        story.create(&range).await?;
        // Each of these makes the API server refuse a pod that does not say what it wants.
        quota(
            story,
            json!({
                "pods": "2",
                "requests.cpu": "1",
                "requests.memory": "1Gi",
                "limits.cpu": "4",
                "limits.memory": "2Gi",
                "configmaps": "5",
                "count/coderuns.codeworkspace.dev": "3",
            }),
        )
        .await?;
        let (_, run) = story.ran(&story.apply("tool", &hello()).await?).await?;
        assert_eq!(end(&run), End::SUCCEEDED, "{:?}", run.status);
        assert_eq!(run.status.unwrap().stdout.unwrap().tail, "within limits\n");
        Ok(())
    })
    .await;
}
