//! Gives a session its pod. Two API writes in the good case: the session's object, which names the pod, and the pod itself.
//!
//! Whoever claims a pod for a session claims the one that stands in the session's object, and changes that one only with the object's
//! resource version as a condition. So two gateways that serve one client token, or one call that is repeated, can only ever
//! claim the same pod; and since a claimed pod is never free again, a session never gets two.

use std::sync::Arc;
use std::time::Duration;

use codeworkspace_api::{CodeSession, CodeSessionStatus, labels};
use codeworkspace_source::Clock;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::index::{Index, Pool, SessionPod};

/// How often a session may be offered a pod that turns out to be taken. With many gateways a few are to be expected.
const ATTEMPTS: u32 = 64;

/// Gives sessions their pods.
#[derive(Clone)]
pub struct Claims {
    client: Client,
    index: Arc<Index>,
    clock: Arc<dyn Clock>,
    /// How long a session waits for a pod that has to start.
    patience: Duration,
}

/// Why a session has no pod.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Nothing became free in time; a repeated call goes on waiting for the same session.
    #[error(
        "no pod became ready within {} s; the session still waits for one, so repeat the call with the same client token",
        .0.as_secs()
    )]
    NotYet(Duration),
    /// The session ended before it had a pod.
    #[error("the session has ended: {0}")]
    Ended(String),
    /// So many other sessions were faster that something must be wrong.
    #[error("{ATTEMPTS} pods were taken by other sessions before this one could have them; try again")]
    Crowded,
    /// The API server refused or could not be reached.
    #[error(transparent)]
    Api(#[from] kube::Error),
}

impl Claims {
    /// Puts the parts together.
    pub fn new(client: Client, index: Arc<Index>, clock: Arc<dyn Clock>, patience: Duration) -> Self {
        Self {
            client,
            index,
            clock,
            patience,
        }
    }

    /// A free pod to name in a new session's object, if there is one now. It has to be given back when the object is not made.
    pub fn candidate(&self, pool: &Pool, session: &str) -> Option<SessionPod> {
        self.index.take(pool, seed(session))
    }

    /// A pod that was not used after all.
    pub fn give_back(&self, pod: &SessionPod) {
        self.index.give_back(pod);
    }

    /// Claims the pod that the session's object names, or the next one when that is taken.
    pub async fn claim(&self, mut session: CodeSession, pool: &Pool) -> Result<SessionPod, ClaimError> {
        for _ in 0..ATTEMPTS {
            if let Some(end) = end_of(&session) {
                return Err(ClaimError::Ended(end));
            }
            if let Some(name) = &session.spec.pod_name
                && let Some(pod) = self.try_pod(&session, name).await?
            {
                return Ok(pod);
            }
            session = self.renominate(session, pool).await?;
        }
        Err(ClaimError::Crowded)
    }

    /// Claims one pod, unless somebody else has it or it is gone.
    async fn try_pod(&self, session: &CodeSession, name: &str) -> Result<Option<SessionPod>, ClaimError> {
        let namespace = session.namespace().unwrap_or_default();
        let id = session.name_any();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let known = match self.index.pod(&namespace, name) {
            Some(pod) => Some(pod),
            // This gateway's watch lags behind that of the one which named the pod.
            None => pods.get_opt(name).await?.as_ref().and_then(SessionPod::read),
        };
        let Some(pod) = known else {
            return Ok(None);
        };
        if pod.session.as_deref() == Some(id.as_str()) {
            return Ok(Some(pod));
        }
        let (Some(started), None, true) = (pod.started, &pod.session, pod.usable) else {
            return Ok(None);
        };
        let patch = claim_patch(&pod, session, started, self.clock.now());
        let patch: json_patch::Patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
        match pods
            .patch(name, &PatchParams::default(), &Patch::<Value>::Json(patch))
            .await
        {
            Ok(claimed) => {
                self.index.apply(&claimed);
                Ok(SessionPod::read(&claimed))
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => {
                // A test of the patch failed: it was claimed, perhaps by another gateway for this very session.
                let now = pods.get_opt(name).await?;
                if let Some(now) = &now {
                    self.index.apply(now);
                }
                let now = now.as_ref().and_then(SessionPod::read);
                Ok(now.filter(|now| now.session.as_deref() == Some(id.as_str())))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes another pod into the session's object, or reads who has done so.
    async fn renominate(&self, session: CodeSession, pool: &Pool) -> Result<CodeSession, ClaimError> {
        let namespace = session.namespace().unwrap_or_default();
        let sessions: Api<CodeSession> = Api::namespaced(self.client.clone(), &namespace);
        let name = session.name_any();
        let Some(pod) = self.wait_for(&sessions, &session, pool).await? else {
            // Another gateway named a pod meanwhile.
            return Ok(sessions.get(&name).await?);
        };
        let patch = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": session.resource_version()},
            {"op": "add", "path": "/spec/podName", "value": pod.name},
        ]);
        let patch: json_patch::Patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
        let patched = sessions
            .patch(&name, &PatchParams::default(), &Patch::<Value>::Json(patch))
            .await;
        match patched {
            Ok(session) => Ok(session),
            Err(kube::Error::Api(status)) if matches!(status.code, 409 | 422) => {
                self.index.give_back(&pod);
                Ok(sessions.get(&name).await?)
            }
            Err(error) => {
                self.index.give_back(&pod);
                Err(error.into())
            }
        }
    }

    /// Waits until a pod is free. None when the session's object changed meanwhile.
    async fn wait_for(
        &self,
        sessions: &Api<CodeSession>,
        session: &CodeSession,
        pool: &Pool,
    ) -> Result<Option<SessionPod>, ClaimError> {
        /// How often the object is read while nothing becomes free: it may be stopped, or given up.
        const LOOK: Duration = Duration::from_secs(2);
        let mut changes = self.index.changes();
        let waited = async {
            let mut look = tokio::time::interval(LOOK);
            look.tick().await;
            loop {
                changes.mark_unchanged();
                if let Some(pod) = self.index.take(pool, seed(&session.name_any())) {
                    return Ok(Some(pod));
                }
                tokio::select! {
                    _ = changes.changed() => {}
                    _ = look.tick() => {
                        let now = sessions.get(&session.name_any()).await?;
                        if let Some(end) = end_of(&now) {
                            return Err(ClaimError::Ended(end));
                        }
                        if now.spec.pod_name != session.spec.pod_name
                            || now.resource_version() != session.resource_version()
                        {
                            return Ok(None);
                        }
                    }
                }
            }
        };
        tokio::time::timeout(self.patience, waited)
            .await
            .unwrap_or(Err(ClaimError::NotYet(self.patience)))
    }
}

/// Why the session can have no pod any more.
pub fn end_of(session: &CodeSession) -> Option<String> {
    let ended = session.status.as_ref().filter(|status| status.has_ended());
    if let Some(status) = ended {
        return Some(reason(status));
    }
    if session.metadata.deletion_timestamp.is_some() || session.spec.stop {
        return Some("Stopped".to_owned());
    }
    None
}

fn reason(status: &CodeSessionStatus) -> String {
    status
        .reason
        .map_or_else(|| "Terminated".to_owned(), |reason| reason.as_str().to_owned())
}

/// The kubelet counts `activeDeadlineSeconds` from the pod's own start, so that the session's time comes on top of the pod's age.
fn claim_patch(pod: &SessionPod, session: &CodeSession, started: Timestamp, now: Timestamp) -> Value {
    let age = now.duration_since(started).as_secs().max(0);
    let pointer = |label: &str| format!("/metadata/labels/{}", label.replace('/', "~1"));
    json!([
        {"op": "test", "path": "/metadata/uid", "value": pod.uid},
        {"op": "test", "path": "/metadata/deletionTimestamp", "value": null},
        {"op": "test", "path": pointer(labels::STATE), "value": labels::STATE_WARM},
        {"op": "replace", "path": pointer(labels::STATE), "value": labels::STATE_CLAIMED},
        {"op": "add", "path": pointer(labels::SESSION), "value": session.name_any()},
        {"op": "add", "path": "/spec/activeDeadlineSeconds", "value": age + session.spec.timeout_seconds},
    ])
}

/// A number that follows from the session's name, which is itself a hash.
fn seed(session: &str) -> u64 {
    session.bytes().fold(0, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(u64::from(byte))
    })
}
