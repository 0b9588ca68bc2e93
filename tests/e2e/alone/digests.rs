//! Equal files are equal bundles, wherever and whenever they are built.

use codeworkspace_api::CodeWorkspace;
use serde_json::json;

use crate::support::{Operator, alone, bundle, inline};

fn digest(workspace: &CodeWorkspace) -> String {
    workspace.status.clone().unwrap().bundle.unwrap().digest
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn equal_sources_have_equal_digests_in_two_namespaces_after_a_restart_and_on_the_host() {
    alone(async |story| {
        let repository = story.repository().await?;
        let commit = repository
            .commit(&[
                ("pkg/one.py", "ONE = 1\n"),
                ("pkg/data/ü.txt", "ä\n"),
                ("README.md", "not taken\n"),
            ])
            .await?;
        let spec = json!({
            "code": {"sources": [
                {"github": {"repo": repository.full_name(), "ref": commit, "path": "pkg"}},
                inline("pkg/one.py", "ONE = 'replaced'\n"),
                inline("start.sh", "#!/bin/sh\n"),
            ]},
        });
        let on_the_host = bundle(&[
            ("pkg/one.py", "ONE = 'replaced'\n"),
            ("pkg/data/ü.txt", "ä\n"),
            ("start.sh", "#!/bin/sh\n"),
        ])?
        .digest
        .to_string();

        let here = story.looked_at(&story.apply("tool", &spec).await?).await?;
        assert_eq!(digest(&here), on_the_host);
        let elsewhere = story.other_namespace().await?;
        let there = elsewhere
            .looked_at(&elsewhere.apply("tool", &spec).await?)
            .await?;
        assert_eq!(digest(&there), on_the_host);

        // The new process knows nothing of the former one's trees.
        Operator::new(&story.client).restart().await?;
        let anew = story.looked_at(&story.apply("another", &spec).await?).await?;
        assert_eq!(digest(&anew), on_the_host);
        Ok(())
    })
    .await;
}
