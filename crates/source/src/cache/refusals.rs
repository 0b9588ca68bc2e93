use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::CommitKey;
use crate::clock::later;
use crate::credential::Asker;
use crate::error::SourceError;

/// Refusals that are remembered.
const CAPACITY: usize = 1_000;

/// Commits whose archive was refused a moment ago. It would be refused again, and a hundred megabytes are a lot to find
/// that out for every object that names the commit. Another asker may be told something else.
#[derive(Debug)]
pub(crate) struct Refusals {
    lifetime: Duration,
    table: Mutex<HashMap<(CommitKey, Asker), (Timestamp, SourceError)>>,
}

impl Refusals {
    pub(crate) fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            table: Mutex::default(),
        }
    }

    fn is_young(&self, at: Timestamp, now: Timestamp) -> bool {
        at <= now && now < later(at, self.lifetime)
    }

    pub(crate) fn get(&self, key: &(CommitKey, Asker), now: Timestamp) -> Option<SourceError> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table
            .get(key)
            .filter(|(at, _)| self.is_young(*at, now))
            .map(|(_, error)| error.clone())
    }

    /// Remembers a refusal; faults that may pass are none.
    pub(crate) fn put(&self, key: &(CommitKey, Asker), now: Timestamp, error: &SourceError) {
        if error.is_transient() {
            return;
        }
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.retain(|_, (at, _)| self.is_young(*at, now));
        if table.len() < CAPACITY {
            table.insert(key.clone(), (now, error.clone()));
        }
    }
}
