//! How long a finished run stays. Pure.

use codeworkspace_api::{CodeRun, labels};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

use super::dereference::World;

/// What becomes of a finished run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It stays: it is its workspace's current one, and would be run again if it could vanish.
    Stays,
    /// It is deleted after this time.
    Until(SignedDuration),
    /// It is deleted now.
    Over,
}

/// Decides.
pub fn lifetime(run: &CodeRun, world: &World, default_ttl: SignedDuration, now: Timestamp) -> Lifetime {
    if is_current(run, world) {
        return Lifetime::Stays;
    }
    let ttl = run
        .spec
        .ttl_seconds_after_finished
        .map_or(default_ttl, SignedDuration::from_secs);
    let finished = run
        .status
        .as_ref()
        .and_then(|status| status.finished_at.as_ref())
        .map_or(now, |at| at.0);
    let left = ttl - now.duration_since(finished);
    if left > SignedDuration::ZERO {
        Lifetime::Until(left)
    } else {
        Lifetime::Over
    }
}

/// A run that the operator made, as long as no status says that another key is current.
fn is_current(run: &CodeRun, world: &World) -> bool {
    let Some(key) = run.annotations().get(labels::RUN_KEY) else {
        return false;
    };
    let Some(workspace) = &world.workspace else {
        return false;
    };
    let last = workspace
        .status
        .as_ref()
        .and_then(|status| status.last_run.as_ref());
    last.is_none_or(|last| last.key == *key)
}

#[cfg(test)]
#[path = "lifetime_tests.rs"]
mod tests;
