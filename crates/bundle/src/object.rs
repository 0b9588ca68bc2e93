//! Reading the JSON of a manifest's block field by field, so that every fault in it is found and named.

use std::{fmt::Display, str::FromStr};

use serde_json::{Map, Value};

use crate::{
    field::FieldError,
    near::nearest,
    quote::{Escaped, Listed, Quoted},
};

/// Faults of the same kind that are reported one by one: unknown fields of an object, wrong items of a list.
pub(crate) const MOST_FAULTS: usize = 16;

/// Above any machine's memory and anybody's patience, and small enough that no conversion of units overflows.
const LARGEST: u64 = 1_000_000_000_000;

/// Entries that a list of hosts, packages or names may have.
pub(crate) const MOST_ITEMS: usize = 256;

/// What to say about a list that is too long.
pub(crate) fn too_many(count: usize, most: usize) -> String {
    format!("has {count} entries; at most {most} are allowed")
}

/// For `kind` and `name` in a block: somebody pasted a whole manifest.
pub(crate) const PASTED: &str = "it belongs to the head of a whole manifest, of which only the blocks \
     (`code`, `run`, `runner`, `secrets`, `network`) stand under `spec`";

/// The fields that an object may have.
pub(crate) struct Shape {
    pub(crate) fields: &'static [&'static str],
    /// What to say about unknown fields that are likely for a reason.
    pub(crate) hints: &'static [(&'static str, &'static str)],
}

/// An object at a place in the manifest. What is wrong in it goes to a list of issues; a value that is read as `None`
/// is either absent or has its issue there.
pub(crate) struct Object<'a> {
    field: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    /// An object with no fields but those of its shape.
    pub(crate) fn read(
        field: &'a str,
        value: &'a Value,
        shape: &Shape,
        issues: &mut Vec<FieldError>,
    ) -> Option<Self> {
        let Value::Object(map) = value else {
            let message = format!(
                "must be an object ({}), not {}",
                Listed(shape.fields),
                kind(value)
            );
            issues.push(FieldError::new(field, message));
            return None;
        };
        let object = Self { field, map };
        for key in map
            .keys()
            .filter(|key| !shape.fields.contains(&key.as_str()))
            .take(MOST_FAULTS)
        {
            issues.push(FieldError::new(object.place(key), unknown(key, shape)));
        }
        Some(object)
    }

    /// The path of one of this object's fields.
    pub(crate) fn place(&self, key: &str) -> String {
        place(self.field, key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    pub(crate) fn string(&self, key: &str, issues: &mut Vec<FieldError>) -> Option<&'a str> {
        string(&self.place(key), self.get(key)?, issues)
    }

    pub(crate) fn boolean(&self, key: &str, issues: &mut Vec<FieldError>) -> Option<bool> {
        let value = self.get(key)?;
        if value.as_bool().is_none() {
            let message = format!("must be `true` or `false`, not {}", kind(value));
            issues.push(FieldError::new(self.place(key), message));
        }
        value.as_bool()
    }

    /// A whole number above 0.
    pub(crate) fn count(&self, key: &str, unit: &str, issues: &mut Vec<FieldError>) -> Option<u64> {
        self.number(
            key,
            &format!("a whole number of {unit} above 0"),
            issues,
            Value::as_u64,
        )
    }

    /// A number above 0 that `parse` makes something of; `wanted` says what it has to be.
    pub(crate) fn number(
        &self,
        key: &str,
        wanted: &str,
        issues: &mut Vec<FieldError>,
        parse: impl FnOnce(&Value) -> Option<u64>,
    ) -> Option<u64> {
        let value = self.get(key)?;
        let number = parse(value).filter(|number| (1..=LARGEST).contains(number));
        if number.is_none() {
            let found = match value {
                Value::Number(number) => number.to_string(),
                other => kind(other).to_owned(),
            };
            issues.push(FieldError::new(
                self.place(key),
                format!("must be {wanted}, not {found}"),
            ));
        }
        number
    }

    /// A field whose text is parsed into a value.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(
        &self,
        key: &str,
        issues: &mut Vec<FieldError>,
    ) -> Option<T> {
        let text = self.string(key, issues)?;
        text.parse()
            .map_err(|error: T::Err| issues.push(FieldError::new(self.place(key), error)))
            .ok()
    }

    /// A field that takes one of a few names.
    pub(crate) fn one_of<T: Copy>(
        &self,
        key: &str,
        names: &[(&str, T)],
        issues: &mut Vec<FieldError>,
    ) -> Option<T> {
        let text = self.string(key, issues)?;
        if let Some((_, value)) = names.iter().find(|(name, _)| *name == text) {
            return Some(*value);
        }
        let allowed: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let meant = nearest(text, allowed.iter().copied()).map(Quoted);
        let hint = meant.map_or_else(|| ".".to_owned(), |meant| format!(": did you mean {meant}?"));
        let message = format!("{} is unknown{hint} Allowed: {}", Quoted(text), Listed(&allowed));
        issues.push(FieldError::new(self.place(key), message));
        None
    }

    /// Reports a field that has to be there and is not.
    pub(crate) fn require(&self, key: &str, issues: &mut Vec<FieldError>) {
        if !self.map.contains_key(key) {
            issues.push(FieldError::new(self.place(key), "is missing"));
        }
    }

    /// A list of strings, each of which `check` finds nothing wrong with; absent is empty.
    pub(crate) fn strings(
        &self,
        key: &str,
        issues: &mut Vec<FieldError>,
        check: impl Fn(&str) -> Option<String>,
    ) -> Vec<String> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let field = self.place(key);
        match value.as_array().map_or(0, Vec::len) {
            0..=MOST_ITEMS => strings(&field, value, issues, check),
            count => {
                issues.push(FieldError::new(field, too_many(count, MOST_ITEMS)));
                Vec::new()
            }
        }
    }
}

/// The path of a field below another.
pub(crate) fn place(field: &str, key: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(is_plain) {
        format!("{field}.{}", Escaped(key))
    } else {
        format!("{field}[\"{}\"]", Escaped(key))
    }
}

pub(crate) fn string<'a>(field: &str, value: &'a Value, issues: &mut Vec<FieldError>) -> Option<&'a str> {
    let hint = match value {
        Value::String(text) => return Some(text),
        Value::Number(_) | Value::Bool(_) => format!(": write it in quotes, \"{value}\""),
        Value::Null => ": give it a value, or leave it out".to_owned(),
        Value::Array(_) | Value::Object(_) => String::new(),
    };
    issues.push(FieldError::new(
        field,
        format!("must be a string, not {}{hint}", kind(value)),
    ));
    None
}

/// A list of strings, each of which `check` finds nothing wrong with. Gives up after some faults, so that a list of
/// nothing else makes no flood of messages.
pub(crate) fn strings(
    field: &str,
    value: &Value,
    issues: &mut Vec<FieldError>,
    check: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let Value::Array(items) = value else {
        let message = format!("must be a list of strings, not {}", kind(value));
        issues.push(FieldError::new(field, message));
        return Vec::new();
    };
    let most = issues.len() + MOST_FAULTS;
    let mut texts = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let field = || format!("{field}[{index}]");
        match item {
            Value::String(text) => match check(text) {
                None => texts.push(text.clone()),
                Some(message) => issues.push(FieldError::new(field(), message)),
            },
            other => {
                string(&field(), other, issues);
            }
        }
        if issues.len() == most {
            break;
        }
    }
    texts
}

/// How to call a value in a message.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What to say about a field that its object does not have.
pub(crate) fn unknown(key: &str, shape: &Shape) -> String {
    let allowed = Listed(shape.fields);
    let reason = shape
        .hints
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, reason)| *reason);
    match (reason, nearest(key, shape.fields.iter().copied())) {
        (Some(reason), _) => format!("is unknown here: {reason}"),
        (None, Some(meant)) => format!(
            "is unknown here: did you mean {}? Allowed: {allowed}",
            Quoted(meant)
        ),
        (None, None) => format!("is unknown here. Allowed: {allowed}"),
    }
}
