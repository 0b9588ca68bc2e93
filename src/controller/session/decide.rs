//! What a session needs next. Pure.

use codeworkspace_api::{CodeSession, SessionReason, labels};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use super::dereference::World;
use super::ending::{Ending, ending};

/// Time that a claim is given before status says that the session waits: most claims are over long before.
const CLAIM: SignedDuration = SignedDuration::from_secs(5);
/// Age of a session at which what the watches know of its interpreter is believed.
const SETTLED: SignedDuration = SignedDuration::from_secs(10);
/// Time after which the kubelet is not waited for any longer, its own grace and a slow node included.
const OVERDUE: SignedDuration = SignedDuration::from_mins(1);

/// What happens next.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// It has no pod. Status says so, unless it is only being claimed.
    Wait {
        /// What it waits for, if that shall be told.
        told: Option<String>,
        /// When to look again.
        until: Timestamp,
    },
    /// It has its pod.
    Live {
        /// The pod's uid.
        pod_uid: String,
        /// When the kubelet will end it.
        expires_at: Option<Timestamp>,
    },
    /// It has ended.
    End(Ending),
    /// It ended a while ago; its record stays until then.
    Keep(Timestamp),
    /// Its record is no longer kept.
    Forget,
    /// The pod that it had is not in view, and only the API server can say whether that means anything.
    Ask,
}

/// Limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the session's creation until its pod was claimed.
    pub start_budget: SignedDuration,
    /// From the end of a session until its record goes.
    pub record: SignedDuration,
}

/// Decides.
pub fn decide(session: &CodeSession, world: &World, limits: Limits, now: Timestamp) -> Step {
    if let Some(status) = session.status.as_ref().filter(|status| status.has_ended()) {
        let ended_at = status.ended_at.as_ref().map_or(now, |at| at.0);
        let until = after(ended_at, limits.record);
        return if until <= now {
            Step::Forget
        } else {
            Step::Keep(until)
        };
    }
    let pod = world.pod.as_deref().filter(|pod| is_claimed_by(pod, session));
    if let Some(pod) = pod {
        return with_pod(session, pod, now);
    }
    if session.spec.stop {
        return Step::End(stopped());
    }
    if session
        .status
        .as_ref()
        .is_some_and(|status| status.pod_uid.is_some())
    {
        return match world.asked {
            // The watch lags behind.
            Some(true) => Step::Wait {
                told: None,
                until: after(now, SignedDuration::from_secs(1)),
            },
            Some(false) => Step::End(Ending::new(
                SessionReason::PodDeleted,
                "the pod is gone, and how it ended was never seen",
            )),
            None => Step::Ask,
        };
    }
    without_pod(session, world, limits, now)
}

fn with_pod(session: &CodeSession, pod: &Pod, now: Timestamp) -> Step {
    let expires_at = expires_at(pod);
    match ending(pod) {
        // Whoever stopped it made the pod go.
        Some(ending) if session.spec.stop && ending.reason == SessionReason::PodDeleted => {
            Step::End(stopped())
        }
        Some(ending) => Step::End(ending),
        None if session.spec.stop => Step::End(stopped()),
        None if expires_at.is_some_and(|at| after(at, OVERDUE) <= now) => Step::End(Ending::new(
            SessionReason::SessionTimeout,
            "the time of the session was up, and its node did not end it",
        )),
        None => Step::Live {
            pod_uid: pod.uid().unwrap_or_default(),
            expires_at,
        },
    }
}

fn without_pod(session: &CodeSession, world: &World, limits: Limits, now: Timestamp) -> Step {
    let created = session.creation_timestamp().map_or(now, |created| created.0);
    let age = now.duration_since(created);
    let pool = world.pool_error.as_ref();
    let because = pool.map_or_else(String::new, |error| format!(": {error}"));
    if age >= limits.start_budget {
        let seconds = limits.start_budget.as_secs();
        return Step::End(Ending::new(
            SessionReason::StartFailed,
            format!("the session had no pod within {seconds} seconds{because}"),
        ));
    }
    if let Some(unavailable) = &world.unavailable {
        if age >= SETTLED {
            return Step::End(Ending::new(
                SessionReason::InterpreterUnavailable,
                unavailable.clone(),
            ));
        }
        return Step::Wait {
            told: None,
            until: after(created, SETTLED),
        };
    }
    let given_up = after(created, limits.start_budget);
    if session.spec.pod_name.is_some() && age < CLAIM {
        return Step::Wait {
            told: None,
            until: after(created, CLAIM),
        };
    }
    Step::Wait {
        told: Some(format!("no pod is free: one is started{because}")),
        until: given_up,
    }
}

fn stopped() -> Ending {
    Ending::new(SessionReason::Stopped, "somebody stopped the session")
}

/// Whether a pod was claimed for this session.
fn is_claimed_by(pod: &Pod, session: &CodeSession) -> bool {
    let label = |key: &str| pod.labels().get(key).map(String::as_str);
    label(labels::STATE) == Some(labels::STATE_CLAIMED)
        && label(labels::SESSION) == session.metadata.name.as_deref()
        && session
            .status
            .as_ref()
            .and_then(|status| status.pod_uid.as_ref())
            .is_none_or(|uid| pod.metadata.uid.as_ref() == Some(uid))
}

/// When the kubelet will end a pod.
fn expires_at(pod: &Pod) -> Option<Timestamp> {
    let started = pod.status.as_ref()?.start_time.as_ref()?.0;
    let seconds = pod.spec.as_ref()?.active_deadline_seconds?;
    Some(after(started, SignedDuration::from_secs(seconds)))
}

fn after(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
