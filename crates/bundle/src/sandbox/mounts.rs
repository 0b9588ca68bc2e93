use serde_json::Value;

use crate::{
    field::FieldError,
    object::{MOST_FAULTS, Object, Shape, kind},
    path::BundlePath,
    quote::Quoted,
};

const SHAPE: Shape = Shape {
    fields: &["source", "at", "mode"],
    hints: &[
        ("path", "did you mean `at`?"),
        ("target", "did you mean `at`?"),
        ("mountPath", "did you mean `at`?"),
        ("read_only", "write `mode: read-only`"),
        ("readOnly", "write `mode: read-only`"),
    ],
};

const MODES: [(&str, bool); 2] = [("read-write", false), ("read-only", true)];

/// The workspace's own storage at a place in the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The folder below `/`.
    pub at: BundlePath,
    /// Whether nothing can be written to it.
    pub read_only: bool,
}

pub(super) fn read(block: &Object<'_>, issues: &mut Vec<FieldError>) -> Vec<Mount> {
    let Some(value) = block.get("mounts") else {
        return Vec::new();
    };
    let field = block.place("mounts");
    let Value::Array(entries) = value else {
        let message = format!("must be a list of mounts, not {}", kind(value));
        issues.push(FieldError::new(field, message));
        return Vec::new();
    };
    let mut mounts: Vec<Mount> = Vec::new();
    let most = issues.len() + MOST_FAULTS;
    for (index, entry) in entries.iter().enumerate() {
        let field = format!("{field}[{index}]");
        if let Some(mount) = read_mount(&field, entry, issues) {
            if mounts.iter().any(|other| other.at == mount.at) {
                let message = format!("`/{}` has a mount already", mount.at);
                issues.push(FieldError::new(format!("{field}.at"), message));
            }
            mounts.push(mount);
        }
        if issues.len() >= most {
            break;
        }
    }
    mounts
}

fn read_mount(field: &str, entry: &Value, issues: &mut Vec<FieldError>) -> Option<Mount> {
    let object = Object::read(field, entry, &SHAPE, issues)?;
    for required in ["source", "at"] {
        object.require(required, issues);
    }
    if let Some(source) = object.get("source")
        && source.as_str() != Some("workspace")
    {
        let message = format!(
            "{} can't be mounted: the only source is `workspace`, the volume in `root.persistentVolumeClaim`",
            source_name(source)
        );
        issues.push(FieldError::new(object.place("source"), message));
    }
    let read_only = object.one_of("mode", &MODES, issues).unwrap_or_default();
    let at = object.string("at", issues).and_then(|text| {
        folder_below_root(text)
            .map_err(|message| issues.push(FieldError::new(object.place("at"), message)))
            .ok()
    })?;
    Some(Mount { at, read_only })
}

/// How to call a source in a message: by the storage that it names, and never by its configuration.
fn source_name(source: &Value) -> String {
    let named = |key: &str| {
        source[key]
            .as_str()
            .map(|name| format!("`{key}` {}", Quoted(name)))
    };
    match source {
        Value::String(name) => Quoted(name).to_string(),
        _ => named("ref")
            .or_else(|| named("file"))
            .or_else(|| {
                let provider = source["inline"]["provider"].as_str()?;
                Some(format!("a storage with provider {}", Quoted(provider)))
            })
            .unwrap_or_else(|| kind(source).to_owned()),
    }
}

fn folder_below_root(text: &str) -> Result<BundlePath, String> {
    let Some(below) = text.strip_prefix('/') else {
        return Err(format!("{} must begin with `/`", Quoted(text)));
    };
    let below = below.strip_suffix('/').unwrap_or(below);
    if below.is_empty() {
        return Err("`/` is the root of the container: write a folder below it, as in `/data`".to_owned());
    }
    below
        .parse()
        .map_err(|error: crate::path::PathError| format!("{} {}", Quoted(text), error.rule))
}
