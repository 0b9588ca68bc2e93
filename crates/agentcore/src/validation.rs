//! `ValidationException`: what is wrong with a request, and with which of its members.

use serde::Serialize;
use thiserror::Error;

/// Characters of a message at most. The text of a JSON error repeats what it found, which may be a string of many megabytes.
const MAX_MESSAGE_CHARACTERS: usize = 512;

/// Members that one error tells of at most. A list of files can have any number of faults.
const MAX_FAULTS: usize = 20;

/// Why a request is not valid; the closed list of the service model, with its spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Reason {
    /// The body is not the JSON that the operation takes.
    CannotParse,
    /// A member has a value that is not allowed, or is missing.
    FieldValidationFailed,
    /// The client token was used before, with other parameters.
    IdempotentParameterMismatchException,
    /// The event belongs to another session.
    EventInOtherSession,
    /// The request conflicts with what there is.
    ResourceConflict,
}

/// What is wrong with one member of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldFault {
    /// The member's path: `sessionTimeoutSeconds`, `arguments.content[3].path`.
    pub name: String,
    /// What is allowed there.
    pub message: String,
}

/// A request that is not valid, as `ValidationException` tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Error)]
#[error("{message}")]
#[serde(rename_all = "camelCase")]
pub struct ValidationError {
    message: String,
    reason: Reason,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    field_list: Vec<FieldFault>,
}

impl ValidationError {
    /// For what is not about the value of one member.
    pub fn new(reason: Reason, message: &str) -> Self {
        Self {
            message: shortened(message),
            reason,
            field_list: Vec::new(),
        }
    }

    /// The member `name` has a value that is not allowed, or is missing.
    pub fn field(name: impl Into<String>, message: &str) -> Self {
        let mut faults = Faults::default();
        faults.add(name, message);
        faults.into_error()
    }

    /// The body of the request is longer than [`crate::MAX_BODY_BYTES`].
    pub fn body_too_long() -> Self {
        let message = format!(
            "the body of a request has at most {} bytes: write larger inputs in several calls",
            crate::MAX_BODY_BYTES
        );
        Self::new(Reason::FieldValidationFailed, &message)
    }

    /// The sentence for people; it names what [`Self::field_list`] has.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The reason for programs.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The members that are wrong, if it is about members.
    pub fn field_list(&self) -> &[FieldFault] {
        &self.field_list
    }
}

/// Collects what is wrong, so that a request with two faults is not corrected twice.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<FieldFault>);

impl Faults {
    pub(crate) fn add(&mut self, name: impl Into<String>, message: &str) {
        if self.0.len() < MAX_FAULTS {
            self.0.push(FieldFault {
                name: name.into(),
                message: shortened(message),
            });
        }
    }

    /// `value` if nothing was found.
    pub(crate) fn into_result<T>(self, value: T) -> Result<T, ValidationError> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self.into_error())
        }
    }

    pub(crate) fn into_error(self) -> ValidationError {
        let sentences: Vec<_> = self
            .0
            .iter()
            .map(|fault| format!("{}: {}", fault.name, fault.message))
            .collect();
        ValidationError {
            message: sentences.join("; "),
            reason: Reason::FieldValidationFailed,
            field_list: self.0,
        }
    }
}

/// The beginning of a text, with an ellipsis if that is not all.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_error_names_every_field() {
        let mut faults = Faults::default();
        faults.add("name", "must have 1 to 100 characters");
        faults.add("status", "must be READY or TERMINATED");
        let error = faults.into_error();
        assert_eq!(
            error.message(),
            "name: must have 1 to 100 characters; status: must be READY or TERMINATED"
        );
        assert_eq!(error.reason(), Reason::FieldValidationFailed);
        assert_eq!(error.field_list().len(), 2);
    }

    #[test]
    fn a_long_text_is_shortened_between_characters() {
        let error = ValidationError::field("code", &"é".repeat(100_000));
        assert_eq!(error.field_list()[0].message, format!("{}…", "é".repeat(512)));
        assert_eq!(error.message(), format!("code: {}…", "é".repeat(512)));
    }

    #[test]
    fn the_faults_of_a_long_list_are_bounded() {
        let mut faults = Faults::default();
        for index in 0..100_000 {
            faults.add(format!("arguments.content[{index}].path"), "is needed");
        }
        assert_eq!(faults.into_error().field_list().len(), 20);
    }
}
