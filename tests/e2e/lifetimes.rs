//! Pods that go before their time, and what is left when a workspace goes.

use codeworkspace_api::{CodeRun, CodeWorkspace};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use crate::support::{End, end, inline, story};

const SLEEPS: &str = "import time\nprint('began', flush=True)\ntime.sleep(3600)\n";

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_run_whose_pod_is_deleted_is_lost() {
    story(async |story| {
        let spec = json!({"code": {"sources": [inline("body.py", SLEEPS)]}, "run": "body.py"});
        let workspace = story.looked_at(&story.apply("tool", &spec).await?).await?;
        let name = workspace.status.clone().unwrap().last_run.unwrap().name;
        story.body_runs(&name).await?;
        story.api::<Pod>().delete(&name, &DeleteParams::default()).await?;
        let (_, run) = story.ran(&workspace).await?;
        // The pod's last status, and with it the signal, is seen only if it comes before the pod's end.
        let End {
            outcome,
            reason,
            exit_code,
            ..
        } = end(&run);
        assert_eq!(
            (outcome, reason, exit_code),
            ("Lost", "PodDeleted", None),
            "{:?}",
            run.status
        );
        // What was lost is not run again by itself.
        story.until_gone::<Pod>(&name).await?;
        assert_eq!(story.list::<CodeRun>().await?.len(), 1);
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_deleted_workspace_takes_everything_with_it() {
    story(async |story| {
        let spec = json!({"code": {"sources": [inline("body.py", SLEEPS)]}, "run": "body.py"});
        let workspace = story.looked_at(&story.apply("tool", &spec).await?).await?;
        let name = workspace.status.unwrap().last_run.unwrap().name;
        story.body_runs(&name).await?;
        let bundles = story
            .list::<ConfigMap>()
            .await?
            .into_iter()
            .filter(|found| found.binary_data.is_some());
        let bundles: Vec<_> = bundles.map(|bundle| bundle.name_any()).collect();
        assert_eq!(bundles.len(), 1);

        story
            .api::<CodeWorkspace>()
            .delete("tool", &DeleteParams::background())
            .await?;
        story.until_gone::<CodeWorkspace>("tool").await?;
        story.until_gone::<CodeRun>(&name).await?;
        story.until_gone::<Pod>(&name).await?;
        story.until_gone::<ConfigMap>(&bundles[0]).await?;
        Ok(())
    })
    .await;
}

/// The kubelet measures volumes by polling, which on a busy node takes minutes.
mod long {
    use super::*;

    #[tokio::test]
    #[ignore = "needs a cluster: cargo xtask test e2e"]
    async fn a_body_that_fills_its_volume_is_evicted() {
        story(async |story| {
            let body = "import time\nwith open('big', 'wb') as big:\n    big.write(b'x' * (64 << 20))\ntime.sleep(3600)\n";
            let spec = json!({
                "code": {"sources": [inline("body.py", body)]},
                "run": "body.py",
                "volume": {"sizeLimit": "16Mi"},
            });
            let workspace = story.looked_at(&story.apply("tool", &spec).await?).await?;
            let name = workspace.status.clone().unwrap().last_run.unwrap().name;
            story.body_runs(&name).await?;
            story
                .until(&name, "was evicted", |pod: &Pod| {
                    pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Failed"))
                })
                .await?;
            let (_, run) = story.ran(&workspace).await?;
            assert_eq!(
                end(&run),
                End { outcome: "Evicted", reason: "Evicted", exit_code: None, signal: None },
                "{:?}", run.status
            );
            let message = run.status.unwrap().message.unwrap();
            assert!(message.contains("16Mi"), "{message}");
            Ok(())
        })
        .await;
    }
}
