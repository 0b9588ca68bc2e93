//! Images: those that the cluster's administrator offers, and those that cannot be had.

use codeworkspace_api::{ImagePullPolicy, RunnerLanguage, RunnerTemplate, RunnerTemplateSpec};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use crate::support::{End, condition, end, inline, story};

fn spec(image: &str) -> serde_json::Value {
    json!({
        "code": {"sources": [inline("body.py", "print('never')\n")]},
        "run": "body.py",
        "runner": {"engine": "sandbox", "image": image},
    })
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn an_unknown_image_is_answered_with_those_there_are() {
    story(async |story| {
        let workspace = story
            .looked_at(&story.apply("tool", &spec("pyhton")).await?)
            .await?;
        for type_ in ["Ready", "RunnerResolved"] {
            let found = condition(&workspace, type_).unwrap();
            assert_eq!(
                (found.status.as_str(), found.reason.as_str()),
                ("False", "UnknownTemplate"),
                "{type_}"
            );
            for part in ["runner.image", "`pyhton`", "node", "python"] {
                assert!(found.message.contains(part), "{part} is not in {}", found.message);
            }
        }
        story.nothing_started().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn an_image_that_cannot_be_pulled_is_given_up_after_the_start_budget() {
    story(async |story| {
        let templates: Api<RunnerTemplate> = Api::all(story.client.clone());
        let template = RunnerTemplate::new(
            &story.namespace,
            RunnerTemplateSpec {
                image: "registry.invalid/no/such:image".to_owned(),
                image_pull_policy: Some(ImagePullPolicy::IfNotPresent),
                image_pull_secrets: Vec::new(),
                languages: vec![RunnerLanguage::Python],
                native: Vec::new(),
                tools: Vec::new(),
                kernels: Vec::new(),
                session_limits: None,
                // Never picked by itself.
                weight: 1_000_000,
            },
        );
        templates.create(&PostParams::default(), &template).await?;
        let told = Box::pin(async {
            let (_, run) = story
                .ran(&story.apply("tool", &spec(&story.namespace)).await?)
                .await?;
            let expected = End {
                outcome: "StartError",
                reason: "ImagePullFailed",
                exit_code: None,
                signal: None,
            };
            assert_eq!(end(&run), expected, "{:?}", run.status);
            let message = run.status.unwrap().message.unwrap();
            assert!(message.contains("registry.invalid/no/such:image"), "{message}");
            story.until_gone::<Pod>(&run.metadata.name.unwrap()).await
        })
        .await;
        templates
            .delete(&story.namespace, &DeleteParams::default())
            .await?;
        told
    })
    .await;
}
