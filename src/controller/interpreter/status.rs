//! The status of an interpreter. Pure.

use codeworkspace_api::condition::{self, Conditions, State};
use codeworkspace_api::{
    CodeInterpreter, CodeInterpreterStatus, SessionLanguage, WarmPoolStatus, labels, reason,
};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::validate::{Problem, Resolved};

/// What is known of an interpreter beside the object itself.
#[derive(Debug)]
pub struct World {
    /// Its pool, once that was looked at.
    pub pool: Option<WarmPoolStatus>,
    /// Sessions that have not ended.
    pub sessions: usize,
}

/// Computes the status.
pub fn compute(
    interpreter: &CodeInterpreter,
    resolved: &Result<Resolved, Problem>,
    world: &World,
    now: Timestamp,
) -> CodeInterpreterStatus {
    let former = interpreter
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    let mut conditions = Conditions::new(former, interpreter.metadata.generation, now);
    match resolved {
        Err(problem) => {
            conditions.set(
                condition::READY,
                State::False,
                problem.reason,
                problem.message.clone(),
            );
            conditions.set(
                condition::STALLED,
                State::True,
                problem.reason,
                problem.message.clone(),
            );
        }
        Ok(resolved) => of_pool(&mut conditions, resolved, world.pool.as_ref()),
    }
    let resolved = resolved.as_ref().ok();
    CodeInterpreterStatus {
        observed_generation: interpreter.metadata.generation,
        conditions: conditions.finish(),
        identifier: Some(interpreter.identifier()),
        template: resolved.map(|resolved| resolved.name.clone()),
        languages: resolved
            .map(|resolved| resolved.languages.clone())
            .unwrap_or_default(),
        warm_pool: world.pool.clone().filter(|_| resolved.is_some()),
        sessions: Some(i32::try_from(world.sessions).unwrap_or(i32::MAX)),
    }
}

/// Sessions can be opened as long as there are pods, or pods start.
fn of_pool(conditions: &mut Conditions, resolved: &Resolved, pool: Option<&WarmPoolStatus>) {
    let error = pool.and_then(|pool| pool.last_error.as_ref());
    let ready = pool.map_or(0, |pool| pool.ready);
    match error {
        Some(error) => {
            let message = format!("pods of RunnerTemplate {} do not start: {error}", resolved.name);
            conditions.set(
                condition::RECONCILING,
                State::True,
                reason::PODS_NOT_STARTING,
                message.clone(),
            );
            if ready == 0 {
                conditions.set(condition::READY, State::False, reason::PODS_NOT_STARTING, message);
                return;
            }
        }
        None if pool.is_none() => {
            let message = "its pods were not looked at yet";
            conditions.set(condition::RECONCILING, State::True, reason::PROGRESSING, message);
            conditions.set(condition::READY, State::Unknown, reason::PROGRESSING, message);
            return;
        }
        None => {}
    }
    let languages: Vec<&str> = resolved
        .languages
        .iter()
        .copied()
        .map(SessionLanguage::as_str)
        .collect();
    let message = format!(
        "sessions of RunnerTemplate {}: {}",
        resolved.name,
        languages.join(", ")
    );
    conditions.set(condition::READY, State::True, reason::READY, message);
}

/// Whether two statuses differ in numbers alone, which may wait a moment to be told.
pub fn differ_in_numbers_only(one: &CodeInterpreterStatus, other: &CodeInterpreterStatus) -> bool {
    let without = |status: &CodeInterpreterStatus| CodeInterpreterStatus {
        warm_pool: None,
        sessions: None,
        ..status.clone()
    };
    without(one) == without(other)
}

/// The label by which the pods of an interpreter's pool are known.
pub fn pool_label(resolved: &Resolved) -> String {
    labels::value(&resolved.name)
}

/// The object that carries a status to the API server, for that very object and no later one of the same name.
pub fn patch(interpreter: &CodeInterpreter, status: &CodeInterpreterStatus) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": format!("{}/{}", codeworkspace_api::GROUP, codeworkspace_api::VERSION),
        "kind": "CodeInterpreter",
        "metadata": {"name": interpreter.name_any(), "uid": interpreter.uid()},
        "status": status,
    })
}
