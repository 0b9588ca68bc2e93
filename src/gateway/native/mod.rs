//! The native API: sessions over plain HTTP for users of the cluster, who prove themselves with a token of it. What the AgentCore API
//! cannot say is here: output while it is printed, cancelling, time limits, staged inputs, and files of any size.

mod access;
mod endpoints;
mod execution;
mod expiring;
mod files;
mod inputs;
mod mcp;
mod operation;
mod problem;
mod request;
mod session;
mod sse;
mod tasks;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts as _, Path, Request};
use axum::routing::get;
use codeworkspace_source::Clock;
use http::StatusCode;
use kube::Client;

use super::rates::{Rates, Usage};
use super::runner::{Runner, RunnerError};
use super::runners::Runners;
use super::sessions::{InterpreterKey, Session, Sessions};
use access::{Access, Caller, Right};
use endpoints::Endpoints;
use problem::Problem;

/// The service behind the API.
pub struct Native {
    access: Access,
    sessions: Sessions,
    runners: Runners,
    rates: Arc<Rates>,
    clock: Arc<dyn Clock>,
}

/// Where a call wants to do something, by whom. Whoever holds one was permitted to do what the endpoint is for.
#[derive(Clone, Debug)]
pub struct Place {
    caller: Arc<Caller>,
    namespace: String,
    interpreter: InterpreterKey,
    /// The session's id, as far as the path names one.
    session: Option<String>,
}

impl Place {
    /// The session of the path.
    fn session(&self) -> Result<&str, Problem> {
        self.session
            .as_deref()
            .ok_or_else(|| Problem::invalid("the path names no session"))
    }
}

impl Native {
    /// Puts the parts together.
    pub fn new(
        client: Client,
        sessions: Sessions,
        runners: Runners,
        rates: Arc<Rates>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            access: Access::new(client, clock.clone()),
            sessions,
            runners,
            rates,
            clock,
        }
    }

    /// Lets a request pass whose caller has the right, and leaves its [`Place`] with it.
    async fn admit(&self, right: Right, request: Request) -> Result<Request, Problem> {
        let (mut parts, body) = request.into_parts();
        let caller = self.access.caller(&parts.headers).await?;
        let Path(names) = Path::<HashMap<String, String>>::from_request_parts(&mut parts, &())
            .await
            .map_err(|error| Problem::invalid(error.body_text()))?;
        let name = |key: &str| names.get(key).map(String::as_str).unwrap_or_default();
        let (namespace, interpreter) = (name("namespace"), name("interpreter"));
        // Names that no object can have are never asked for: they would become parts of paths.
        if !is_name(namespace, 63) || !is_name(interpreter, 253) {
            let detail = format!("there is no interpreter {interpreter} in namespace {namespace}");
            return Err(Problem::new(StatusCode::NOT_FOUND, "InterpreterNotFound", detail));
        }
        let session = names.get("session").cloned();
        if let Some(id) = session.as_deref().filter(|id| !is_session_id(id)) {
            return Err(Problem::session_not_found(id));
        }
        self.access
            .check(&caller, right, namespace, session.as_deref())
            .await?;
        self.rates.check(namespace, Usage::Call, self.clock.now())?;
        parts.extensions.insert(Place {
            caller,
            namespace: namespace.to_owned(),
            interpreter: InterpreterKey::Name(interpreter.to_owned()),
            session,
        });
        Ok(Request::from_parts(parts, body))
    }

    /// The runner of a session that can be used.
    async fn runner(&self, place: &Place) -> Result<(Session, Runner), Problem> {
        let id = place.session()?;
        let (session, pod) = self
            .sessions
            .active(&place.namespace, &place.interpreter, id)
            .await?;
        match self.runners.of(id, &session.interpreter, &pod).await {
            Ok(runner) => Ok((session, runner)),
            Err(error) => Err(self.failure(place, error).await),
        }
    }

    /// What to say when a session's runner did not do something.
    async fn failure(&self, place: &Place, error: RunnerError) -> Problem {
        match error {
            RunnerError::Refused(error) => error.into(),
            RunnerError::Unreachable(_) | RunnerError::Garbled(_) => {
                let id = place.session.as_deref().unwrap_or_default();
                let told = self
                    .sessions
                    .unreachable(&place.namespace, &place.interpreter, id, &error);
                told.await.into()
            }
        }
    }
}

fn is_name(name: &str, longest: usize) -> bool {
    (1..=longest).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
}

fn is_session_id(id: &str) -> bool {
    (1..=40).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The API.
pub fn router(native: Native) -> Router {
    let native = Arc::new(native);
    Endpoints::all()
        .router()
        .merge(mcp::router(&native))
        .route("/openapi.json", get(endpoints::serve_openapi))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "NotFound", "there is no such path"))
        .method_not_allowed_fallback(async || {
            let detail = "this path does not know that method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", detail)
        })
        .with_state(native)
}
