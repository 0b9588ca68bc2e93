//! One line in the log for each fetch of files: who got what, and with which credential.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::CommitKey;

/// The log's target for these lines, by which they can be kept apart from others.
const TARGET: &str = "audit";

/// A fetch under way. Its line is written when it ends, also when nobody waits for it any longer.
pub(crate) struct Fetch<'a> {
    key: &'a CommitKey,
    credential: &'a str,
    /// Counts what comes over the network.
    pub(crate) bytes: AtomicU64,
    outcome: &'static str,
}

impl<'a> Fetch<'a> {
    pub(crate) fn of(key: &'a CommitKey, credential: Option<&'a str>) -> Self {
        Self {
            key,
            credential: credential.unwrap_or("none"),
            bytes: AtomicU64::new(0),
            outcome: "Abandoned",
        }
    }

    /// `outcome` is `Fetched` or the reason of the fault.
    pub(crate) fn ended(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for Fetch<'_> {
    fn drop(&mut self) {
        tracing::info!(
            target: TARGET,
            host = self.key.host,
            repository = %self.key.repository,
            commit = %self.key.commit,
            credential = self.credential,
            bytes = self.bytes.load(Ordering::Relaxed),
            outcome = self.outcome,
            "archive fetched from GitHub"
        );
    }
}
