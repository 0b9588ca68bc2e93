//! A bundle that is not what its digest says is never executed.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use crate::support::{End, bundle, end, inline, story};

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_bundle_that_was_replaced_by_hand_is_not_run() {
    story(async |story| {
        let spec = json!({
            "code": {"sources": [inline("body.sh", "echo good\n")]},
            "run": "body.sh",
            "runPolicy": "OnDemand",
        });
        let workspace = story.looked_at(&story.apply("tool", &spec).await?).await?;
        let digest = workspace.status.unwrap().bundle.unwrap().digest;

        let bundles: Vec<ConfigMap> = story
            .list::<ConfigMap>()
            .await?
            .into_iter()
            .filter(|found| found.binary_data.is_some())
            .collect();
        let [stored] = bundles.as_slice() else {
            panic!("{bundles:?}")
        };
        let evil = bundle(&[("body.sh", "echo evil\n")])?;
        let mut forged = stored.clone();
        forged.metadata.uid = None;
        forged.metadata.resource_version = None;
        forged.metadata.managed_fields = None;
        for content in forged.binary_data.iter_mut().flat_map(|data| data.values_mut()) {
            *content = ByteString(evil.compressed.to_vec());
        }
        story
            .api::<ConfigMap>()
            .delete(&stored.name_any(), &DeleteParams::default())
            .await?;
        story.until_gone::<ConfigMap>(&stored.name_any()).await?;
        story.create(&forged).await?;

        story.create_run("by-hand", "tool", &[]).await?;
        let ended = story.ended("by-hand").await?;
        let expected = End {
            outcome: "StartError",
            reason: "DigestMismatch",
            exit_code: None,
            signal: None,
        };
        assert_eq!(end(&ended), expected, "{:?}", ended.status);
        let status = ended.status.unwrap();
        assert_eq!(status.stdout, None);
        for digest in [digest, evil.digest.to_string()] {
            let message = status.message.as_ref().unwrap();
            assert!(message.contains(&digest), "{digest} is not in {message}");
        }
        let pod: Pod = story.api().get("by-hand").await?;
        let body = &pod.status.unwrap().container_statuses.unwrap()[0];
        assert_eq!(body.started, Some(false), "{body:?}");
        assert!(body.state.as_ref().unwrap().waiting.is_some(), "{body:?}");
        Ok(())
    })
    .await;
}
