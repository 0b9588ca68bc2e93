//! Sessions: start, get, list, stop.

use axum::response::Response;
use codeworkspace_agentcore::error::ServiceError;
use codeworkspace_agentcore::identifier::InterpreterIdentifier;
use codeworkspace_agentcore::shapes::{
    GetSessionRequest, GetSessionResponse, ListSessionsRequest, ListSessionsResponse, SessionId,
    SessionStatus, SessionSummary, StartSessionRequest, StartSessionResponse, StopSessionRequest,
    StopSessionResponse,
};
use codeworkspace_api::{CodeSession, DEFAULT_IDENTIFIER};
use http::StatusCode;
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::answer::{self, json};
use super::{AgentCore, Call, key};
use crate::gateway::defaults;
use crate::gateway::page::page;
use crate::gateway::sessions::{NewSession, SessionsError, created_at, hexadecimal};

impl AgentCore {
    pub(super) async fn start_session(
        &self,
        interpreter: &InterpreterIdentifier,
        call: Call,
    ) -> Result<Response, ServiceError> {
        let request = super::parse(call.body, StartSessionRequest::parse).await?;
        let wanted = NewSession {
            interpreter: key(interpreter),
            name: request.name,
            timeout_seconds: request.session_timeout_seconds.map(i64::from),
            client_token: match request.client_token {
                Some(token) => token.as_str().to_owned(),
                // Nobody can repeat such a call.
                None => random_token()?,
            },
            requested_by: None,
        };
        let started = match self.sessions.start(&call.tenant, &wanted).await {
            Err(SessionsError::InterpreterNotFound(identifier)) if identifier == DEFAULT_IDENTIFIER => {
                defaults::ensure(
                    &self.client,
                    &call.tenant,
                    &self.configuration.default_interpreter,
                )
                .await
                .map_err(|error| answer::of_api(&error))?;
                self.sessions.start(&call.tenant, &wanted).await
            }
            other => other,
        }?;
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
        json(
            StatusCode::OK,
            &StartSessionResponse {
                code_interpreter_identifier: interpreter.as_str().to_owned(),
                session_id: id_of(&started.object)?,
                created_at: created_at(&started.object),
            },
        )
    }

    /// A session that has no pod yet is neither of the two states that the API knows. It will be ready.
    fn is_waiting(&self, session: &CodeSession) -> bool {
        self.sessions.is_open(session) && session.spec.pod_name.is_none()
    }

    fn status_of(&self, session: &CodeSession) -> SessionStatus {
        if self.sessions.is_open(session) {
            SessionStatus::Ready
        } else {
            SessionStatus::Terminated
        }
    }

    pub(super) async fn get_session(
        &self,
        interpreter: &InterpreterIdentifier,
        call: &Call,
    ) -> Result<Response, ServiceError> {
        let request = GetSessionRequest::parse(call.query())?;
        let found = self
            .sessions
            .find(&call.tenant, &key(interpreter), request.session_id.as_str())
            .await?;
        let ready = found.pod.is_some() || self.is_waiting(&found.object);
        json(
            StatusCode::OK,
            &GetSessionResponse {
                code_interpreter_identifier: interpreter.as_str().to_owned(),
                session_id: request.session_id,
                name: found.object.spec.name.clone(),
                created_at: created_at(&found.object),
                session_timeout_seconds: u32::try_from(found.object.spec.timeout_seconds).unwrap_or_default(),
                status: if ready {
                    SessionStatus::Ready
                } else {
                    SessionStatus::Terminated
                },
            },
        )
    }

    pub(super) async fn list_sessions(
        &self,
        interpreter: &InterpreterIdentifier,
        call: Call,
    ) -> Result<Response, ServiceError> {
        let request = super::parse(call.body, ListSessionsRequest::parse).await?;
        let all = self.sessions.list(&call.tenant, &key(interpreter)).await?;
        let matching = all
            .into_iter()
            .filter(|session| {
                request
                    .status
                    .is_none_or(|status| status == self.status_of(session))
            })
            .collect();
        let (sessions, next_token) = page(
            matching,
            request.max_results,
            request.next_token.as_ref(),
            |session: &CodeSession| (created_at(session), session.name_any()),
        )?;
        let items = sessions
            .iter()
            .map(|session| {
                Ok(SessionSummary {
                    code_interpreter_identifier: interpreter.as_str().to_owned(),
                    session_id: id_of(session)?,
                    name: session.spec.name.clone(),
                    status: self.status_of(session),
                    created_at: created_at(session),
                    last_updated_at: Some(last_updated_at(session)),
                })
            })
            .collect::<Result<_, ServiceError>>()?;
        json(StatusCode::OK, &ListSessionsResponse { items, next_token })
    }

    pub(super) async fn stop_session(
        &self,
        interpreter: &InterpreterIdentifier,
        call: Call,
    ) -> Result<Response, ServiceError> {
        let query = call.query.clone();
        let request = super::parse(call.body, move |body| {
            StopSessionRequest::parse(codeworkspace_agentcore::query::Query::new(query.as_deref()), body)
        })
        .await?;
        let id = request.session_id.as_str();
        let found = self.sessions.find(&call.tenant, &key(interpreter), id).await?;
        let token = match request.client_token {
            Some(token) => token.as_str().to_owned(),
            None => random_token()?,
        };
        if !self.sessions.stop(&found, &token).await? {
            return Err(found.not_active().into());
        }
        json(
            StatusCode::OK,
            &StopSessionResponse {
                code_interpreter_identifier: interpreter.as_str().to_owned(),
                session_id: request.session_id,
                last_updated_at: self.clock.now(),
            },
        )
    }
}

fn last_updated_at(session: &CodeSession) -> Timestamp {
    let ended = session
        .status
        .as_ref()
        .and_then(|status| status.ended_at.as_ref());
    ended.map_or_else(|| created_at(session), |time| time.0)
}

fn id_of(session: &CodeSession) -> Result<SessionId, ServiceError> {
    session
        .name_any()
        .parse()
        .map_err(|_| ServiceError::InternalServer("the session's name is no session id".to_owned()))
}

pub(super) fn random_token() -> Result<String, ServiceError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| ServiceError::InternalServer(format!("no randomness: {error}")))?;
    Ok(hexadecimal(&random))
}
