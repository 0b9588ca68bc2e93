use serde_json::Value;

use crate::{
    field::FieldError,
    object::{Object, Shape},
};

pub(crate) const SHAPE: Shape = Shape {
    fields: &[
        "memory_mb",
        "timeout_ms",
        "cpu_ms",
        "vcpus",
        "ephemeral_storage_mb",
    ],
    hints: &[
        ("timeout_s", "write milliseconds in `timeout_ms`"),
        ("timeout_seconds", "write milliseconds in `timeout_ms`"),
        (
            "cpu",
            "write the number of cores in `vcpus`, or milliseconds of CPU time in `cpu_ms`",
        ),
        ("cpus", "did you mean `vcpus`?"),
        ("storage", "did you mean `ephemeral_storage_mb`?"),
        ("disk", "did you mean `ephemeral_storage_mb`?"),
    ],
};

/// What a body may use (AIP-17, `runner.limits`); `vcpus` and `ephemeral_storage_mb` are fields that the specification
/// leaves to hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Memory in MiB.
    pub memory_mb: Option<u64>,
    /// Time from start to end in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Time on a processor in milliseconds.
    pub cpu_ms: Option<u64>,
    /// Processors, in thousandths: 500 for `vcpus: 0.5`.
    pub milli_vcpus: Option<u64>,
    /// Writable disk space in MiB.
    pub ephemeral_storage_mb: Option<u64>,
}

impl Limits {
    /// Reads `limits` of a `runner` block.
    pub(crate) fn read(block: &Object<'_>, issues: &mut Vec<FieldError>) -> Self {
        Self::read_fields(block, &SHAPE, issues)
    }

    /// The same where a block allows only some of the fields.
    pub(crate) fn read_fields(block: &Object<'_>, shape: &Shape, issues: &mut Vec<FieldError>) -> Self {
        let Some(value) = block.get("limits") else {
            return Self::default();
        };
        let field = block.place("limits");
        let Some(limits) = Object::read(&field, value, shape, issues) else {
            return Self::default();
        };
        Self {
            memory_mb: limits.count("memory_mb", "MiB", issues),
            timeout_ms: limits.count("timeout_ms", "milliseconds", issues),
            cpu_ms: limits.count("cpu_ms", "milliseconds", issues),
            milli_vcpus: limits.number(
                "vcpus",
                "a number of processors above 0 with at most three decimals",
                issues,
                thousandths,
            ),
            ephemeral_storage_mb: limits.count("ephemeral_storage_mb", "MiB", issues),
        }
    }
}

/// Digit by digit, since a fraction like 0.1 has no exact value in binary.
fn thousandths(value: &Value) -> Option<u64> {
    let text = value.as_number()?.to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let decimals: u64 = format!("{decimals:0<3}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000)?
        .checked_add(decimals)
}
