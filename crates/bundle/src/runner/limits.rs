use serde_json::Value;

use crate::{
    field::FieldError,
    object::{Object, Shape, kind},
};

const SHAPE: Shape = Shape {
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

/// Above any machine's memory and anybody's patience, and small enough that no conversion of units overflows.
const LARGEST: u64 = 1_000_000_000_000;

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
    pub(super) fn read(block: &Object<'_>, issues: &mut Vec<FieldError>) -> Self {
        let Some(value) = block.get("limits") else {
            return Self::default();
        };
        let field = block.place("limits");
        let Some(limits) = Object::read(&field, value, &SHAPE, issues) else {
            return Self::default();
        };
        let mut read = |key: &str, unit: &str, parse: fn(&Value) -> Option<u64>| {
            let value = limits.get(key)?;
            let number = parse(value).filter(|number| (1..=LARGEST).contains(number));
            if number.is_none() {
                let found = match value {
                    Value::Number(number) => number.to_string(),
                    other => kind(other).to_owned(),
                };
                issues.push(FieldError::new(
                    limits.place(key),
                    format!("must be {unit}, not {found}"),
                ));
            }
            number
        };
        Self {
            memory_mb: read("memory_mb", "a whole number of MiB above 0", whole),
            timeout_ms: read("timeout_ms", "a whole number of milliseconds above 0", whole),
            cpu_ms: read("cpu_ms", "a whole number of milliseconds above 0", whole),
            milli_vcpus: read(
                "vcpus",
                "a number of processors above 0 with at most three decimals",
                thousandths,
            ),
            ephemeral_storage_mb: read("ephemeral_storage_mb", "a whole number of MiB above 0", whole),
        }
    }
}

fn whole(value: &Value) -> Option<u64> {
    value.as_u64()
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
