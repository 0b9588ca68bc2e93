//! Opens, finds, lists and stops sessions. It knows objects and pods, and no wire protocol.

use std::sync::Arc;

use codeworkspace_api::{
    CodeInterpreter, CodeSession, CodeSessionSpec, InterpreterReference, SessionState, condition, labels,
};
use codeworkspace_source::Clock;
use jiff::Timestamp;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::reflector::{ObjectRef, Store};
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

/// Sessions of all tenants.
#[derive(Clone)]
pub struct Sessions {
    client: Client,
    claims: Claims,
    index: Arc<Index>,
    interpreters: Store<Readable<CodeInterpreter>>,
    objects: Store<Readable<CodeSession>>,
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
}

impl Session {
    /// The error for whoever wants to use a session that has ended.
    pub fn not_active(&self) -> SessionsError {
        SessionsError::NotActive {
            id: self.object.name_any(),
            reason: end_of(&self.object).unwrap_or_else(|| "Terminated".to_owned()),
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
        let pod = self.pod_of(tenant, &object).await?;
        Ok(Session {
            object,
            interpreter,
            pod,
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
        let mut sessions: Vec<_> = state
            .iter()
            .filter_map(|object| object.0.as_ref().ok())
            .filter(|object| object.namespace().as_deref() == Some(tenant))
            .filter(|object| object.spec.interpreter_ref.name == interpreter)
            .cloned()
            .collect();
        sessions.sort_by_key(|session| (std::cmp::Reverse(created_at(session)), session.name_any()));
        Ok(sessions)
    }

    /// Ends a session. True when this very call, by its token, has ended it or has done so before.
    pub async fn stop(&self, session: &Session, client_token: &str) -> Result<bool, SessionsError> {
        let token = hexadecimal_digest(&[client_token.as_bytes()]);
        let stopped_by = session.object.annotations().get(labels::STOP_TOKEN);
        if session.object.spec.stop || session.pod.is_none() {
            return Ok(stopped_by == Some(&token));
        }
        let namespace = session.object.namespace().unwrap_or_default();
        let api: Api<CodeSession> = Api::namespaced(self.client.clone(), &namespace);
        let patch = json!({
            "metadata": {"annotations": {labels::STOP_TOKEN: token}},
            "spec": {"stop": true},
        });
        api.patch(
            &session.object.name_any(),
            &PatchParams::default(),
            &Patch::<Value>::Merge(patch),
        )
        .await?;
        Ok(true)
    }

    fn known(&self, tenant: &str, id: &str) -> Option<CodeSession> {
        let object = self.objects.get(&ObjectRef::new(id).within(tenant))?;
        object.0.as_ref().ok().cloned()
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
        Ok(found.filter(|pod| pod.usable && !self.is_over(session, pod)))
    }

    /// Whether the kubelet has ended the pod by now, or is about to.
    fn is_over(&self, session: &CodeSession, _pod: &SessionPod) -> bool {
        let expires = session
            .status
            .as_ref()
            .and_then(|status| status.expires_at.as_ref());
        expires.is_some_and(|expires| expires.0 <= self.clock.now())
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

/// Whether a session can still be used, as far as its object says.
pub fn is_open(session: &CodeSession) -> bool {
    end_of(session).is_none()
        && session
            .status
            .as_ref()
            .is_none_or(|status| status.state != Some(SessionState::Terminated))
}

fn timeout_of(interpreter: &CodeInterpreter, wanted: &NewSession) -> Result<i64, SessionsError> {
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

/// The pods that an interpreter's sessions get. Only its controller says which template that is: none is guessed here.
fn pool_of(interpreter: &CodeInterpreter, key: &InterpreterKey) -> Result<Pool, SessionsError> {
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
fn session_id(interpreter: &CodeInterpreter, client_token: &str) -> String {
    let uid = interpreter.uid().unwrap_or_default();
    // 128 bits; ids of AgentCore are at most 40 letters and digits.
    hexadecimal_digest(&[uid.as_bytes(), client_token.as_bytes()])
        .chars()
        .take(32)
        .collect()
}

fn parameters_digest(wanted: &NewSession, timeout_seconds: i64) -> String {
    let name = wanted.name.as_deref().unwrap_or_default();
    hexadecimal_digest(&[name.as_bytes(), timeout_seconds.to_string().as_bytes()])
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
