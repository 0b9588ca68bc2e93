//! Workspaces whose files stand in ConfigMaps.

use codeworkspace_api::CodeWorkspace;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::support::{End, condition, end, source_error, story, verdict};

/// A workspace that takes everything of a ConfigMap and shows two files of it.
fn spec() -> Value {
    json!({
        "root": {"configMaps": [{"name": "files"}]},
        "code": {"sources": [{"local": {"path": "./", "glob": "*", "as": "./"}}]},
        "run": {"exec": ["python", "-c", "print(open('text.txt').read(), open('bytes.bin', 'rb').read().hex())"]},
        "runner": {"needs": {"language": "python"}},
    })
}

fn files(text: &str) -> Value {
    // FF 00 FE: no text in any encoding that the API server takes.
    json!({"data": {"text.txt": text}, "binaryData": {"bytes.bin": "/wD+"}})
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn text_and_bytes_of_a_config_map_arrive_and_a_changed_key_is_a_new_bundle_and_run() {
    story(async |story| {
        story.apply_object::<ConfigMap>("files", files("one")).await?;
        let (first, run) = story.ran(&story.apply("tool", &spec()).await?).await?;
        assert_eq!(end(&run), End::SUCCEEDED);
        assert_eq!(run.status.unwrap().stdout.unwrap().tail, "one ff00fe\n");

        story.apply_object::<ConfigMap>("files", files("two")).await?;
        let (second, next) = story.ran_again(&first, run.metadata.name.as_deref()).await?;
        assert_eq!(next.status.unwrap().stdout.unwrap().tail, "two ff00fe\n");
        let digest = |workspace: &CodeWorkspace| workspace.status.clone().unwrap().bundle.unwrap().digest;
        assert_eq!(
            second.status.clone().unwrap().history,
            [digest(&second), digest(&first)]
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_config_map_that_is_missing_is_waited_for_and_taken_as_soon_as_it_is_made() {
    story(async |story| {
        let waiting = story.looked_at(&story.apply("tool", &spec()).await?).await?;
        assert_eq!(
            source_error(&waiting),
            Some((
                "RootNotFound",
                "code.sources[0]: root.configMaps: there is no ConfigMap files in this namespace; it is read as soon as it is made"
            ))
        );
        assert_eq!(condition(&waiting, "Stalled"), None);
        assert_eq!(verdict(&waiting)?, "InProgress");
        story.nothing_started().await?;

        story.apply_object::<ConfigMap>("files", files("late")).await?;
        let (_, run) = story.ran(&waiting).await?;
        assert_eq!(run.status.unwrap().stdout.unwrap().tail, "late ff00fe\n");
        Ok(())
    })
    .await;
}
