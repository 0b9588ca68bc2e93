//! What is remembered of a namespace's pods between two looks, beside what the watch shows.
//!
//! A watch lags behind this operator's own writes. Without a memory of them, a look that comes too early would make pods again that
//! were made a moment ago. Pods have names of our choice, so that it is exactly known which are still to be seen. All of it may be
//! lost: a new process begins with a list of everything.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use codeworkspace_api::WarmPoolStatus;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use super::trouble::Trouble;
use crate::controller::watches::Change;

/// Time after which a write is taken for seen, whatever the watch shows: the object came and went while nobody watched.
const EXPIRY: SignedDuration = SignedDuration::from_mins(5);
/// How often the policies of a namespace are applied again.
const POLICIES: SignedDuration = SignedDuration::from_mins(10);

/// The memory of every namespace.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<String, Namespace>>);

#[derive(Debug, Default)]
struct Namespace {
    /// Pods that were made and not seen yet, by name.
    created: BTreeMap<String, Made>,
    /// Uids of pods whose deletion was not seen yet.
    deleted: HashMap<String, Timestamp>,
    /// Uids of pods whose failure was counted.
    blamed: HashSet<String>,
    /// Sessions that were deleted: their pods are left behind on purpose.
    departed: HashSet<String>,
    /// By pool.
    troubles: HashMap<String, Trouble>,
    /// By pool.
    reports: HashMap<String, WarmPoolStatus>,
    policies: Option<Timestamp>,
}

#[derive(Debug)]
struct Made {
    pool: String,
    at: Timestamp,
}

/// Writes that the watch has not shown yet. To be taken before the pods are listed: what is seen in between then stands in both, and
/// is counted once by its name.
#[derive(Debug, Default)]
pub struct Expected {
    /// Pods by name, and their pool.
    pub created: BTreeMap<String, String>,
    /// Uids.
    pub deleted: HashSet<String>,
}

impl Memory {
    fn of<T>(&self, namespace: &str, act: impl FnOnce(&mut Namespace) -> T) -> T {
        let mut namespaces = self.namespaces();
        act(namespaces.entry(namespace.to_owned()).or_default())
    }

    fn namespaces(&self) -> MutexGuard<'_, HashMap<String, Namespace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets everything of a namespace that has neither pods nor interpreters.
    pub fn forget(&self, namespace: &str) {
        self.namespaces().remove(namespace);
    }

    /// What the watch shows, once it is in the store.
    pub fn seen(&self, change: &Change<'_, Pod>) {
        let (Change::Of(pod) | Change::Gone(pod)) = change else {
            // A list may have been made before a pod was, so that it proves nothing about one that is not in it.
            return;
        };
        let uid = pod.uid().unwrap_or_default();
        let gone = matches!(change, Change::Gone(_));
        self.of(&pod.namespace().unwrap_or_default(), |namespace| {
            namespace.created.remove(&pod.name_any());
            if gone || pod.metadata.deletion_timestamp.is_some() {
                namespace.deleted.remove(&uid);
            }
            if gone {
                namespace.blamed.remove(&uid);
            }
        });
    }

    /// Notes that a session was deleted by somebody.
    pub fn departed(&self, namespace: &str, session: &str) {
        self.of(namespace, |namespace| {
            namespace.departed.insert(session.to_owned());
        });
    }

    /// Whether the session of a pod was deleted by somebody; asked once.
    pub fn has_departed(&self, namespace: &str, session: &str) -> bool {
        self.of(namespace, |namespace| namespace.departed.remove(session))
    }

    /// What is still to be seen.
    pub fn expected(&self, namespace: &str, now: Timestamp) -> Expected {
        let fresh = |at: &Timestamp| now.duration_since(*at) < EXPIRY;
        self.of(namespace, |namespace| {
            namespace.created.retain(|_, made| fresh(&made.at));
            namespace.deleted.retain(|_, at| fresh(at));
            Expected {
                created: namespace
                    .created
                    .iter()
                    .map(|(name, made)| (name.clone(), made.pool.clone()))
                    .collect(),
                deleted: namespace.deleted.keys().cloned().collect(),
            }
        })
    }

    /// Notes a pod before it is made: the watch may be faster than the answer.
    pub fn will_create(&self, namespace: &str, pool: &str, pod: &str, now: Timestamp) {
        let made = Made {
            pool: pool.to_owned(),
            at: now,
        };
        self.of(namespace, |namespace| {
            namespace.created.insert(pod.to_owned(), made);
        });
    }

    /// The pod was not made.
    pub fn not_created(&self, namespace: &str, pod: &str) {
        self.of(namespace, |namespace| {
            namespace.created.remove(pod);
        });
    }

    /// Notes a deletion before it is asked for.
    pub fn will_delete(&self, namespace: &str, uid: &str, now: Timestamp) {
        self.of(namespace, |namespace| {
            namespace.deleted.insert(uid.to_owned(), now);
        });
    }

    /// The pod was not deleted.
    pub fn not_deleted(&self, namespace: &str, uid: &str) {
        self.of(namespace, |namespace| {
            namespace.deleted.remove(uid);
        });
    }

    /// Whether the failure of a pod was not counted yet; it is from now on.
    pub fn blame(&self, namespace: &str, uid: &str) -> bool {
        self.of(namespace, |namespace| namespace.blamed.insert(uid.to_owned()))
    }

    /// What keeps the pods of a pool from starting.
    pub fn trouble(&self, namespace: &str, pool: &str) -> Option<Trouble> {
        self.of(namespace, |namespace| namespace.troubles.get(pool).cloned())
    }

    /// Notes what keeps them from starting.
    pub fn set_trouble(&self, namespace: &str, pool: &str, trouble: Option<Trouble>) {
        self.of(namespace, |namespace| match trouble {
            Some(trouble) => namespace.troubles.insert(pool.to_owned(), trouble),
            None => namespace.troubles.remove(pool),
        });
    }

    /// What the status of a pool's interpreters says of it.
    pub fn report(&self, namespace: &str, pool: &str) -> Option<WarmPoolStatus> {
        self.of(namespace, |namespace| namespace.reports.get(pool).cloned())
    }

    /// Notes it, and says whether it is news.
    pub fn set_report(&self, namespace: &str, pool: &str, report: &WarmPoolStatus) -> bool {
        self.of(namespace, |namespace| {
            let former = namespace.reports.insert(pool.to_owned(), report.clone());
            former.as_ref() != Some(report)
        })
    }

    /// Whether the policies of a namespace must be applied before a pod is made.
    pub fn policies_are_due(&self, namespace: &str, now: Timestamp) -> bool {
        self.of(namespace, |namespace| {
            namespace
                .policies
                .is_none_or(|at| now.duration_since(at) >= POLICIES)
        })
    }

    /// They were applied.
    pub fn policies_stand(&self, namespace: &str, now: Timestamp) {
        self.of(namespace, |namespace| namespace.policies = Some(now));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn pod(metadata: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    #[test]
    fn a_pod_that_was_made_is_expected_until_the_watch_shows_it() {
        let memory = Memory::default();
        memory.will_create("team-a", "python", "one", at(0));
        memory.will_create("team-a", "python", "two", at(0));
        memory.will_create("team-a", "python", "three", at(0));
        memory.not_created("team-a", "three");
        let one = pod(&json!({"namespace": "team-a", "name": "one", "uid": "1"}));
        memory.seen(&Change::Of(&one));
        let expected = memory.expected("team-a", at(299)).created;
        assert_eq!(
            expected.into_iter().collect::<Vec<_>>(),
            [("two".to_owned(), "python".to_owned())]
        );
        assert!(memory.expected("team-a", at(300)).created.is_empty());
        assert!(memory.expected("team-b", at(0)).created.is_empty());
    }

    #[test]
    fn a_deletion_is_expected_until_the_watch_shows_it() {
        let memory = Memory::default();
        for uid in ["1", "2", "3"] {
            memory.will_delete("team-a", uid, at(0));
        }
        let warm = pod(&json!({"namespace": "team-a", "name": "one", "uid": "1"}));
        memory.seen(&Change::Of(&warm));
        let going = json!({
            "namespace": "team-a", "name": "two", "uid": "2", "deletionTimestamp": "2026-01-01T00:00:00Z"
        });
        memory.seen(&Change::Of(&pod(&going)));
        let gone = pod(&json!({"namespace": "team-a", "name": "three", "uid": "3"}));
        memory.seen(&Change::Gone(&gone));
        assert_eq!(memory.expected("team-a", at(1)).deleted, ["1".to_owned()].into());
    }

    #[test]
    fn the_failure_of_a_pod_counts_once() {
        let memory = Memory::default();
        assert!(memory.blame("team-a", "1"));
        assert!(!memory.blame("team-a", "1"));
    }
}
