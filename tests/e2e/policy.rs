//! What administrators decide for a namespace.

use codeworkspace_api::{CodeWorkspace, labels};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::{Story, condition, source_error, story};

async fn require_pins(story: &Story, value: &Value) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(story.client.clone());
    let labels = json!({"metadata": {"labels": {labels::REQUIRE_PIN: value}}});
    let parameters = PatchParams::default();
    namespaces
        .patch(&story.namespace, &parameters, &Patch::Merge(labels))
        .await?;
    Ok(())
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn where_a_namespace_wants_pins_branches_are_refused_when_applied_and_in_status() {
    story(async |story| {
        let repository = story.repository().await?;
        let commit = repository.commit(&[("main.py", "print('pinned')\n")]).await?;
        let spec = |reference: &str| {
            json!({
                "code": {"sources": [{"github": {"repo": repository.full_name(), "ref": reference}}]},
                "scanInterval": "24h",
            })
        };
        let ready = |workspace: &CodeWorkspace, status: &str| {
            condition(workspace, "Ready").is_some_and(|ready| ready.status == status)
        };
        let before = story.looked_at(&story.apply("before", &spec("main")).await?).await?;
        assert!(ready(&before, "True"));

        require_pins(story, &json!("true")).await?;
        let told = story
            .until("before", "is told of the label", |workspace: &CodeWorkspace| {
                ready(workspace, "False")
            })
            .await?;
        let message = format!(
            "code.sources[0]: {}@main is no whole commit id, and only those are allowed here (requirePin): write the 40 hex digits \
             of a commit as `ref`",
            repository.full_name()
        );
        assert_eq!(source_error(&told), Some(("PinRequired", message.as_str())));

        let pinned = story.looked_at(&story.apply("after", &spec(&commit)).await?).await?;
        assert!(ready(&pinned, "True"));
        let refused = story.apply("late", &spec("main")).await.unwrap_err().to_string();
        assert!(
            refused.contains(
                "spec.code.sources[0].github.ref is \"main\": this namespace requires whole commit ids, 40 or 64 lower-case hex \
                 digits, so write the one that is meant"
            ),
            "{refused}"
        );

        require_pins(story, &Value::Null).await?;
        story
            .until("before", "may float again", |workspace: &CodeWorkspace| {
                ready(workspace, "True")
            })
            .await?;
        Ok(())
    })
    .await;
}
