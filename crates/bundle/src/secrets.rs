//! The `secrets` block of a manifest that runs code (AIP-19, "Consumer binding"): which environment variables a body gets, and where
//! their values come from. Values of secrets never stand here.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    field::FieldError,
    object::{MOST_FAULTS, Object, Shape, kind, place, strings, too_many},
    quote::Quoted,
};

pub(crate) const FIELD: &str = "secrets";

/// Variables that a body may get.
pub const MAX_SECRETS: usize = 64;

/// Shortest and longest slug in characters (AIP-19, `slug`).
const SLUG_LENGTH: std::ops::RangeInclusive<usize> = 2..=80;

const SHAPE: Shape = Shape {
    fields: &["vault", "oauth", "value"],
    hints: &[
        ("slug", "write the slug in `vault`"),
        ("secret", "write the slug of a secret in `vault`"),
        ("env", "the variable's name is the key of the entry"),
        ("name", "the variable's name is the key of the entry"),
        (
            "secretRef",
            "Secrets are named in a SecretInventory; write its slug in `vault`",
        ),
        (
            "token",
            "secrets never stand in a manifest: write a slug in `vault`",
        ),
        (
            "plaintext",
            "secrets never stand in a manifest: write a slug in `vault`",
        ),
    ],
};

/// The environment variables that a body gets beside its base environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Where the value of each variable comes from.
    pub bindings: BTreeMap<String, SecretSource>,
}

/// Where a variable's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// The entry of the namespace's inventory with this slug.
    Vault(String),
    /// A fresh access token of the namespace's connector with this driver.
    Oauth(String),
    /// A literal that is no secret.
    Value(String),
}

impl Secrets {
    /// Adds the variables that are not bound yet.
    pub(crate) fn add(&mut self, more: Self) {
        for (name, source) in more.bindings {
            self.bindings.entry(name).or_insert(source);
        }
    }
}

/// Reads a `secrets` block, and finds every fault in it.
///
/// Names of variables follow POSIX (`[A-Za-z_][A-Za-z0-9_]*`), which is wider than the AIP's schema; names that steer how a program
/// is started or what it may reach are refused.
pub fn define_secrets(block: &Value) -> Result<Secrets, Vec<FieldError>> {
    define_secrets_at(FIELD, block)
}

/// [`define_secrets`] for a block that stands elsewhere.
pub(crate) fn define_secrets_at(field: &str, block: &Value) -> Result<Secrets, Vec<FieldError>> {
    let Value::Object(map) = block else {
        let message = format!(
            "must be an object with the name of a variable for each key, as in `API_KEY: {{vault: api-key}}`, not {}",
            kind(block)
        );
        return Err(vec![FieldError::new(field, message)]);
    };
    if map.len() > MAX_SECRETS {
        return Err(vec![FieldError::new(field, too_many(map.len(), MAX_SECRETS))]);
    }
    let mut issues = Vec::new();
    let mut bindings = BTreeMap::new();
    for (name, entry) in map {
        let field = place(field, name);
        if let Some(message) = wrong_variable(name) {
            issues.push(FieldError::new(&field, message));
        }
        if let Some(source) = read_source(&field, entry, &mut issues) {
            bindings.insert(name.clone(), source);
        }
        if issues.len() >= MOST_FAULTS {
            break;
        }
    }
    if issues.is_empty() {
        Ok(Secrets { bindings })
    } else {
        Err(issues)
    }
}

fn read_source(field: &str, entry: &Value, issues: &mut Vec<FieldError>) -> Option<SecretSource> {
    let object = Object::read(field, entry, &SHAPE, issues)?;
    let given: Vec<&str> = SHAPE
        .fields
        .iter()
        .copied()
        .filter(|key| object.get(key).is_some())
        .collect();
    let [key] = given[..] else {
        let found = if given.is_empty() {
            "none".to_owned()
        } else {
            given.join(" and ")
        };
        let message = format!("must have exactly one of `vault`, `oauth` and `value`; has {found}");
        issues.push(FieldError::new(field, message));
        return None;
    };
    let text = object.string(key, issues)?;
    let (wrong, source) = match key {
        "vault" => (wrong_slug(text), SecretSource::Vault(text.to_owned())),
        "oauth" => (wrong_driver(text), SecretSource::Oauth(text.to_owned())),
        _ => (wrong_value(text), SecretSource::Value(text.to_owned())),
    };
    if let Some(message) = wrong {
        issues.push(FieldError::new(object.place(key), message));
        return None;
    }
    Some(source)
}

/// Why a text can't be the name of a variable that a manifest sets.
pub(crate) fn wrong_variable(name: &str) -> Option<String> {
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        return Some(format!(
            "{} is not the name of a variable: letters, digits and `_`, and no digit at its start",
            Quoted(name)
        ));
    }
    let is_reserved = name == "PATH"
        || name.starts_with("LD_")
        || name.starts_with("CODEWORKSPACE_")
        // Programs read the proxies' variables in both cases.
        || name.to_ascii_uppercase().ends_with("_PROXY");
    is_reserved.then(|| {
        format!(
            "{} is reserved: the operator sets `PATH`, `LD_*`, `*_PROXY` and `CODEWORKSPACE_*` itself",
            Quoted(name)
        )
    })
}

/// Why a text is no slug: `^([a-z][a-z0-9-]*[a-z0-9]/)?[a-z][a-z0-9-]*[a-z0-9]$`, 2 to 80 characters.
pub(crate) fn wrong_slug(text: &str) -> Option<String> {
    let is_word = |word: &str| {
        word.len() >= 2
            && word.starts_with(|first: char| first.is_ascii_lowercase())
            && !word.ends_with('-')
            && word
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    let is_slug = SLUG_LENGTH.contains(&text.len())
        && match text.split_once('/') {
            Some((namespace, name)) => is_word(namespace) && is_word(name),
            None => is_word(text),
        };
    (!is_slug).then(|| {
        format!(
            "{} is not a slug: 2 to 80 lower-case letters, digits and `-`, as in `stripe-api-key` or `billing/stripe-api-key`",
            Quoted(text)
        )
    })
}

fn wrong_driver(text: &str) -> Option<String> {
    let is_driver = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    (!is_driver).then(|| {
        format!(
            "{} is not the driver of a connector, as in `github`",
            Quoted(text)
        )
    })
}

fn wrong_value(text: &str) -> Option<String> {
    text.contains('\0')
        .then(|| "has a NUL character, which no environment can hold".to_owned())
}

/// The slug that a variable's name stands for by convention (AIP-19, "Migration from `runtime.env`").
pub(crate) fn slug_of(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

/// Variables that are given by name alone, each bound to the slug of its name.
pub(crate) fn by_convention(field: &str, names: &[String], issues: &mut Vec<FieldError>) -> Secrets {
    let mut bindings = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        let slug = slug_of(name);
        let wrong = wrong_variable(name).or_else(|| {
            wrong_slug(&slug)
                .map(|message| format!("stands for the secret `{slug}` by its name, but {message}"))
        });
        match wrong {
            Some(message) => issues.push(FieldError::new(format!("{field}[{index}]"), message)),
            None => {
                bindings.insert(name.clone(), SecretSource::Vault(slug));
            }
        }
    }
    Secrets { bindings }
}

/// The variables that an inventory stands for (AIP-19, "Bindings"): those that an entry's metadata names, or else the one of its slug.
pub(crate) fn read_inventory(field: &str, inventory: &Value) -> Result<Secrets, Vec<FieldError>> {
    let count = inventory.as_array().map_or(0, Vec::len);
    if count > MAX_SECRETS {
        return Err(vec![FieldError::new(field, too_many(count, MAX_SECRETS))]);
    }
    let mut issues = Vec::new();
    let mut bindings = BTreeMap::new();
    for (index, entry) in inventory.as_array().into_iter().flatten().enumerate() {
        let field = format!("{field}[{index}]");
        let Some(slug) = entry["slug"].as_str() else {
            issues.push(FieldError::new(field, "must be an object with a `slug`"));
            continue;
        };
        if let Some(message) = wrong_slug(slug) {
            issues.push(FieldError::new(place(&field, "slug"), message));
            continue;
        }
        let listed = &entry["metadata"]["bindings"]["env"];
        let names = if listed.is_null() {
            vec![variable_of(slug)]
        } else {
            strings(
                &format!("{field}.metadata.bindings.env"),
                listed,
                &mut issues,
                |_| None,
            )
        };
        for name in names {
            if let Some(message) = wrong_variable(&name) {
                issues.push(FieldError::new(&field, message));
            } else if let Some(SecretSource::Vault(other)) =
                bindings.insert(name.clone(), SecretSource::Vault(slug.to_owned()))
            {
                let message = format!(
                    "stands for the variable `{name}`, as `{other}` does: name their variables in `metadata.bindings.env`"
                );
                issues.push(FieldError::new(&field, message));
            }
        }
        if issues.len() >= MOST_FAULTS {
            break;
        }
    }
    if issues.is_empty() {
        Ok(Secrets { bindings })
    } else {
        Err(issues)
    }
}

/// The variable that a slug stands for by the same convention. A prefix sorts secrets and is no part of their names.
fn variable_of(slug: &str) -> String {
    let name = slug.rsplit('/').next().unwrap_or(slug);
    name.to_ascii_uppercase().replace('-', "_")
}

#[cfg(test)]
mod tests;
