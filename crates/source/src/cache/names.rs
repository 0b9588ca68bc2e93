//! Names that repositories had before.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ProofKey;

/// Old names that are remembered.
const CAPACITY: usize = 1_000;

/// The numbers of repositories that were found under an old name. Kept by asker, since a stranger to the first repository must
/// not learn of it.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<HashMap<ProofKey, u64>>);

impl Names {
    fn table(&self) -> MutexGuard<'_, HashMap<ProofKey, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name redirects to the repository of this number. What it led to first stays: a stranger may rename too.
    pub(crate) fn renamed(&self, key: &ProofKey, number: u64) {
        let mut table = self.table();
        if table.len() < CAPACITY {
            table.entry(key.clone()).or_insert(number);
        }
    }

    /// The repository that the name redirected to.
    pub(crate) fn number(&self, key: &ProofKey) -> Option<u64> {
        self.table().get(key).copied()
    }

    /// The repository has its old name again.
    pub(crate) fn forget(&self, key: &ProofKey) {
        self.table().remove(key);
    }
}
