//! What the gateway knows of sessions' pods: fed by a watch, asked by every call. No client, no clock.
//!
//! The index is a copy that may lag behind the cluster. Nothing is decided by it alone: a claim is settled by the API server, and
//! whoever is not found here is asked for there.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use codeworkspace_api::labels;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use tokio::sync::watch;

/// A namespace and the RunnerTemplate whose pods are meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    /// The namespace.
    pub namespace: String,
    /// Name of the template, as a label value.
    pub template: String,
}

/// What matters of one session pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPod {
    /// Its namespace and template.
    pub pool: Pool,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Where its runner listens; absent before the node says so.
    pub address: Option<IpAddr>,
    /// Digest of its public key; absent before it registered.
    pub key_digest: Option<String>,
    /// When the kubelet's clock for it began.
    pub started: Option<Timestamp>,
    /// The session that has it.
    pub session: Option<String>,
    /// Whether it can be used: ready, registered, and not on its way out.
    pub usable: bool,
}

impl SessionPod {
    /// Reads a pod; none when it is no session's.
    pub fn read(pod: &Pod) -> Option<Self> {
        let label = |key: &str| pod.labels().get(key).cloned();
        if label(labels::CLASS).as_deref() != Some(labels::CLASS_SESSION) {
            return None;
        }
        let status = pod.status.as_ref();
        let address = status
            .and_then(|status| status.pod_ip.as_deref())
            .and_then(|address| address.parse().ok());
        let key_digest = pod.annotations().get(labels::KEY_DIGEST).cloned();
        let ready = status
            .and_then(|status| status.conditions.as_ref())
            .is_some_and(|conditions| {
                conditions
                    .iter()
                    .any(|condition| condition.type_ == "Ready" && condition.status == "True")
            });
        let started = status
            .and_then(|status| status.start_time.as_ref())
            .map(|time| time.0);
        Some(Self {
            pool: Pool {
                namespace: pod.namespace()?,
                template: label(labels::TEMPLATE)?,
            },
            name: pod.name_any(),
            uid: pod.uid()?,
            session: label(labels::SESSION)
                .filter(|_| label(labels::STATE).as_deref() == Some(labels::STATE_CLAIMED)),
            usable: ready
                && address.is_some()
                && key_digest.is_some()
                && started.is_some()
                && pod.metadata.deletion_timestamp.is_none(),
            address,
            key_digest,
            started,
        })
    }

    fn is_free(&self) -> bool {
        self.usable && self.session.is_none()
    }
}

/// All session pods that the watch has told of.
#[derive(Debug)]
pub struct Index {
    known: Mutex<Known>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Known {
    /// By namespace and name.
    pods: HashMap<(String, String), SessionPod>,
    /// Names of free pods.
    free: HashMap<Pool, BTreeSet<String>>,
    /// Pods by namespace and session.
    sessions: HashMap<(String, String), String>,
    /// Uids of pods that somebody here is about to claim, or has found taken. The watch has not told of it yet.
    taken: HashSet<String>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Index {
    /// Takes over what the watch tells of one pod.
    pub fn apply(&self, pod: &Pod) {
        let Some(pod) = SessionPod::read(pod) else {
            return;
        };
        self.change(|known| {
            known.remove(&pod.pool.namespace, &pod.name);
            known.insert(pod);
        });
    }

    /// A pod is gone.
    pub fn delete(&self, pod: &Pod) {
        let namespace = pod.namespace().unwrap_or_default();
        self.change(|known| known.remove(&namespace, &pod.name_any()));
    }

    /// Everything was listed anew: what is not in the list is gone.
    pub fn replace<'a>(&self, pods: impl IntoIterator<Item = &'a Pod>) {
        self.change(|known| {
            let taken = std::mem::take(&mut known.taken);
            *known = Known {
                taken,
                ..Known::default()
            };
            for pod in pods.into_iter().filter_map(SessionPod::read) {
                known.insert(pod);
            }
            let uids: HashSet<_> = known.pods.values().map(|pod| pod.uid.clone()).collect();
            known.taken.retain(|uid| uids.contains(uid));
        });
    }

    /// A free pod that nobody else here is about to claim; it is kept from others until the watch tells what became of it, or
    /// until [`Index::give_back`]. Callers start at different pods (`seed`), so that gateways seldom want the same one.
    pub fn take(&self, pool: &Pool, seed: u64) -> Option<SessionPod> {
        let mut known = self.lock();
        let known = &mut *known;
        let free = known.free.get(pool)?;
        let candidates: Vec<_> = free
            .iter()
            .filter_map(|name| known.pods.get(&(pool.namespace.clone(), name.clone())))
            .filter(|pod| !known.taken.contains(&pod.uid))
            .collect();
        let count = u64::try_from(candidates.len()).ok().filter(|count| *count > 0)?;
        let chosen = usize::try_from(seed % count).ok()?;
        let pod = (*candidates.get(chosen)?).clone();
        known.taken.insert(pod.uid.clone());
        Some(pod)
    }

    /// A pod that was taken and not claimed is free again.
    pub fn give_back(&self, pod: &SessionPod) {
        self.change(|known| {
            known.taken.remove(&pod.uid);
        });
    }

    /// The pod of this name.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<SessionPod> {
        self.lock()
            .pods
            .get(&(namespace.to_owned(), name.to_owned()))
            .cloned()
    }

    /// The pod that a session has.
    pub fn of_session(&self, namespace: &str, session: &str) -> Option<SessionPod> {
        let known = self.lock();
        let name = known.sessions.get(&(namespace.to_owned(), session.to_owned()))?;
        known.pods.get(&(namespace.to_owned(), name.clone())).cloned()
    }

    /// Removes what is kept for pods (by uid) that are gone.
    pub fn retain_known<T>(&self, kept: &mut HashMap<String, T>) {
        let known = self.lock();
        let uids: HashSet<_> = known.pods.values().map(|pod| pod.uid.as_str()).collect();
        kept.retain(|uid, _| uids.contains(uid.as_str()));
    }

    /// Tells of each change from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.lock());
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn insert(&mut self, pod: SessionPod) {
        let key = (pod.pool.namespace.clone(), pod.name.clone());
        if pod.is_free() {
            self.free
                .entry(pod.pool.clone())
                .or_default()
                .insert(pod.name.clone());
        } else {
            // Whatever kept others from it here, the cluster knows by itself now.
            self.taken.remove(&pod.uid);
        }
        if let Some(session) = &pod.session {
            self.sessions
                .insert((pod.pool.namespace.clone(), session.clone()), pod.name.clone());
        }
        self.pods.insert(key, pod);
    }

    fn remove(&mut self, namespace: &str, name: &str) {
        let Some(pod) = self.pods.remove(&(namespace.to_owned(), name.to_owned())) else {
            return;
        };
        if let Some(free) = self.free.get_mut(&pod.pool) {
            free.remove(name);
            if free.is_empty() {
                self.free.remove(&pod.pool);
            }
        }
        if let Some(session) = pod.session {
            let key = (namespace.to_owned(), session);
            if self.sessions.get(&key).is_some_and(|pod| pod == name) {
                self.sessions.remove(&key);
            }
        }
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
