//! The volume that holds the bundle: how large it may be, where it is, and whether a body may write to it.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::{End, condition, end, inline, story};

/// Text that gzip makes little of: three quarters of it stay.
fn noise(bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let letter = || {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(LETTERS[usize::from(state.to_be_bytes()[0] & 63)])
    };
    std::iter::repeat_with(letter).take(bytes).collect()
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_bundle_near_the_limit_is_delivered_and_a_larger_one_refused_with_both_numbers() {
    story(async |story| {
        let repository = story.repository().await?;
        let large = noise(680_000);
        repository.commit(&[("large.txt", &large)]).await?;
        let spec = json!({
            "code": {"sources": [
                {"github": {"repo": repository.full_name(), "ref": "main"}},
                inline("body.sh", "wc --bytes < large.txt\n"),
            ]},
            "run": "body.sh",
            "scanInterval": "1s",
        });
        let (workspace, run) = story.ran(&story.apply("tool", &spec).await?).await?;
        assert_eq!(end(&run), End::SUCCEEDED, "{:?}", run.status);
        assert_eq!(run.status.unwrap().stdout.unwrap().tail, "680000\n");
        let bundle = workspace.status.clone().unwrap().bundle.unwrap();
        assert!(
            (500_000..=524_288).contains(&bundle.compressed_bytes),
            "{bundle:?}"
        );

        repository.commit(&[("larger.txt", &large)]).await?;
        let refused = story
            .until("tool", "is refused", |workspace| {
                condition(workspace, "Ready").is_some_and(|ready| ready.status == "False")
            })
            .await?;
        let ready = condition(&refused, "Ready").unwrap();
        assert_eq!(ready.reason, "DeliveryNotSupported");
        assert!(ready.message.contains("524288"), "{}", ready.message);
        let numbers = ready
            .message
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|word| word.parse().ok());
        let actual: Vec<u64> = numbers.filter(|number| *number > 524_288).collect();
        assert_eq!(actual.len(), 1, "{}", ready.message);
        // The bundle that ran stays the current one.
        let status = refused.status.unwrap();
        assert_eq!(
            (status.bundle, status.last_run),
            (Some(bundle), workspace.status.unwrap().last_run)
        );
        let stored = story.list::<ConfigMap>().await?;
        assert_eq!(
            stored
                .iter()
                .filter(|stored| stored.binary_data.is_some())
                .count(),
            1
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_read_only_volume_stands_where_the_manifest_wants_it() {
    story(async |story| {
        let body = "pwd; cat data/one.txt; (: > new.txt) 2> /dev/null || echo read-only; : > /tmp/new.txt && echo scratch\n";
        let spec = json!({
            "code": {"sources": [inline("data/one.txt", "one\n"), inline("bin/body.sh", body)]},
            "run": "bin/body.sh",
            "volume": {"mountPath": "/srv/tool", "readOnly": true},
        });
        let (workspace, run) = story.ran(&story.apply("tool", &spec).await?).await?;
        assert_eq!(workspace.status.unwrap().run.unwrap().argv, ["bash", "/srv/tool/bin/body.sh"]);
        assert_eq!(end(&run), End::SUCCEEDED, "{:?}", run.status);
        assert_eq!(run.status.unwrap().stdout.unwrap().tail, "/srv/tool\none\nread-only\nscratch\n");
        Ok(())
    })
    .await;
}
