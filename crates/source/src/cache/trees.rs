use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::FutureExt as _;

use super::CommitKey;
use crate::archive::RepositoryTree;
use crate::flights::Flights;
use crate::store::Store;

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

/// The trees of recently used commits: in memory, up to a number of bytes, and below that on disk. A tree never changes, so it
/// never grows old.
pub(crate) struct Trees {
    capacity: u64,
    table: Mutex<Table>,
    hits: AtomicU64,
    store: Store,
    reading: Flights<CommitKey, Option<Arc<RepositoryTree>>>,
}

impl Trees {
    pub(crate) fn new(capacity: u64, store: Store) -> Self {
        Self {
            capacity,
            table: Mutex::default(),
            hits: AtomicU64::new(0),
            store,
            reading: Flights::default(),
        }
    }

    /// The tree of a commit, from memory or else from disk. Those who want the same one wait for one reading.
    pub(crate) async fn get(&self, key: &CommitKey) -> Option<Arc<RepositoryTree>> {
        if let Some(tree) = self.in_memory(key) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            self.store.touch_tree(key);
            return Some(tree);
        }
        let (store, wanted) = (self.store.clone(), key.clone());
        let reading = self.reading.join(key.clone(), move || {
            async move { store.tree(&wanted).await.map(Arc::new) }.boxed()
        });
        let tree = reading.await?;
        self.keep(key.clone(), Arc::clone(&tree));
        Some(tree)
    }

    /// Keeps a tree in memory and on disk.
    pub(crate) async fn put(&self, key: &CommitKey, tree: &Arc<RepositoryTree>) {
        self.keep(key.clone(), Arc::clone(tree));
        self.store.put_tree(key, Arc::clone(tree)).await;
    }

    fn in_memory(&self, key: &CommitKey) -> Option<Arc<RepositoryTree>> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses += 1;
        let used = table.uses;
        let entry = table.entries.get_mut(key)?;
        entry.used = used;
        Some(Arc::clone(&entry.tree))
    }

    /// Keeps a tree in memory, at the cost of those that were not used for longest. One that is larger than all the room is not
    /// kept.
    fn keep(&self, key: CommitKey, tree: Arc<RepositoryTree>) {
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

    /// Trees that were found in memory, for metrics.
    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Memory that trees take, for metrics.
    pub(crate) fn bytes(&self) -> u64 {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}
