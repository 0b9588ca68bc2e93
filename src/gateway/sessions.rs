//! Opens, finds, lists and stops sessions. It knows objects and pods, and no wire protocol.

mod wanted;
mod written;

use std::sync::Arc;
use std::time::Duration;

use codeworkspace_api::{
    CodeInterpreter, CodeSession, CodeSessionSpec, InterpreterReference, SessionReason, labels,
};
use codeworkspace_source::Clock;
use jiff::Timestamp;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::claim::{ClaimError, Claims, end_of};
use super::configuration::Limits;
use super::index::{Index, Pool, SessionPod};
use super::runner::RunnerError;
pub use super::sessions_error::SessionsError;
use super::watch::Watched;
use crate::controller::Readable;
use wanted::{parameters_digest, pool_of, session_id, timeout_of, was_looked_at};
use written::Written;

/// Sessions of all tenants.
#[derive(Clone)]
pub struct Sessions {
    client: Client,
    claims: Claims,
    index: Arc<Index>,
    interpreters: Store<Readable<CodeInterpreter>>,
    objects: Store<Readable<CodeSession>>,
    written: Written,
    clock: Arc<dyn Clock>,
    quota: usize,
}

/// What a caller asks of a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// The interpreter.
    pub interpreter: InterpreterKey,
    /// The caller's name for the session.
    pub name: Option<String>,
    /// Seconds that it may live; the interpreter's default when absent.
    pub timeout_seconds: Option<i64>,
    /// Makes repeated calls one.
    pub client_token: String,
    /// The user who asks, if the API server knows them.
    pub requested_by: Option<String>,
}

/// How a caller names an interpreter of its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterpreterKey {
    /// By its identifier of the AgentCore API.
    Identifier(String),
    /// By the name of its object.
    Name(String),
}

impl InterpreterKey {
    fn is_of(&self, object: &CodeInterpreter) -> bool {
        match self {
            Self::Identifier(identifier) => object.identifier() == *identifier,
            Self::Name(name) => object.metadata.name.as_ref() == Some(name),
        }
    }
}

impl std::fmt::Display for InterpreterKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Identifier(text) | Self::Name(text) => formatter.write_str(text),
        }
    }
}

/// A session with what one needs to talk about it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its object.
    pub object: CodeSession,
    /// Its interpreter's object.
    pub interpreter: Arc<CodeInterpreter>,
    /// Its pod, unless it has ended.
    pub pod: Option<SessionPod>,
    /// Its time is up, whether or not somebody has seen its end.
    pub expired: bool,
}

impl Session {
    /// The error for whoever wants to use a session that has ended.
    pub fn not_active(&self) -> SessionsError {
        SessionsError::NotActive {
            id: self.object.name_any(),
            reason: end_of(&self.object).unwrap_or_else(|| {
                let reason = if self.expired {
                    SessionReason::SessionTimeout.as_str()
                } else {
                    "Terminated"
                };
                reason.to_owned()
            }),
        }
    }
}

impl Sessions {
    /// Puts the parts together. The limits say how long a start waits for a pod, and how many sessions a tenant may have.
    pub fn new(client: Client, watched: &Watched, clock: Arc<dyn Clock>, limits: &Limits) -> Self {
        let index = watched.index.clone();
        Self {
            claims: Claims::new(
                client.clone(),
                index.clone(),
                clock.clone(),
                limits.start_patience(),
            ),
            interpreters: watched.interpreters.clone(),
            objects: watched.sessions.clone(),
            quota: limits.sessions_per_tenant,
            client,
            index,
            written: Written::default(),
            clock,
        }
    }

    /// An interpreter. One that the watch has not told of yet is asked for.
    pub async fn interpreter(
        &self,
        tenant: &str,
        key: &InterpreterKey,
    ) -> Result<Arc<CodeInterpreter>, SessionsError> {
        let known = self.interpreters.state().into_iter().find_map(|object| {
            let object = object.0.as_ref().ok()?;
            (object.namespace().as_deref() == Some(tenant) && key.is_of(object)).then(|| object.clone())
        });
        if let Some(object) = known {
            return Ok(Arc::new(object));
        }
        let api: Api<CodeInterpreter> = Api::namespaced(self.client.clone(), tenant);
        let found = match key {
            InterpreterKey::Name(name) => api.get_opt(name).await?,
            InterpreterKey::Identifier(_) => {
                let all = api.list(&kube::api::ListParams::default()).await?;
                all.items.into_iter().find(|object| key.is_of(object))
            }
        };
        found
            .map(Arc::new)
            .ok_or_else(|| SessionsError::InterpreterNotFound(key.to_string()))
    }

    /// Waits until the controller has looked at an interpreter that was just made: clients do not repeat a call for a conflict.
    async fn looked_at(
        &self,
        interpreter: Arc<CodeInterpreter>,
    ) -> Result<Arc<CodeInterpreter>, SessionsError> {
        /// What is not looked at in this time has no controller.
        const PATIENCE: Duration = Duration::from_secs(15);
        if was_looked_at(&interpreter) {
            return Ok(interpreter);
        }
        let namespace = interpreter.namespace().unwrap_or_default();
        let api: Api<CodeInterpreter> = Api::namespaced(self.client.clone(), &namespace);
        let name = interpreter.name_any();
        let looked_at = await_condition(api, &name, |object: Option<&CodeInterpreter>| {
            object.is_none_or(was_looked_at)
        });
        match tokio::time::timeout(PATIENCE, looked_at).await {
            Ok(Ok(Some(object))) => Ok(Arc::new(object)),
            Ok(Ok(None)) => Err(SessionsError::InterpreterNotFound(interpreter.identifier())),
            // That it was not looked at is told by whoever needs it.
            Ok(Err(_)) | Err(_) => Ok(interpreter),
        }
    }

    /// Every interpreter of a tenant, the youngest first.
    pub fn interpreters(&self, tenant: &str) -> Vec<CodeInterpreter> {
        let state = self.interpreters.state();
        let mut interpreters: Vec<_> = state
            .iter()
            .filter_map(|object| object.0.as_ref().ok())
            .filter(|object| object.namespace().as_deref() == Some(tenant))
            .cloned()
            .collect();
        interpreters.sort_by_key(|object| {
            let created = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (std::cmp::Reverse(created), object.name_any())
        });
        interpreters
    }

    /// Opens a session, or finds the one that the same call has opened before.
    pub async fn start(&self, tenant: &str, wanted: &NewSession) -> Result<Session, SessionsError> {
        let interpreter = self.interpreter(tenant, &wanted.interpreter).await?;
        let interpreter = self.looked_at(interpreter).await?;
        let timeout_seconds = timeout_of(&interpreter, wanted)?;
        let pool = pool_of(&interpreter, &wanted.interpreter)?;
        let id = session_id(&interpreter, &wanted.client_token);
        let parameters_digest = parameters_digest(wanted, timeout_seconds);
        let spec = CodeSessionSpec {
            interpreter_ref: InterpreterReference {
                name: interpreter.name_any(),
            },
            name: wanted.name.clone(),
            timeout_seconds,
            parameters_digest: parameters_digest.clone(),
            pod_name: None,
            stop: false,
        };
        let object = if let Some(object) = self.known(tenant, &id) {
            object
        } else {
            self.check_capacity(&interpreter, &wanted.interpreter)?;
            self.record(tenant, &id, spec, &pool, wanted.requested_by.as_deref())
                .await?
        };
        if object.spec.parameters_digest != parameters_digest {
            return Err(SessionsError::TokenReused);
        }
        let pod = match self.claims.claim(object.clone(), &pool).await {
            Ok(pod) => Some(pod),
            // The call is a repetition: what it started has ended since.
            Err(ClaimError::Ended(_)) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Session {
            object,
            interpreter,
            pod,
            expired: false,
        })
    }

    /// Makes a session's object, which names a free pod if there is one; or reads the one that another gateway has made meanwhile.
    async fn record(
        &self,
        tenant: &str,
        id: &str,
        spec: CodeSessionSpec,
        pool: &Pool,
        requested_by: Option<&str>,
    ) -> kube::Result<CodeSession> {
        let api: Api<CodeSession> = Api::namespaced(self.client.clone(), tenant);
        let candidate = self.claims.candidate(pool, id);
        let interpreter = labels::value(&spec.interpreter_ref.name);
        let new = CodeSession {
            metadata: ObjectMeta {
                name: Some(id.to_owned()),
                namespace: Some(tenant.to_owned()),
                labels: Some([(labels::INTERPRETER.to_owned(), interpreter)].into()),
                annotations: requested_by
                    .map(|user| [(labels::REQUESTED_BY.to_owned(), user.to_owned())].into()),
                ..ObjectMeta::default()
            },
            spec: CodeSessionSpec {
                pod_name: candidate.as_ref().map(|pod| pod.name.clone()),
                ..spec
            },
            status: None,
        };
        let created = api.create(&PostParams::default(), &new).await;
        if created.is_err()
            && let Some(pod) = &candidate
        {
            self.claims.give_back(pod);
        }
        match created {
            Err(kube::Error::Api(status)) if status.is_already_exists() => api.get(id).await,
            Ok(object) => {
                self.written.remember(object.clone(), self.clock.now());
                Ok(object)
            }
            other => other,
        }
    }

    /// The session of this id, also when it has ended, as long as its record is kept.
    pub async fn find(&self, tenant: &str, key: &InterpreterKey, id: &str) -> Result<Session, SessionsError> {
        let not_found = || SessionsError::NotActive {
            id: id.to_owned(),
            reason: "NotFound".to_owned(),
        };
        let interpreter = self.interpreter(tenant, key).await?;
        let object = match self.known(tenant, id) {
            Some(object) => object,
            None => Api::<CodeSession>::namespaced(self.client.clone(), tenant)
                .get_opt(id)
                .await?
                .ok_or_else(not_found)?,
        };
        if object.spec.interpreter_ref.name != interpreter.name_any() {
            return Err(not_found());
        }
        let expired = is_expired(&object, self.clock.now());
        let pod = if expired {
            None
        } else {
            self.pod_of(tenant, &object).await?
        };
        Ok(Session {
            object,
            interpreter,
            pod,
            expired,
        })
    }

    /// The session of this id with its pod, for a call that wants to use it.
    pub async fn active(
        &self,
        tenant: &str,
        key: &InterpreterKey,
        id: &str,
    ) -> Result<(Session, SessionPod), SessionsError> {
        let session = self.find(tenant, key, id).await?;
        match &session.pod {
            Some(pod) => {
                let pod = pod.clone();
                Ok((session, pod))
            }
            None => Err(session.not_active()),
        }
    }

    /// What is to be said of a session whose pod does not answer: that it has ended, if the API server knows that by now.
    pub async fn unreachable(
        &self,
        tenant: &str,
        key: &InterpreterKey,
        id: &str,
        error: &RunnerError,
    ) -> SessionsError {
        if let Err(ended) = self.active(tenant, key, id).await {
            return ended;
        }
        tracing::warn!(session = id, %error, "a session's pod does not answer");
        SessionsError::NoAnswer
    }

    /// Every session of an interpreter that has a record, the youngest first.
    pub async fn list(&self, tenant: &str, key: &InterpreterKey) -> Result<Vec<CodeSession>, SessionsError> {
        let interpreter = self.interpreter(tenant, key).await?.name_any();
        let state = self.objects.state();
        let watched = state.iter().filter_map(|object| object.0.as_ref().ok());
        let mut sessions = self.written.over_all(watched, |object| {
            object.namespace().as_deref() == Some(tenant) && object.spec.interpreter_ref.name == interpreter
        });
        sessions.sort_by_key(|session| (std::cmp::Reverse(created_at(session)), session.name_any()));
        Ok(sessions)
    }

    /// Whether a session can still be used, as far as its object says.
    pub fn is_open(&self, session: &CodeSession) -> bool {
        end_of(session).is_none() && !is_expired(session, self.clock.now())
    }

    /// Ends a session. True when this very call, by its token, has ended it or has done so before.
    pub async fn stop(&self, session: &Session, client_token: &str) -> Result<bool, SessionsError> {
        let token = hexadecimal_digest(&[client_token.as_bytes()]);
        let stopped_by = session.object.annotations().get(labels::STOP_TOKEN);
        if session.expired || end_of(&session.object).is_some() {
            return Ok(stopped_by == Some(&token));
        }
        let namespace = session.object.namespace().unwrap_or_default();
        let api: Api<CodeSession> = Api::namespaced(self.client.clone(), &namespace);
        let patch = json!({
            "metadata": {"annotations": {labels::STOP_TOKEN: token}},
            "spec": {"stop": true},
        });
        let stopped = api
            .patch(
                &session.object.name_any(),
                &PatchParams::default(),
                &Patch::<Value>::Merge(patch),
            )
            .await?;
        self.written.remember(stopped, self.clock.now());
        Ok(true)
    }

    fn known(&self, tenant: &str, id: &str) -> Option<CodeSession> {
        let watched = self.objects.get(&ObjectRef::new(id).within(tenant));
        let watched = watched.and_then(|object| object.0.as_ref().ok().cloned());
        self.written.over(tenant, id, watched)
    }

    async fn pod_of(&self, tenant: &str, session: &CodeSession) -> Result<Option<SessionPod>, SessionsError> {
        let id = session.name_any();
        if end_of(session).is_some() {
            return Ok(None);
        }
        let found = match self.index.of_session(tenant, &id) {
            Some(pod) => Some(pod),
            None => match &session.spec.pod_name {
                Some(name) => Api::namespaced(self.client.clone(), tenant)
                    .get_opt(name)
                    .await?
                    .as_ref()
                    .and_then(SessionPod::read)
                    .filter(|pod| pod.session.as_deref() == Some(id.as_str())),
                None => None,
            },
        };
        Ok(found.filter(|pod| pod.usable))
    }

    /// Whether there may be another session. The count lags a little behind the cluster: it holds back a caller that opens sessions
    /// without end, and is no exact number.
    fn check_capacity(
        &self,
        interpreter: &CodeInterpreter,
        key: &InterpreterKey,
    ) -> Result<(), SessionsError> {
        let (name, namespace) = (interpreter.name_any(), interpreter.namespace());
        let state = self.objects.state();
        let open: Vec<_> = state
            .iter()
            .filter_map(|object| object.0.as_ref().ok())
            .filter(|object| object.namespace() == namespace && end_of(object).is_none())
            .collect();
        if open.len() >= self.quota {
            return Err(SessionsError::QuotaReached { sessions: open.len() });
        }
        let of_interpreter = open
            .iter()
            .filter(|object| object.spec.interpreter_ref.name == name)
            .count();
        let capacity = interpreter
            .spec
            .capacity
            .and_then(|capacity| usize::try_from(capacity).ok());
        match capacity {
            Some(capacity) if of_interpreter >= capacity => Err(SessionsError::CapacityReached {
                identifier: key.to_string(),
                sessions: of_interpreter,
            }),
            _ => Ok(()),
        }
    }
}

/// When a session's object was made.
pub fn created_at(session: &CodeSession) -> Timestamp {
    session
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

/// Whether the session's time is up: the kubelet has ended its pod by now, or is about to.
fn is_expired(session: &CodeSession, now: Timestamp) -> bool {
    let expires = session
        .status
        .as_ref()
        .and_then(|status| status.expires_at.as_ref());
    expires.is_some_and(|expires| expires.0 <= now)
}

/// Hex SHA-256 over the parts, each with its length before it.
pub fn hexadecimal_digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    hexadecimal(&hash.finalize())
}

/// Bytes as lower-case hex digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
