//! The legacy `runtime` block, which the `runner`, `secrets`, `network` and file blocks have replaced (AIP-17, "Legacy `runtime` block").

use serde_json::Value;

use crate::{
    field::FieldError,
    network::{Network, read_egress},
    object::{Object, PASTED, Shape},
    runner::{Engine, Limits, RunnerBlock},
    secrets::{Secrets, by_convention},
};

pub(crate) const FIELD: &str = "runtime";

const SHAPE: Shape = Shape {
    fields: &[
        "mode",
        "env",
        "fs",
        "network",
        "resources",
        "cpu_ms_max",
        "memory_mb_max",
        "timeout_ms",
    ],
    hints: &[
        ("kind", PASTED),
        ("name", PASTED),
        ("engine", "it belongs into `runner`, which has replaced `runtime`"),
        ("image", "it belongs into `runner`, which has replaced `runtime`"),
        ("needs", "it belongs into `runner`, which has replaced `runtime`"),
        ("limits", "it belongs into `runner`, which has replaced `runtime`"),
    ],
};

const RESOURCES: Shape = Shape {
    fields: &["memoryMb", "timeoutMs", "cpuMs"],
    hints: &[],
};

const FILES: Shape = Shape {
    fields: &["read", "write"],
    hints: &[],
};

const NETWORK: Shape = Shape {
    fields: &["egress"],
    hints: &[],
};

/// The old `sandbox` was a process on the host's own machine, which is what `subprocess` is called now.
const MODES: [(&str, Engine); 3] = [
    ("sandbox", Engine::Subprocess),
    ("subprocess", Engine::Subprocess),
    ("in-process", Engine::InProcess),
];

/// What a legacy block says, in today's blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// `mode` and the limits.
    pub runner: RunnerBlock,
    /// `env`, each name bound to the secret of its name.
    pub secrets: Secrets,
    /// `network.egress`.
    pub network: Network,
    /// `fs.read`: files that a run gets.
    pub reads: Vec<String>,
    /// `fs.write`: files that a run leaves.
    pub writes: Vec<String>,
    /// What to write instead.
    pub warnings: Vec<String>,
}

/// Reads a legacy `runtime` block, and finds every fault in it. The text requires hosts to accept it with a warning.
pub fn define_runtime(block: &Value) -> Result<Runtime, Vec<FieldError>> {
    let mut issues = Vec::new();
    let Some(object) = Object::read(FIELD, block, &SHAPE, &mut issues) else {
        return Err(issues);
    };
    let runner = RunnerBlock {
        field: FIELD.into(),
        engine: object.one_of("mode", &MODES, &mut issues),
        limits: read_limits(&object, &mut issues),
        ..RunnerBlock::default()
    };
    let names = object.strings("env", &mut issues, |_| None);
    let secrets = by_convention(&object.place("env"), &names, &mut issues);
    let egress = below(&object, "network", &NETWORK, &mut issues, |network, issues| {
        read_egress(network, issues)
    });
    let (reads, writes) = below(&object, "fs", &FILES, &mut issues, |files, issues| {
        let mut list = |key| files.strings(key, issues, |_| None);
        (list("read"), list("write"))
    });
    if !issues.is_empty() {
        return Err(issues);
    }
    let mut warnings = vec![format!(
        "{FIELD} is the form of an old draft: write `runner`, `secrets` and `network` instead"
    )];
    for (files, old, new) in [
        (&reads, "read", "inputsFiles"),
        (&writes, "write", "outputsFiles"),
    ] {
        if !files.is_empty() {
            warnings.push(format!(
                "{FIELD}.fs.{old} gives no keys for its files: list them in `{new}`, one by one"
            ));
        }
    }
    Ok(Runtime {
        runner,
        secrets,
        network: Network { egress },
        reads,
        writes,
        warnings,
    })
}

/// Both drafts' spellings; the smaller value if both are there.
fn read_limits(object: &Object<'_>, issues: &mut Vec<FieldError>) -> Limits {
    let flat = Limits {
        memory_mb: object.count("memory_mb_max", "MiB", issues),
        timeout_ms: object.count("timeout_ms", "milliseconds", issues),
        cpu_ms: object.count("cpu_ms_max", "milliseconds", issues),
        ..Limits::default()
    };
    let nested = below(object, "resources", &RESOURCES, issues, |resources, issues| {
        Limits {
            memory_mb: resources.count("memoryMb", "MiB", issues),
            timeout_ms: resources.count("timeoutMs", "milliseconds", issues),
            cpu_ms: resources.count("cpuMs", "milliseconds", issues),
            ..Limits::default()
        }
    });
    flat.lowered_to(nested)
}

/// Reads an object below a field; absent is the default.
fn below<T: Default>(
    object: &Object<'_>,
    key: &str,
    shape: &Shape,
    issues: &mut Vec<FieldError>,
    read: impl FnOnce(&Object<'_>, &mut Vec<FieldError>) -> T,
) -> T {
    let Some(value) = object.get(key) else {
        return T::default();
    };
    let field = object.place(key);
    match Object::read(&field, value, shape, issues) {
        Some(inner) => read(&inner, issues),
        None => T::default(),
    }
}

#[cfg(test)]
mod tests;
