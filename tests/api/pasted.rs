//! The worked examples of AIP-26: their blocks, pasted below `spec`, are workspaces.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::support::{checkout, dry_run, server};

/// Every example: the name that the manifest gives itself, and everything else in it.
pub fn examples() -> Result<Vec<(String, Value)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(checkout().join("tests/fixtures/aip-26"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
        .iter()
        .map(|path| {
            let mut manifest: Value = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
            let blocks = manifest.as_object_mut().context("a manifest is an object")?;
            let name = blocks.remove("name").context("a manifest has a name")?;
            blocks.remove("kind").context("a manifest has a kind")?;
            Ok((name.as_str().context("a name is text")?.to_owned(), manifest))
        })
        .collect()
}

#[test]
fn all_nine_manifests_of_the_six_examples_are_here() -> Result<()> {
    let names: Vec<String> = examples()?.into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "render-pdf",
            "scrape-prices-csv",
            "fetch-customer-orders",
            "render-invoice",
            "render-receipt",
            "render-utils",
            "send-templated-email",
            "finance-tools",
            "quarterly-report",
        ]
    );
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_blocks_of_every_example_are_taken_unchanged() -> Result<()> {
    let client = server().await?;
    for (name, blocks) in examples()? {
        assert_eq!(
            dry_run(&client, "codeworkspaces", &blocks).await?,
            Ok(blocks),
            "{name}"
        );
    }
    Ok(())
}
