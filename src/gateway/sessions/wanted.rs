//! What follows from a wish for a session, before anything is written.

use codeworkspace_api::{CodeInterpreter, condition, labels};
use kube::ResourceExt as _;

use super::{InterpreterKey, NewSession, SessionsError, hexadecimal_digest};
use crate::gateway::index::Pool;

/// Seconds that the session may live.
pub(super) fn timeout_of(interpreter: &CodeInterpreter, wanted: &NewSession) -> Result<i64, SessionsError> {
    let limits = interpreter.spec.session_timeout_seconds;
    match wanted.timeout_seconds {
        Some(seconds) if seconds > limits.max => Err(SessionsError::TimeoutTooLong {
            wanted: seconds,
            max: limits.max,
            identifier: wanted.interpreter.to_string(),
        }),
        Some(seconds) => Ok(seconds),
        None => Ok(limits.default),
    }
}

/// Whether its controller has said which template it has, or why it has none.
pub(super) fn was_looked_at(interpreter: &CodeInterpreter) -> bool {
    let status = interpreter.status.as_ref();
    status.is_some_and(|status| status.template.is_some() || !status.conditions.is_empty())
}

/// The pods that an interpreter's sessions get. Only its controller says which template that is: none is guessed here.
pub(super) fn pool_of(interpreter: &CodeInterpreter, key: &InterpreterKey) -> Result<Pool, SessionsError> {
    let unavailable = |message: String| SessionsError::InterpreterUnavailable {
        identifier: key.to_string(),
        message,
    };
    let status = interpreter.status.as_ref();
    let stalled = status
        .into_iter()
        .flat_map(|status| &status.conditions)
        .find(|condition| condition.type_ == condition::STALLED && condition.status == "True");
    if let Some(stalled) = stalled {
        return Err(unavailable(stalled.message.clone()));
    }
    let template = status
        .and_then(|status| status.template.as_deref())
        .ok_or_else(|| unavailable("it has not been looked at yet; try again".to_owned()))?;
    Ok(Pool {
        namespace: interpreter.namespace().unwrap_or_default(),
        template: labels::value(template),
    })
}

/// Follows from the interpreter and the token alone, so that a repeated call finds its session in whichever gateway it arrives. The
/// interpreter's uid keeps a new one of the same name apart.
pub(super) fn session_id(interpreter: &CodeInterpreter, client_token: &str) -> String {
    let uid = interpreter.uid().unwrap_or_default();
    // 128 bits; ids of AgentCore are at most 40 letters and digits.
    hexadecimal_digest(&[uid.as_bytes(), client_token.as_bytes()])
        .chars()
        .take(32)
        .collect()
}

/// Of everything that was asked for: the same token with something else is noticed.
pub(super) fn parameters_digest(wanted: &NewSession, timeout_seconds: i64) -> String {
    let name = wanted.name.as_deref().unwrap_or_default();
    hexadecimal_digest(&[name.as_bytes(), timeout_seconds.to_string().as_bytes()])
}
