//! Strings and numbers with a pattern or a range.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use serde::Serialize;
use thiserror::Error;

use crate::validation::Faults;

/// A text that is no session's id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("must be a session's id: 1 to 40 letters and digits")]
pub struct SessionIdError;

/// The id of a session: `[0-9a-zA-Z]{1,40}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = SessionIdError;

    fn from_str(text: &str) -> Result<Self, SessionIdError> {
        let is_legal =
            (1..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_legal {
            Ok(Self(text.to_owned()))
        } else {
            Err(SessionIdError)
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A client's own name for one request, which makes its repetition harmless: 33 to 256 letters, digits and inner hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientToken(String);

impl ClientToken {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn checked(text: Option<&str>, faults: &mut Faults) -> Option<Self> {
        let text = text?;
        // The pattern is `[a-zA-Z0-9](-*[a-zA-Z0-9]){0,256}`: hyphens anywhere but at the ends.
        let is_legal = (33..=256).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !text.starts_with('-')
            && !text.ends_with('-');
        if !is_legal {
            faults.add(
                "clientToken",
                "must have 33 to 256 letters, digits and hyphens, and no hyphen at its ends",
            );
            return None;
        }
        Some(Self(text.to_owned()))
    }
}

/// Where a list goes on: 1 to 2,048 characters without space. What they mean is the server's own affair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct NextToken(String);

impl NextToken {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn checked(text: Option<&str>, faults: &mut Faults) -> Option<Self> {
        match text?.parse() {
            Ok(token) => Some(token),
            Err(message) => {
                faults.add("nextToken", message);
                None
            }
        }
    }
}

impl FromStr for NextToken {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_legal = (1..=2048).contains(&text.chars().count()) && !text.contains(char::is_whitespace);
        if is_legal {
            Ok(Self(text.to_owned()))
        } else {
            Err("must be the nextToken of an earlier answer: 1 to 2048 characters without space")
        }
    }
}

/// `value` or `default`, if it is in the range.
pub(super) fn number(
    name: &str,
    value: Option<i64>,
    range: RangeInclusive<u32>,
    default: u32,
    faults: &mut Faults,
) -> u32 {
    let Some(value) = value else {
        return default;
    };
    let legal = u32::try_from(value).ok().filter(|value| range.contains(value));
    if legal.is_none() {
        faults.add(name, &format!("must be {} to {}", range.start(), range.end()));
    }
    legal.unwrap_or(default)
}

/// A text whose length, in characters, is in the range.
pub(super) fn text(
    name: &str,
    value: Option<String>,
    range: RangeInclusive<usize>,
    faults: &mut Faults,
) -> Option<String> {
    let value = value?;
    if !range.contains(&value.chars().count()) {
        faults.add(
            name,
            &format!("must have {} to {} characters", range.start(), range.end()),
        );
        return None;
    }
    Some(value)
}

/// One of an enumeration's values.
pub(super) fn choice<T: Copy>(
    name: &str,
    value: Option<&str>,
    choices: &[(&str, T)],
    faults: &mut Faults,
) -> Option<T> {
    let value = value?;
    let found = choices.iter().find(|(choice, _)| *choice == value);
    if found.is_none() {
        let allowed: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
        faults.add(name, &format!("must be one of {}", allowed.join(", ")));
    }
    found.map(|(_, choice)| *choice)
}
