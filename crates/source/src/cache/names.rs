//! Names that repositories had before.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ProofKey;
use crate::store::Store;

/// Old names that are remembered.
const CAPACITY: usize = 1_000;
const RECORD: &str = "renamed";

/// The numbers of repositories that were found under an old name. Kept by asker, since a stranger to the first repository must
/// not learn of it.
#[derive(Debug)]
pub(crate) struct Names {
    table: Mutex<HashMap<ProofKey, u64>>,
    store: Store,
}

impl Names {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            table: Mutex::default(),
            store,
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<ProofKey, u64>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name redirects to the repository of this number. What it led to first stays: a stranger may rename too.
    pub(crate) async fn renamed(&self, key: &ProofKey, number: u64) {
        if self.number(key).await.is_some() {
            return;
        }
        self.insert(key, number);
        self.store.put_record(&key.record(RECORD), &Some(number)).await;
    }

    /// The repository that the name redirected to.
    pub(crate) async fn number(&self, key: &ProofKey) -> Option<u64> {
        if let Some(number) = self.table().get(key) {
            return Some(*number);
        }
        let number: Option<u64> = self.store.record(&key.record(RECORD)).await?;
        self.insert(key, number?);
        number
    }

    /// The repository has its old name again.
    pub(crate) async fn forget(&self, key: &ProofKey) {
        self.table().remove(key);
        self.store.put_record(&key.record(RECORD), &None::<u64>).await;
    }

    fn insert(&self, key: &ProofKey, number: u64) {
        let mut table = self.table();
        if table.len() < CAPACITY {
            table.insert(key.clone(), number);
        }
    }
}
