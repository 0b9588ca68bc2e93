//! Short forms of what stories write and read most.

use anyhow::Result;
use bytes::Bytes;
use codeworkspace_api::{CodeRun, CodeWorkspace};
use codeworkspace_bundle::{Bundle, Caps, Entry, FileTree};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use serde_json::{Value, json};

use super::kstatus;

/// A source that is one file.
pub fn inline(path: &str, content: &str) -> Value {
    json!({"inline": {"path": path, "content": content}})
}

/// A bundle of these files, made by this process, as sources without file modes give it.
pub fn bundle(files: &[(&str, &str)]) -> Result<Bundle> {
    let mut tree = FileTree::new();
    for (path, content) in files {
        let entry = Entry::from_contents(Bytes::copy_from_slice(content.as_bytes()));
        tree.insert(path.parse()?, entry)?;
    }
    Ok(Bundle::build(&tree, &Caps::default())?)
}

/// How a run ended, in the words of its status.
#[derive(Debug, PartialEq, Eq)]
pub struct End {
    pub outcome: &'static str,
    pub reason: &'static str,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
}

impl End {
    /// The body exited with 0.
    pub const SUCCEEDED: Self = Self {
        outcome: "Succeeded",
        reason: "Completed",
        exit_code: Some(0),
        signal: None,
    };
}

/// How a run ended.
pub fn end(run: &CodeRun) -> End {
    let status = run.status.clone().unwrap_or_default();
    End {
        outcome: status.outcome.map_or("none", codeworkspace_api::Outcome::as_str),
        reason: status
            .reason
            .map_or("none", codeworkspace_api::OutcomeReason::as_str),
        exit_code: status.exit_code,
        signal: status.signal,
    }
}

/// One condition of a workspace.
pub fn condition<'a>(workspace: &'a CodeWorkspace, type_: &str) -> Option<&'a Condition> {
    workspace
        .status
        .as_ref()?
        .conditions
        .iter()
        .find(|condition| condition.type_ == type_)
}

/// Reason and message of the first source that has an error.
pub fn source_error(workspace: &CodeWorkspace) -> Option<(&str, &str)> {
    let sources = &workspace.status.as_ref()?.sources;
    let error = sources.iter().find_map(|source| source.error.as_ref())?;
    Some((error.reason.as_str(), error.message.as_str()))
}

/// What the real kstatus library makes of one object.
pub fn verdict(object: &impl Serialize) -> Result<String> {
    let verdicts = kstatus(&[serde_json::to_string(object)?])?;
    Ok(verdicts.concat())
}
