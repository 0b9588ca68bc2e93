//! Why a session cannot be had.

use super::claim::ClaimError;

/// Why a session cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// The tenant has no such interpreter.
    #[error("code interpreter {0} not found")]
    InterpreterNotFound(String),
    /// The interpreter exists and refuses sessions.
    #[error("code interpreter {identifier} cannot open sessions: {message}")]
    InterpreterUnavailable {
        /// Its identifier.
        identifier: String,
        /// Why.
        message: String,
    },
    /// The tenant has no such session, or had it.
    #[error("session {id} is not active ({reason})")]
    NotActive {
        /// The session's id.
        id: String,
        /// Why it ended, or `NotFound`.
        reason: String,
    },
    /// The session's time limit is above the interpreter's.
    #[error("sessionTimeoutSeconds must be at most {max} for code interpreter {identifier}, not {wanted}")]
    TimeoutTooLong {
        /// What was asked for.
        wanted: i64,
        /// The interpreter's limit.
        max: i64,
        /// The interpreter.
        identifier: String,
    },
    /// The token was used for something else.
    #[error("clientToken was used before with other parameters: use a new token for a new session")]
    TokenReused,
    /// The interpreter has as many sessions as it may have.
    #[error("code interpreter {identifier} has {sessions} sessions, and may have no more: stop one first")]
    CapacityReached {
        /// Its identifier.
        identifier: String,
        /// Its sessions.
        sessions: usize,
    },
    /// The tenant has as many sessions as it may have.
    #[error("this tenant has {sessions} sessions, and may have no more: stop one first")]
    QuotaReached {
        /// Its sessions.
        sessions: usize,
    },
    /// The session's pod is there, as far as anybody knows, and does not answer.
    #[error("the session's pod did not answer; repeat the call")]
    NoAnswer,
    /// No pod yet.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The API server refused or could not be reached.
    #[error("the cluster's API server: {0}")]
    Api(#[from] kube::Error),
}
