//! The table of values in each chart's README is written from the comments of its `values.yaml`.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::CHARTS;
use crate::support::checkout;

const BEGIN: &str = "<!-- values.yaml begins -->\n";
const END: &str = "<!-- values.yaml ends -->\n";

/// `UPDATE_README=1 cargo test --test api readme` writes them anew.
#[test]
fn each_readme_lists_every_value() -> Result<()> {
    for chart in CHARTS {
        let folder = checkout().join("charts").join(chart);
        let table = table(&std::fs::read_to_string(folder.join("values.yaml"))?)?;
        let path = folder.join("README.md");
        let readme = std::fs::read_to_string(&path)?;
        let (before, rest) = readme
            .split_once(BEGIN)
            .context("the README has no place for the table")?;
        let (_, after) = rest.split_once(END).context("the README's table has no end")?;
        let current = format!("{before}{BEGIN}\n{table}\n{END}{after}");
        if std::env::var_os("UPDATE_README").is_some() {
            std::fs::write(&path, &current)?;
        } else {
            assert!(
                readme == current,
                "{chart}/README.md is stale: run UPDATE_README=1 cargo test --test api readme"
            );
        }
    }
    Ok(())
}

/// A key of `values.yaml`, and the comment above it if there is one.
struct Key {
    path: Vec<String>,
    comment: Option<String>,
}

fn table(values: &str) -> Result<String> {
    let defaults: Value = serde_saphyr::from_str(values)?;
    let keys = keys(values);
    let (documented, bare): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| key.comment.is_some());
    let is_group = |key: &Key| {
        let below = |other: &&Key| other.path.len() > key.path.len() && other.path.starts_with(&key.path);
        documented.iter().any(|other| below(&other))
    };
    let mut table = String::from("| value | default | what it is |\n|---|---|---|\n");
    for key in &documented {
        let value = key.path.iter().try_fold(&defaults, |value, step| value.get(step));
        let value = value.with_context(|| format!("no default for {}", key.path.join(".")))?;
        let default = if is_group(key) {
            String::new()
        } else {
            format!("`{value}`")
        };
        let comment = key.comment.as_deref().unwrap_or_default().replace('|', "\\|");
        writeln!(table, "| `{}` | {default} | {comment} |", key.path.join("."))?;
    }
    for key in bare {
        let holds_rows = is_group(&key);
        let is_in_a_row = documented
            .iter()
            .any(|row| key.path.starts_with(&row.path) && !is_group(row));
        ensure!(holds_rows || is_in_a_row, "{} has no comment", key.path.join("."));
    }
    Ok(table)
}

/// Every key, in the file's order.
fn keys(values: &str) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    for line in values.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(words) = text.strip_prefix("# ") {
            comment.push(words);
            continue;
        }
        let key = text
            .split_once(':')
            .filter(|_| !text.starts_with("- "))
            .map(|(key, _)| key);
        if let Some(key) = key {
            above.retain(|(depth, _)| *depth < indent);
            above.push((indent, key.to_owned()));
            let path = above.iter().map(|(_, key)| key.clone()).collect();
            keys.push(Key {
                path,
                comment: (!comment.is_empty()).then(|| comment.join(" ")),
            });
        }
        comment.clear();
    }
    keys
}

#[test]
fn a_table_has_a_row_for_each_comment_and_whole_values_as_defaults() -> Result<()> {
    let values = "# The first.\na: 1\n# A group.\nb:\n  # Inside,\n  # on two lines.\n  c: [u, v]\n# A whole.\nd:\n  e: {f: ''}\n";
    assert_eq!(
        table(values)?,
        "| value | default | what it is |\n|---|---|---|\n\
         | `a` | `1` | The first. |\n\
         | `b` |  | A group. |\n\
         | `b.c` | `[\"u\",\"v\"]` | Inside, on two lines. |\n\
         | `d` | `{\"e\":{\"f\":\"\"}}` | A whole. |\n"
    );
    for forgotten in ["a: 1\n", "# A group.\nb:\n  # Inside.\n  c: 1\n  d: 1\n"] {
        assert!(
            table(forgotten).is_err_and(|error| error.to_string().ends_with("has no comment")),
            "{forgotten}"
        );
    }
    Ok(())
}
