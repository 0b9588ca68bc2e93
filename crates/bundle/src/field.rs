use std::fmt;

/// One thing that is wrong in a manifest, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct FieldError {
    /// The path of the field below `spec`, as one would write it in a query: `code.sources[2].github.ref`.
    pub field: String,
    /// What is wrong and what to write instead; never holds a file's content.
    pub message: String,
}

impl FieldError {
    /// An error at a field.
    pub fn new(field: impl Into<String>, message: impl fmt::Display) -> Self {
        Self {
            field: field.into(),
            message: message.to_string(),
        }
    }

    /// The same error, seen from outside: its field stands in a file or in another workspace.
    pub(crate) fn within(self, place: impl fmt::Display) -> Self {
        Self {
            field: format!("{place}: {}", self.field),
            message: self.message,
        }
    }
}
