//! When each workspace was last looked at, sources included. A run made by hand waits for a look that is as fresh as itself.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use codeworkspace_api::CodeWorkspace;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

/// A workspace that was not looked at for so long is gone or suspended: then the next look is simply the first.
const MEMORY: SignedDuration = SignedDuration::from_hours(48);

/// Times by workspace uid. Lost with the process.
#[derive(Debug, Default)]
pub struct Scans(Mutex<HashMap<String, Timestamp>>);

impl Scans {
    /// Notes that a look, begun at `at`, is finished and stands in status.
    pub fn record(&self, workspace: &CodeWorkspace, at: Timestamp) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(uid) = workspace.uid()
            && looks.insert(uid, at).is_none()
        {
            looks.retain(|_, last| at.duration_since(*last) < MEMORY);
        }
    }

    /// When the last look began.
    pub fn last(&self, workspace: &CodeWorkspace) -> Option<Timestamp> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&workspace.uid()?)
            .copied()
    }
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

    #[test]
    fn workspaces_that_are_gone_are_forgotten_when_others_come() {
        let (scans, start) = (Scans::default(), Timestamp::UNIX_EPOCH);
        scans.record(&workspace("gone"), start);
        scans.record(&workspace("new"), start + MEMORY);
        assert_eq!(scans.last(&workspace("gone")), None);
        assert_eq!(scans.last(&workspace("new")), Some(start + MEMORY));
    }
}
