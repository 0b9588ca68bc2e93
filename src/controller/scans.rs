//! When each workspace was last looked at, sources included. A run made by hand waits for a look that is as fresh as itself.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use codeworkspace_api::{CodeRun, CodeWorkspace};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

/// What was not heard of for so long is gone or suspended: then the next look is simply the first.
const MEMORY: SignedDuration = SignedDuration::from_hours(48);

/// Times by uid. Lost with the process.
#[derive(Debug, Default)]
pub struct Scans(Mutex<Times>);

#[derive(Debug, Default)]
struct Times {
    /// When the last look at a workspace began.
    looks: HashMap<String, Timestamp>,
    /// When a run first asked for one.
    asks: HashMap<String, Timestamp>,
}

impl Scans {
    /// Notes that a look, begun at `at`, is finished and stands in status.
    pub fn record(&self, workspace: &CodeWorkspace, at: Timestamp) {
        let mut times = self.times();
        if let Some(uid) = workspace.uid()
            && times.looks.insert(uid, at).is_none()
        {
            forget(&mut times.looks, at);
        }
    }

    /// Whether the workspace was looked at since the run was made, or since the run was first seen here. The time of making is that of
    /// the API server, whose clock may be ahead of this one: by it alone a look could seem too old for ever.
    pub fn is_fresh_for(&self, run: &CodeRun, workspace: &CodeWorkspace, now: Timestamp) -> bool {
        let (Some(run_uid), Some(uid)) = (run.uid(), workspace.uid()) else {
            return false;
        };
        let mut times = self.times();
        if !times.asks.contains_key(&run_uid) {
            forget(&mut times.asks, now);
        }
        let asked = *times.asks.entry(run_uid).or_insert(now);
        let since = run
            .creation_timestamp()
            .map_or(asked, |created| created.0.min(asked));
        times.looks.get(&uid).is_some_and(|look| *look >= since)
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget(times: &mut HashMap<String, Timestamp>, now: Timestamp) {
    times.retain(|_, at| now.duration_since(*at) < MEMORY);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(uid: &str) -> CodeWorkspace {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "tool", "uid": uid}, "spec": {"code": {"sources": []}}
        }))
        .unwrap()
    }

    fn run(uid: &str, made: Timestamp) -> CodeRun {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "run", "uid": uid, "creationTimestamp": made.to_string()},
            "spec": {"workspaceRef": {"name": "tool"}}
        }))
        .unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_look_counts_once_it_began_after_the_run_was_made() {
        let (scans, workspace, run) = (Scans::default(), workspace("tool"), run("run", at(100)));
        assert!(!scans.is_fresh_for(&run, &workspace, at(101)));
        scans.record(&workspace, at(99));
        assert!(!scans.is_fresh_for(&run, &workspace, at(102)));
        scans.record(&workspace, at(100));
        assert!(scans.is_fresh_for(&run, &workspace, at(103)));
    }

    #[test]
    fn an_api_server_whose_clock_is_ahead_keeps_no_run_waiting() {
        let (scans, workspace, run) = (Scans::default(), workspace("tool"), run("run", at(1000)));
        scans.record(&workspace, at(100));
        assert!(!scans.is_fresh_for(&run, &workspace, at(101)));
        scans.record(&workspace, at(102));
        assert!(scans.is_fresh_for(&run, &workspace, at(103)));
    }

    #[test]
    fn what_is_gone_is_forgotten_when_others_come() {
        let scans = Scans::default();
        let later = at(0) + MEMORY;
        scans.record(&workspace("gone"), at(0));
        scans.is_fresh_for(&run("gone", at(0)), &workspace("gone"), at(0));
        scans.record(&workspace("new"), later);
        scans.is_fresh_for(&run("new", later), &workspace("new"), later);
        let times = scans.times();
        assert_eq!((times.looks.len(), times.asks.len()), (1, 1));
    }
}
