//! Why the runner refused a call.

use serde::{Deserialize, Serialize};

/// The body of every answer that is no success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct SessionError {
    /// What kind of fault it is.
    pub code: ErrorCode,
    /// What, where and what to do, for people.
    pub message: String,
}

impl SessionError {
    /// Puts an error together.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// Kinds of faults, each with its HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ErrorCode {
    /// The request cannot be read, or an argument is wrong.
    InvalidRequest,
    /// A path leaves the session's root, or has no legal form.
    InvalidPath,
    /// No session was bound to this pod yet.
    NotBound,
    /// Another session is bound to this pod, or it is bound with other parameters.
    BoundToAnother,
    /// Too many calls wait already; see [`super::QUEUE_DEPTH`].
    QueueFull,
    /// The pod has no kernel of this name.
    UnknownKernel,
    /// There is no task of this id.
    UnknownTask,
    /// The task has ended, so that it cannot be stopped.
    TaskEnded,
    /// A file or folder does not exist.
    NotFound,
    /// A folder stands where a file is wanted, or the other way round.
    WrongKind,
    /// The session's volume or memory is full, or a file is too large.
    NoSpace,
    /// The interpreter permits no commands.
    CommandsDisabled,
    /// The invocation of this id was another call.
    InvocationMismatch,
    /// There is no call of this id to cancel.
    UnknownInvocation,
    /// The call of this id was made before, too long ago to tell what it came to; it is not made again.
    InvocationForgotten,
    /// The bundle's bytes are not those of its digest.
    DigestMismatch,
    /// The session is ending.
    Stopping,
    /// A fault of the runner or its node.
    Internal,
}

impl ErrorCode {
    /// The HTTP status of an answer with this code.
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidRequest | Self::InvalidPath | Self::DigestMismatch => 400,
            Self::CommandsDisabled => 403,
            Self::UnknownKernel | Self::UnknownTask | Self::UnknownInvocation | Self::NotFound => 404,
            Self::NotBound
            | Self::BoundToAnother
            | Self::TaskEnded
            | Self::WrongKind
            | Self::InvocationMismatch
            | Self::InvocationForgotten => 409,
            Self::Stopping => 410,
            Self::QueueFull => 429,
            Self::Internal => 500,
            Self::NoSpace => 507,
        }
    }
}
