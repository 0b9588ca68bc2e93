//! A small memory of trees.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use codeworkspace_bundle::FileTree;

/// What an entry takes beside its contents and its path.
const ENTRY_BYTES: u64 = 160;

#[derive(Debug)]
struct Kept<N> {
    tree: Arc<FileTree>,
    note: N,
    bytes: u64,
    used: u64,
}

#[derive(Debug)]
struct Table<N> {
    kept: HashMap<String, Kept<N>>,
    bytes: u64,
    uses: u64,
}

/// Recently used trees that are known by a text which says all about their files, each with a note, up to a number of bytes.
#[derive(Debug)]
pub struct RecentTrees<N> {
    capacity: u64,
    table: Mutex<Table<N>>,
}

impl<N: Clone> RecentTrees<N> {
    /// An empty memory of so many bytes.
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            table: Mutex::new(Table {
                kept: HashMap::new(),
                bytes: 0,
                uses: 0,
            }),
        }
    }

    /// The tree of an identity, and its note.
    pub fn get(&self, identity: &str) -> Option<(Arc<FileTree>, N)> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses += 1;
        let used = table.uses;
        let kept = table.kept.get_mut(identity)?;
        kept.used = used;
        Some((Arc::clone(&kept.tree), kept.note.clone()))
    }

    /// Keeps a tree, at the cost of those that were not used for longest. One that is larger than the whole memory is not kept.
    pub fn put(&self, identity: String, tree: Arc<FileTree>, note: N) {
        let names: u64 = tree
            .paths()
            .map(|path| ENTRY_BYTES + path.as_str().len() as u64)
            .sum();
        let bytes = tree.content_bytes() + names;
        if bytes > self.capacity {
            return;
        }
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses += 1;
        let kept = Kept {
            tree,
            note,
            bytes,
            used: table.uses,
        };
        table.bytes += bytes;
        if let Some(replaced) = table.kept.insert(identity, kept) {
            table.bytes -= replaced.bytes;
        }
        while table.bytes > self.capacity {
            let oldest = table.kept.iter().min_by_key(|(_, kept)| kept.used);
            let Some(removed) = oldest
                .map(|(identity, _)| identity.clone())
                .and_then(|identity| table.kept.remove(&identity))
            else {
                break;
            };
            table.bytes -= removed.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let trees = RecentTrees::new(1_000);
        let put = |name: &str, bytes: usize| {
            let tree = FileTree::of_file("f".parse().unwrap(), Bytes::from(vec![0; bytes]));
            trees.put(name.to_owned(), Arc::new(tree), name.to_owned());
        };
        let there = |name: &str| trees.get(name).map(|(_, note)| note);
        put("a", 200);
        put("b", 200);
        assert_eq!(there("a"), Some("a".to_owned()));
        put("c", 200);
        assert_eq!(
            ["a", "b", "c"].map(|name| there(name).is_some()),
            [true, false, true]
        );
        put("d", 2_000);
        assert_eq!(
            ["a", "c", "d"].map(|name| there(name).is_some()),
            [true, true, false]
        );
    }
}
