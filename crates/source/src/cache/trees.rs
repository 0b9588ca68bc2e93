use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::CommitKey;
use crate::archive::RepositoryTree;

#[derive(Debug)]
struct Entry {
    tree: Arc<RepositoryTree>,
    bytes: u64,
    used: u64,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<CommitKey, Entry>,
    bytes: u64,
    uses: u64,
}

/// The trees of recently used commits, up to a number of bytes. A tree never changes, so it never grows old.
#[derive(Debug)]
pub(crate) struct Trees {
    capacity: u64,
    table: Mutex<Table>,
}

impl Trees {
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            table: Mutex::default(),
        }
    }

    pub(crate) fn get(&self, key: &CommitKey) -> Option<Arc<RepositoryTree>> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses += 1;
        let used = table.uses;
        let entry = table.entries.get_mut(key)?;
        entry.used = used;
        Some(Arc::clone(&entry.tree))
    }

    /// Keeps a tree, at the cost of those that were not used for longest. A tree larger than the whole cache is not
    /// kept.
    pub(crate) fn put(&self, key: CommitKey, tree: Arc<RepositoryTree>) {
        let bytes = tree.memory_bytes();
        if bytes > self.capacity {
            return;
        }
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses += 1;
        let entry = Entry {
            tree,
            bytes,
            used: table.uses,
        };
        table.bytes += bytes;
        if let Some(replaced) = table.entries.insert(key, entry) {
            table.bytes -= replaced.bytes;
        }
        while table.bytes > self.capacity {
            let oldest = table
                .entries
                .iter()
                .min_by_key(|(_, entry)| entry.used)
                .map(|(key, _)| key.clone());
            let Some(removed) = oldest.and_then(|key| table.entries.remove(&key)) else {
                break;
            };
            table.bytes -= removed.bytes;
        }
    }

    /// Bytes that the cached trees take, for metrics.
    pub(crate) fn bytes(&self) -> u64 {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}
