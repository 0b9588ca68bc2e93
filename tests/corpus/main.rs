//! The same manifests through the official JSON Schemas and through the product's parsers: they agree, but for what is listed with
//! the decision that it follows. What the API server says to them is asked by the tests of the API.

mod cases;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use codeworkspace_api::CodeWorkspaceSpec;
use codeworkspace_bundle::code::WorkspacePath;
use codeworkspace_bundle::{
    FieldError, define_code, define_network, define_run, define_runner, define_runtime, define_sandbox,
    define_secrets,
};
use codeworkspace_operator::controller::workspace::root::define_root;
use jsonschema::{Registry, Validator};
use serde_json::{Map, Value, json};

use cases::{BLOCKS, INVENTORY, Judge, cases, deviating, deviations};

/// Where each block's schema is.
const SCHEMAS: [(&str, &str); 9] = [
    ("code", "aip-26/CODE.schema.json#/$defs/code"),
    ("run", "aip-26/CODE.schema.json#/$defs/run"),
    ("runner", "aip-17/RUNNER.schema.json#/$defs/runner"),
    ("sandbox", "aip-36/SANDBOX.schema.json"),
    ("secrets", "aip-19/SECRETS.schema.json#/$defs/consumerBinding"),
    ("inputs", "aip-16/IO.schema.json#/$defs/inputs"),
    ("outputs", "aip-16/IO.schema.json#/$defs/outputs"),
    ("inputsFiles", "aip-16/IO.schema.json#/$defs/inputsFiles"),
    ("outputsFiles", "aip-16/IO.schema.json#/$defs/outputsFiles"),
];
const BASE: &str = "https://agentproto.sh/schemas/";

/// The vendored files, and what they refer to outside of them: blocks of other texts, which are taken as they stand.
fn registry() -> Result<Registry<'static>> {
    let mut registry = Registry::new();
    for file in [
        "aip-16-IO",
        "aip-17-RUNNER",
        "aip-19-SECRETS",
        "aip-26-CODE",
        "aip-36-SANDBOX",
    ] {
        let path = format!(
            "{}/tests/corpus/schemas/{file}.schema.json",
            env!("CARGO_MANIFEST_DIR")
        );
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let id = schema["$id"].as_str().context("a schema has an id")?.to_owned();
        registry = registry.add(id, schema)?;
    }
    for outside in ["aip-35/STORAGE.schema.json", "aip-38/POLICY.schema.json"] {
        registry = registry.add(format!("{BASE}{outside}"), json!({"type": "object"}))?;
    }
    Ok(registry.prepare()?)
}

fn validator(registry: &Registry<'_>, schema: &str) -> Result<Validator> {
    let schema =
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": format!("{BASE}{schema}")});
    Ok(jsonschema::options().with_registry(registry).build(&schema)?)
}

fn validators(registry: &Registry<'_>) -> Result<BTreeMap<&'static str, Validator>> {
    SCHEMAS
        .into_iter()
        .map(|(block, schema)| Ok((block, validator(registry, schema)?)))
        .collect()
}

/// The verdict of the schemas; none for blocks that have none.
fn official(validators: &BTreeMap<&str, Validator>, blocks: &Map<String, Value>) -> Option<bool> {
    let mut verdicts = blocks
        .iter()
        .filter_map(|(block, value)| Some(validators.get(block.as_str())?.is_valid(value)))
        .peekable();
    verdicts.peek()?;
    Some(verdicts.all(|valid| valid))
}

#[test]
fn the_official_schemas_agree_but_for_what_is_listed() -> Result<()> {
    let registry = registry()?;
    let validators = validators(&registry)?;
    let mut verdicts = Vec::new();
    for file in BLOCKS {
        for case in cases(file)? {
            if let Some(verdict) = official(&validators, &case.blocks) {
                verdicts.push((case, verdict));
            }
        }
    }
    let inventory = validator(&registry, "aip-19/SECRETS.schema.json")?;
    for case in cases(INVENTORY)? {
        let verdict = inventory.is_valid(&case.spec());
        verdicts.push((case, verdict));
    }
    assert_eq!(
        deviating(verdicts),
        deviations()?.remove(&Judge::Schema).unwrap_or_default()
    );
    Ok(())
}

/// What the operator says to a `spec` as it reads it: its types, its parsers, and the keys that it does not know. Blocks of runs' files
/// are not parsed yet.
fn faults(spec: &Value) -> Vec<FieldError> {
    let typed: CodeWorkspaceSpec = match serde_json::from_value(spec.clone()) {
        Ok(typed) => typed,
        Err(error) => return vec![FieldError::new("spec", error)],
    };
    let mut faults = match define_code(&typed.code) {
        Ok(code) => code.all_errors().cloned().collect(),
        Err(found) => found,
    };
    let mut add = |found: Option<Vec<FieldError>>| faults.extend(found.into_iter().flatten());
    add(typed.run.as_ref().and_then(|block| define_run(block).err()));
    add(typed.runner.as_ref().and_then(|block| define_runner(block).err()));
    add(typed
        .runtime
        .as_ref()
        .and_then(|block| define_runtime(block).err()));
    add(typed
        .sandbox
        .as_ref()
        .and_then(|block| define_sandbox(block).err()));
    add(typed
        .secrets
        .as_ref()
        .and_then(|block| define_secrets(block).err()));
    add(typed
        .network
        .as_ref()
        .and_then(|block| define_network(block).err()));
    add(typed.root.as_ref().and_then(|root| define_root(root).err()));
    let path = typed.path.as_deref().map(str::parse::<WorkspacePath>);
    add(path.and_then(|path| Some(vec![FieldError::new("path", path.err()?)])));
    let unknown = typed
        .unknown
        .keys()
        .chain(typed.volume.iter().flat_map(|volume| volume.unknown.keys()))
        .chain(typed.pod.iter().flat_map(|pod| pod.unknown.keys()));
    add(Some(
        unknown
            .map(|key| FieldError::new(key.as_str(), "unknown field"))
            .collect(),
    ));
    faults
}

#[test]
fn the_parsers_agree_but_for_what_is_listed() -> Result<()> {
    let mut verdicts = Vec::new();
    for file in BLOCKS.into_iter().filter(|file| *file != "files") {
        for case in cases(file)? {
            let accepts = faults(&case.spec()).is_empty();
            verdicts.push((case, accepts));
        }
    }
    assert_eq!(
        deviating(verdicts),
        deviations()?.remove(&Judge::Parser).unwrap_or_default()
    );
    Ok(())
}

/// Everything that stands in the worked examples of AIP-26.
#[test]
fn the_worked_examples_are_taken_by_everybody() -> Result<()> {
    let registry = registry()?;
    let validators = validators(&registry)?;
    let folder = format!("{}/tests/fixtures/aip-26", env!("CARGO_MANIFEST_DIR"));
    let mut examples = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let mut blocks: Map<String, Value> = serde_saphyr::from_str(&std::fs::read_to_string(&path)?)?;
        blocks.retain(|key, _| !["kind", "name"].contains(&key.as_str()));
        assert_eq!(official(&validators, &blocks), Some(true), "{}", path.display());
        assert_eq!(faults(&blocks.into()), [], "{}", path.display());
        examples += 1;
    }
    assert_eq!(examples, 9);
    Ok(())
}

#[test]
fn every_case_has_a_name_of_its_own_and_every_listed_one_exists() -> Result<()> {
    let mut names = BTreeSet::new();
    for file in BLOCKS.into_iter().chain([INVENTORY]) {
        for case in cases(file)? {
            assert!(names.insert(case.name.clone()), "{} is there twice", case.name);
        }
    }
    assert!(names.len() >= 150, "{} cases", names.len());
    for (judge, listed) in deviations()? {
        let missing: Vec<_> = listed.difference(&names).collect();
        assert!(missing.is_empty(), "{judge:?}: {missing:?}");
    }
    Ok(())
}
