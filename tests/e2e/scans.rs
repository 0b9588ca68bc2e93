//! Scans that find nothing new change nothing.

use codeworkspace_api::{CodeRun, CodeWorkspace};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt as _;
use serde_json::json;

use crate::support::{Story, inline, story};

/// The resource version of everything that belongs to the workspace.
async fn versions(story: &Story) -> anyhow::Result<Vec<(String, Option<String>)>> {
    let mut versions = Vec::new();
    let mut add = |name: String, version: Option<String>| versions.push((name, version));
    for object in story.list::<CodeWorkspace>().await? {
        add(object.name_any(), object.resource_version());
    }
    for object in story.list::<CodeRun>().await? {
        add(object.name_any(), object.resource_version());
    }
    for object in story.list::<Pod>().await? {
        add(object.name_any(), object.resource_version());
    }
    for object in story.list::<ConfigMap>().await? {
        add(object.name_any(), object.resource_version());
    }
    for object in story.list::<NetworkPolicy>().await? {
        add(object.name_any(), object.resource_version());
    }
    for event in story.list::<Event>().await? {
        // The others are those of the cluster about the pod.
        if event.involved_object.api_version.as_deref() == Some("codeworkspace.dev/v1alpha1") {
            add(event.reason.clone().unwrap_or_default(), event.resource_version());
        }
    }
    Ok(versions)
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn an_idle_workspace_and_its_children_stand_still() {
    story(async |story| {
        let repository = story.repository().await?;
        repository.commit(&[("main.py", "print('idle')\n")]).await?;
        let spec = json!({
            "code": {"sources": [
                // A branch by its whole name is one request for each look-up.
                {"github": {"repo": repository.full_name(), "ref": "refs/heads/main"}},
                inline("extra.txt", "extra\n"),
            ]},
            "run": "main.py",
            "scanInterval": "1s",
        });
        let (_, run) = story.ran(&story.apply("tool", &spec).await?).await?;
        // The last thing that kubelet says about a pod comes seconds after its containers have ended.
        story
            .until(&run.name_any(), "is cleared away", |pod: &Pod| {
                let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
                conditions.into_iter().flatten().any(|condition| {
                    (condition.type_.as_str(), condition.status.as_str())
                        == ("PodReadyToStartContainers", "False")
                })
            })
            .await?;
        // The record of the run's end may still be on its way into the workspace.
        repository.look_ups_later(2).await?;
        let before = versions(story).await?;
        // The workspace, its run, the run's pod, the bundle, the deny policy, the cluster's own `kube-root-ca.crt`, and three events:
        // the bundle was built, the run was created, the run succeeded.
        assert_eq!(before.len(), 9, "{before:?}");
        // Between the first and the last of four look-ups lie at least two whole scans.
        repository.look_ups_later(4).await?;
        assert_eq!(versions(story).await?, before);
        Ok(())
    })
    .await;
}
