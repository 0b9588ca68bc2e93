//! The corpus: blocks of manifests, each with the verdict of the product, and where one of its judges says otherwise.
//!
//! Judges are the official JSON Schemas of the AIP texts, the product's parsers, and the API server with definitions and admission
//! policies. The product takes what both of its own judges take.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The files of blocks that stand in a workspace's `spec`.
pub const BLOCKS: [&str; 9] = [
    "code",
    "files",
    "network",
    "run",
    "runner",
    "runtime",
    "sandbox",
    "secrets",
    "workspace",
];
/// The file of inventories.
pub const INVENTORY: &str = "inventory";

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is about; of its own in the whole corpus.
    pub name: String,
    /// The blocks by name; of an inventory, its fields.
    pub blocks: Map<String, Value>,
    /// Whether the product takes it.
    pub accepted: bool,
    /// Whether nothing is added to make a whole `spec` of it.
    alone: bool,
}

impl Case {
    /// The blocks as a whole `spec`.
    pub fn spec(&self) -> Value {
        let mut spec = self.blocks.clone();
        if !self.alone {
            spec.entry("code").or_insert_with(|| json!("./x"));
        }
        spec.into()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    case: String,
    accepted: Option<Map<String, Value>>,
    refused: Option<Map<String, Value>>,
    #[serde(default)]
    alone: bool,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// The cases of a file.
pub fn cases(file: &str) -> Result<Vec<Case>> {
    let path = folder().join(file).with_extension("yaml");
    let text = std::fs::read_to_string(&path)?;
    let entries: Vec<Entry> =
        serde_saphyr::from_str(&text).with_context(|| format!("{} cannot be read", path.display()))?;
    entries
        .into_iter()
        .map(|entry| {
            let (blocks, accepted) = match (entry.accepted, entry.refused) {
                (Some(blocks), None) => (blocks, true),
                (None, Some(blocks)) => (blocks, false),
                _ => anyhow::bail!("{} is neither accepted nor refused", entry.case),
            };
            Ok(Case {
                name: format!("{file}: {}", entry.case),
                blocks,
                accepted,
                alone: entry.alone || file == INVENTORY,
            })
        })
        .collect()
}

/// Who judges.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Judge {
    /// The official JSON Schemas.
    Schema,
    /// The parsers.
    Parser,
    /// The API server.
    Server,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviation {
    because: String,
    judge: Judge,
    cases: Vec<String>,
}

/// The cases in which each judge says otherwise than the product.
pub fn deviations() -> Result<BTreeMap<Judge, BTreeSet<String>>> {
    let text = std::fs::read_to_string(folder().join("deviations.yaml"))?;
    let entries: Vec<Deviation> = serde_saphyr::from_str(&text)?;
    let mut deviations: BTreeMap<Judge, BTreeSet<String>> = BTreeMap::new();
    for Deviation {
        because,
        judge,
        cases,
    } in entries
    {
        ensure!(because.len() > 20, "{because:?} is no reason");
        for case in cases {
            let is_new = deviations.entry(judge).or_default().insert(case.clone());
            ensure!(is_new, "{case} is listed twice");
        }
    }
    Ok(deviations)
}

/// Compares a judge's verdicts with the product's.
pub fn deviating(verdicts: impl IntoIterator<Item = (Case, bool)>) -> BTreeSet<String> {
    verdicts
        .into_iter()
        .filter(|(case, accepts)| case.accepted != *accepts)
        .map(|(case, _)| case.name)
        .collect()
}
