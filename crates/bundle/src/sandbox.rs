//! The `sandbox` block (AIP-36): the environment that commands run in. What it says is mapped onto the other blocks field by field;
//! what has no counterpart is recorded, or refused by name.
//!
//! Reading it touches no network, file or cluster (AIP-36, "No I/O at parse time").

mod environment;
mod lifecycle;
mod mounts;

use serde_json::Value;

pub use mounts::Mount;

use crate::{
    code::WorkspacePath,
    field::FieldError,
    form::{Form, Reference, block_file},
    network::read_egress,
    object::{Object, PASTED, Shape, kind},
    quote::Quoted,
    runner::Limits,
    secrets::Secrets,
};

pub(crate) const FIELD: &str = "sandbox";

/// The only provider: pods of this cluster.
pub const PROVIDER: &str = "kubernetes";
/// The error of a sandbox that stands elsewhere, where it can't be read (AIP-36, "Reference resolution").
pub const REF_UNRESOLVABLE: &str = "sandbox_ref_unresolvable";
/// The error of a command in a sandbox that runs none (AIP-36, "Conformance rules").
pub const READ_ONLY: &str = "sandbox_read_only";

const SHAPE: Shape = Shape {
    fields: &[
        "provider",
        "config",
        "limits",
        "env",
        "network",
        "mounts",
        "identity",
        "policy",
        "lifecycle",
        "read_only",
        "metadata",
        "schema",
        "id",
        "version",
        "inline",
        "ref",
        "file",
    ],
    hints: HINTS,
};

/// The fields of the block itself, which are also those of a file that holds one.
const BLOCK_SHAPE: Shape = Shape {
    fields: &[
        "provider",
        "config",
        "limits",
        "env",
        "network",
        "mounts",
        "identity",
        "policy",
        "lifecycle",
        "read_only",
        "metadata",
        "schema",
        "id",
        "version",
    ],
    hints: HINTS,
};

const HINTS: &[(&str, &str)] = &[
    ("kind", PASTED),
    ("name", PASTED),
    ("readOnly", "did you mean `read_only`?"),
    (
        "image",
        "a RunnerTemplate is named in `runner.image`, beside `sandbox`",
    ),
    ("secrets", "they stand beside `sandbox`, not in it"),
    ("egress", "it belongs into `network`"),
    ("timeout_ms", "it belongs into `limits`"),
    ("memory_mb", "it belongs into `limits`"),
    ("cpu_ms", "it belongs into `limits`"),
];

const LIMITS: Shape = Shape {
    fields: &["memory_mb", "timeout_ms", "cpu_ms"],
    hints: &[
        ("vcpus", "it belongs into `runner.limits`"),
        ("ephemeral_storage_mb", "it belongs into `runner.limits`"),
    ],
};

const NETWORK: Shape = Shape {
    fields: &["egress"],
    hints: &[("ingress", "nothing can be reached from outside")],
};

/// A `sandbox` block in one of its forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxDefinition {
    /// The fields, whether directly or below `inline`.
    Block(Box<Sandbox>),
    /// A file that holds the block, relative to the folder of the manifest that names it.
    File(WorkspacePath),
}

/// What a `sandbox` block asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Caps on each command. Those of the runner are lowered to them.
    pub limits: Limits,
    /// Hosts that are added to `network.egress`.
    pub egress: Vec<String>,
    /// Variables from `env.auth.state.env`, each bound to the secret of its name.
    pub secrets: Secrets,
    /// Variables from `env.passthrough`, which a runner template has to list.
    pub passthrough: Vec<String>,
    /// Where the workspace's own storage is mounted.
    pub mounts: Vec<Mount>,
    /// Milliseconds without a call after which a session ends.
    pub idle_timeout_ms: Option<u64>,
    /// No command runs in it: there is a bundle and a status, and the error is [`READ_ONLY`].
    pub read_only: bool,
    /// What is accepted without effect.
    pub warnings: Vec<String>,
}

/// Reads a `sandbox` block, and finds every fault in it.
pub fn define_sandbox(block: &Value) -> Result<SandboxDefinition, Vec<FieldError>> {
    let mut issues = Vec::new();
    let Some(object) = Object::read(FIELD, block, &SHAPE, &mut issues) else {
        return Err(issues);
    };
    let inline = object.place("inline");
    let definition = match Form::of(FIELD, &object, &SHAPE, &mut issues) {
        Some(Form::Direct) => Some(SandboxDefinition::Block(Box::new(Sandbox::read(
            &object,
            &mut issues,
        )))),
        Some(Form::Inline) => object
            .get("inline")
            .and_then(|value| Object::read(&inline, value, &BLOCK_SHAPE, &mut issues))
            .map(|block| SandboxDefinition::Block(Box::new(Sandbox::read(&block, &mut issues)))),
        Some(Form::Ref) => object
            .string("ref", &mut issues)
            .and_then(|text| read_ref(&object.place("ref"), text, &mut issues)),
        Some(Form::File) => object
            .string("file", &mut issues)
            .and_then(|text| block_file(&object.place("file"), text, &mut issues))
            .map(SandboxDefinition::File),
        None => None,
    };
    match definition {
        Some(definition) if issues.is_empty() => Ok(definition),
        _ => Err(issues),
    }
}

/// Reads the block of a file.
pub(crate) fn define_sandbox_at(field: &str, block: &Value) -> Result<Sandbox, Vec<FieldError>> {
    let mut issues = Vec::new();
    let sandbox = Object::read(field, block, &BLOCK_SHAPE, &mut issues)
        .map(|object| Sandbox::read(&object, &mut issues));
    match sandbox {
        Some(sandbox) if issues.is_empty() => Ok(sandbox),
        _ => Err(issues),
    }
}

fn read_ref(field: &str, text: &str, issues: &mut Vec<FieldError>) -> Option<SandboxDefinition> {
    if let Reference::File(_) = Reference::of(text) {
        return block_file(field, text, issues).map(SandboxDefinition::File);
    }
    let message = format!(
        "{REF_UNRESOLVABLE}: {} names no file below the manifest's own folder, and there is no registry of sandboxes here: write the \
         block itself, or `{{file: ./SANDBOX.md}}`",
        Quoted(text)
    );
    issues.push(FieldError::new(field, message));
    None
}

impl Sandbox {
    fn read(object: &Object<'_>, issues: &mut Vec<FieldError>) -> Self {
        read_provider(object, issues);
        let (secrets, passthrough) = environment::read(object, issues);
        let mut warnings = Vec::new();
        let idle_timeout_ms = lifecycle::read(object, issues, &mut warnings);
        for recorded in ["identity", "policy"] {
            if object.get(recorded).is_some() {
                warnings.push(format!(
                    "{} is recorded and not enforced by this operator",
                    object.place(recorded)
                ));
            }
        }
        Self {
            limits: Limits::read_fields(object, &LIMITS, issues),
            egress: read_network(object, issues),
            secrets,
            passthrough,
            mounts: mounts::read(object, issues),
            idle_timeout_ms,
            read_only: object.boolean("read_only", issues).unwrap_or_default(),
            warnings,
        }
    }
}

/// A provider that is not there must be refused and never replaced by another (AIP-36, "Security considerations").
fn read_provider(object: &Object<'_>, issues: &mut Vec<FieldError>) {
    for required in ["provider", "config"] {
        object.require(required, issues);
    }
    if let Some(provider) = object.string("provider", issues)
        && provider != PROVIDER
    {
        let message = format!(
            "{} is no provider of this cluster; the only one is `{PROVIDER}`, which needs an empty `config`",
            Quoted(provider)
        );
        issues.push(FieldError::new(object.place("provider"), message));
        // The fields of its configuration are its own.
        return;
    }
    let field = object.place("config");
    match object.get("config") {
        Some(Value::Object(config)) if !config.is_empty() => {
            let message = format!(
                "must be empty: provider `{PROVIDER}` takes no configuration, and credentials never stand in a manifest"
            );
            issues.push(FieldError::new(field, message));
        }
        Some(Value::Object(_)) | None => {}
        Some(other) => {
            issues.push(FieldError::new(
                field,
                format!("must be an empty object, not {}", kind(other)),
            ));
        }
    }
}

fn read_network(object: &Object<'_>, issues: &mut Vec<FieldError>) -> Vec<String> {
    let Some(value) = object.get("network") else {
        return Vec::new();
    };
    let field = object.place("network");
    Object::read(&field, value, &NETWORK, issues)
        .map(|network| read_egress(&network, issues))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
