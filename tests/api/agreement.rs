//! Admission and parser judge the same manifests alike: whatever passes one passes the other, but for what is listed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use codeworkspace_bundle::{FieldError, define_code, define_network, define_run, define_runner};
use serde_json::Value;

use crate::admission::{Case, cases};
use crate::pasted::examples;

/// Refused at admission, and no matter of the parser: these fields belong to the operator's own part of the spec, whose
/// types and unknown keys it checks itself, or to blocks that get a meaning later.
const NOT_THE_PARSERS: [&str; 9] = [
    "a pasted manifest",
    "a misspelled block",
    "a misspelled key of source",
    "a misspelled key of volume",
    "a secret of two kinds and one of none",
    "a key that would forge a message",
    "a mount over the system",
    "a scan interval without unit",
    "an unknown run policy",
];

/// What the parser says to a spec: every fault of every block, of the sources' own too.
fn faults(spec: &Value) -> Vec<FieldError> {
    let mut faults = Vec::new();
    match spec.get("code").map(define_code) {
        None => faults.push(FieldError::new("code", "is missing")),
        Some(Err(found)) => faults.extend(found),
        Some(Ok(code)) => faults.extend(code.all_errors().cloned()),
    }
    let mut add = |found: Option<Vec<FieldError>>| faults.extend(found.into_iter().flatten());
    add(spec.get("run").and_then(|block| define_run(block).err()));
    add(spec.get("runner").and_then(|block| define_runner(block).err()));
    add(spec.get("network").and_then(|block| define_network(block).err()));
    faults
}

#[test]
fn the_parser_takes_what_admission_takes() -> Result<()> {
    let accepted = cases("accepted.yaml")?
        .into_iter()
        .map(|Case { name, spec }| (name, spec));
    let refused: BTreeMap<String, Vec<FieldError>> = accepted
        .chain(examples()?)
        .map(|(name, spec)| (name, faults(&spec)))
        .filter(|(_, faults)| !faults.is_empty())
        .collect();
    assert_eq!(refused, BTreeMap::new());
    Ok(())
}

#[test]
fn the_parser_refuses_what_admission_refuses() -> Result<()> {
    let taken: BTreeSet<String> = cases("refused.yaml")?
        .into_iter()
        .filter(|Case { spec, .. }| faults(spec).is_empty())
        .map(|Case { name, .. }| name)
        .collect();
    assert_eq!(taken, NOT_THE_PARSERS.map(str::to_owned).into());
    Ok(())
}
