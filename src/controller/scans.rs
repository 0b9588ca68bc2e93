//! When each workspace was last looked at, sources included. A run made by hand waits for a look that is as fresh as itself.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use codeworkspace_api::CodeWorkspace;
use jiff::Timestamp;
use kube::ResourceExt as _;

/// Times by workspace uid. Lost with the process: then the next look is simply the first.
#[derive(Debug, Default)]
pub struct Scans(Mutex<HashMap<String, Timestamp>>);

impl Scans {
    /// Notes that a look, begun at `at`, is finished and stands in status.
    pub fn record(&self, workspace: &CodeWorkspace, at: Timestamp) {
        if let Some(uid) = workspace.uid() {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(uid, at);
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

    /// Forgets workspaces that are gone.
    pub fn retain(&self, alive: impl Fn(&str) -> bool) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|uid, _| alive(uid));
    }
}
