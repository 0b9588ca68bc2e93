//! Sessions: open, get, list, stop.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use codeworkspace_agentcore::shapes::NextToken;
use codeworkspace_api::{CodeSession, SessionState, labels};
use codeworkspace_protocol::session::{SessionStatus, path};
use http::StatusCode;
use jiff::Timestamp;
use kube::ResourceExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Right;
use super::endpoints::{Endpoints, Method, sessions};
use super::operation::Operation;
use super::problem::Problem;
use super::request::{Asked, Body, CallKey};
use super::{Native, Place};
use crate::gateway::claim::end_of;
use crate::gateway::page::page;
use crate::gateway::rates::Usage;
use crate::gateway::sessions::{NewSession, created_at, hexadecimal_digest};

/// Sessions on one page when the caller does not say, and at most.
const PAGE: (u32, u32) = (100, 500);

/// What a new session shall be.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OpenSession {
    /// A name for people.
    #[schemars(length(min = 1, max = 100))]
    pub name: Option<String>,
    /// Seconds that the session may live, whatever it does; the interpreter's default when absent.
    #[schemars(range(min = 1, max = 28_800))]
    pub session_timeout_seconds: Option<i64>,
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Session")]
pub struct SessionView {
    /// Its id.
    pub id: String,
    /// Name of its CodeInterpreter.
    interpreter: String,
    /// The name that the caller gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Where it stands.
    state: SessionState,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// When it was opened.
    #[schemars(with = "String", extend("format" = "date-time"))]
    created_at: Timestamp,
    /// Seconds that it may live.
    session_timeout_seconds: i64,
    /// When its time is up; absent until that was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    expires_at: Option<Timestamp>,
    /// When it was seen to have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    ended_at: Option<Timestamp>,
    /// The user who opened it through this API.
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_by: Option<String>,
}

impl SessionView {
    fn new(object: &CodeSession, has_pod: bool, is_open: bool) -> Self {
        let status = object.status.as_ref();
        let state = match (has_pod, is_open) {
            (true, _) => SessionState::Ready,
            (false, true) if object.spec.pod_name.is_none() => SessionState::Pending,
            (false, _) => SessionState::Terminated,
        };
        Self {
            id: object.name_any(),
            interpreter: object.spec.interpreter_ref.name.clone(),
            name: object.spec.name.clone(),
            reason: (state == SessionState::Terminated)
                .then(|| end_of(object).unwrap_or_else(|| "Terminated".to_owned())),
            state,
            created_at: created_at(object),
            session_timeout_seconds: object.spec.timeout_seconds,
            expires_at: status.and_then(|status| Some(status.expires_at.as_ref()?.0)),
            ended_at: status.and_then(|status| Some(status.ended_at.as_ref()?.0)),
            requested_by: object.annotations().get(labels::REQUESTED_BY).cloned(),
        }
    }
}

/// A page of sessions, the youngest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Sessions")]
struct SessionsView {
    /// The sessions.
    items: Vec<SessionView>,
    /// Gives the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    max_results: Option<u32>,
    next_token: Option<String>,
}

/// The endpoints of this module.
pub fn endpoints(endpoints: Endpoints) -> Endpoints {
    let key = "Makes repeated calls of one user one: they all get the same session.";
    endpoints
        .on(
            Method::Post,
            sessions!(""),
            Operation::new("openSession", Right::Create, "Open a session")
                .describe("Returns once the session has its pod, whose kernels have started already.")
                .idempotent(key)
                .takes::<OpenSession>()
                .answers::<SessionView>(201, "The session."),
            open,
        )
        .on(
            Method::Get,
            sessions!(""),
            Operation::new("listSessions", Right::List, "List the sessions of an interpreter")
                .query(
                    "maxResults",
                    false,
                    "Sessions on one page: 1 to 500, 100 when absent.",
                )
                .query("nextToken", false, "The `nextToken` of an earlier answer.")
                .answers::<SessionsView>(200, "A page of sessions, also of those that ended within a day."),
            list,
        )
        .on(
            Method::Get,
            sessions!("/{session}"),
            Operation::new("getSession", Right::Get, "Get a session")
                .answers::<SessionView>(200, "The session, also when it ended within a day."),
            get,
        )
        .on(
            Method::Delete,
            sessions!("/{session}"),
            Operation::new("stopSession", Right::Delete, "Stop a session")
                .describe("Stopping a session that has ended changes nothing."),
            stop,
        )
        .on(
            Method::Get,
            sessions!("/{session}/status"),
            Operation::new("getStatus", Right::Get, "See whether a session is at work")
                .answers::<SessionStatus>(200, "What the session's pod tells of itself."),
            status,
        )
}

impl Native {
    /// Opens a session, or finds the one that the same user opened with the same key.
    pub async fn open(&self, place: &Place, key: &str, wanted: OpenSession) -> Result<SessionView, Problem> {
        if wanted.session_timeout_seconds.is_some_and(|seconds| seconds < 1) {
            return Err(Problem::invalid("sessionTimeoutSeconds must be at least 1"));
        }
        let is_name = |name: &String| (1..=100).contains(&name.chars().count());
        if wanted.name.as_ref().is_some_and(|name| !is_name(name)) {
            return Err(Problem::invalid("name must have 1 to 100 characters"));
        }
        self.rates
            .check(&place.namespace, Usage::Start, self.clock.now())?;
        let user = place.caller.name();
        let wanted = NewSession {
            interpreter: place.interpreter.clone(),
            name: wanted.name,
            timeout_seconds: wanted.session_timeout_seconds,
            // Two users who choose the same key mean two sessions.
            client_token: hexadecimal_digest(&[b"native", user.as_bytes(), key.as_bytes()]),
            requested_by: Some(user.to_owned()),
        };
        let started = self.sessions.start(&place.namespace, &wanted).await?;
        // The first call finds its way to the pod prepared.
        if let Some(pod) = started.pod.clone() {
            let (runners, interpreter) = (self.runners.clone(), started.interpreter.clone());
            let id = started.object.name_any();
            tokio::spawn(async move {
                if let Err(error) = runners.of(&id, &interpreter, &pod).await {
                    tracing::warn!(session = id, %error, "the session's pod cannot be bound yet");
                }
            });
        }
        let is_open = self.sessions.is_open(&started.object);
        Ok(SessionView::new(&started.object, started.pod.is_some(), is_open))
    }

    /// Ends a session.
    pub async fn stop(&self, place: &Place) -> Result<(), Problem> {
        let found = self
            .sessions
            .find(&place.namespace, &place.interpreter, place.session()?)
            .await?;
        // The answer says whether this very token ended it, which is no matter here.
        self.sessions.stop(&found, place.caller.name()).await?;
        Ok(())
    }
}

async fn open(
    State(native): State<Arc<Native>>,
    place: Place,
    CallKey(key): CallKey,
    Body(wanted): Body<OpenSession>,
) -> Result<(StatusCode, Json<SessionView>), Problem> {
    let session = native.open(&place, &key, wanted).await?;
    Ok((StatusCode::CREATED, Json(session)))
}

async fn get(State(native): State<Arc<Native>>, place: Place) -> Result<Json<SessionView>, Problem> {
    let found = native
        .sessions
        .find(&place.namespace, &place.interpreter, place.session()?)
        .await?;
    let is_open = native.sessions.is_open(&found.object);
    Ok(Json(SessionView::new(
        &found.object,
        found.pod.is_some(),
        is_open,
    )))
}

async fn list(
    State(native): State<Arc<Native>>,
    place: Place,
    Asked(query): Asked<ListQuery>,
) -> Result<Json<SessionsView>, Problem> {
    let length = query.max_results.unwrap_or(PAGE.0);
    if !(1..=PAGE.1).contains(&length) {
        return Err(Problem::invalid("maxResults must be 1 to 500"));
    }
    let wrong_token = || Problem::invalid("nextToken must be the nextToken of an earlier answer");
    let token = query
        .next_token
        .map(|token| token.parse::<NextToken>())
        .transpose()
        .map_err(|_| wrong_token())?;
    let all = native.sessions.list(&place.namespace, &place.interpreter).await?;
    let place_of = |session: &CodeSession| (created_at(session), session.name_any());
    let (sessions, next) = page(all, length, token.as_ref(), place_of).map_err(|_| wrong_token())?;
    let items = sessions
        .iter()
        .map(|session| {
            let is_open = native.sessions.is_open(session);
            SessionView::new(session, is_open && session.spec.pod_name.is_some(), is_open)
        })
        .collect();
    Ok(Json(SessionsView {
        items,
        next_token: next.map(|token| token.as_str().to_owned()),
    }))
}

async fn stop(State(native): State<Arc<Native>>, place: Place) -> Result<StatusCode, Problem> {
    native.stop(&place).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn status(State(native): State<Arc<Native>>, place: Place) -> Result<Json<SessionStatus>, Problem> {
    let (_, runner) = native.runner(&place).await?;
    match runner.get(path::STATUS, &[]).await {
        Ok(status) => Ok(Json(status)),
        Err(error) => Err(native.failure(&place, error).await),
    }
}
