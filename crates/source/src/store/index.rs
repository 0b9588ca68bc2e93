use std::collections::HashMap;
use std::time::SystemTime;

/// File systems give space in blocks, mostly of this size. Counting them keeps thousands of small files honest.
const BLOCK_BYTES: u64 = 4096;

/// The disk that a file of so many bytes takes.
pub(super) fn disk_bytes(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES)
}

#[derive(Debug)]
struct Slot {
    bytes: u64,
    used: u64,
    /// When it was used since its file's time was set.
    unsaved: Option<SystemTime>,
}

/// Which files there are, how much disk they take, and in which order they were used.
#[derive(Debug)]
pub(super) struct Index {
    capacity: u64,
    bytes: u64,
    uses: u64,
    slots: HashMap<String, Slot>,
}

impl Index {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            bytes: 0,
            uses: 0,
            slots: HashMap::new(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Notes a file as the one used last, in place of an older one of the same name.
    pub(super) fn insert(&mut self, name: String, bytes: u64) {
        self.uses += 1;
        let slot = Slot {
            bytes,
            used: self.uses,
            unsaved: None,
        };
        self.bytes += bytes;
        if let Some(replaced) = self.slots.insert(name, slot) {
            self.bytes -= replaced.bytes;
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(removed) = self.slots.remove(name) {
            self.bytes -= removed.bytes;
        }
    }

    /// Notes a use; false if there is no such file.
    pub(super) fn touch(&mut self, name: &str, now: SystemTime) -> bool {
        self.uses += 1;
        let Some(slot) = self.slots.get_mut(name) else {
            return false;
        };
        slot.used = self.uses;
        slot.unsaved = Some(now);
        true
    }

    /// Takes the times of uses that no file shows yet.
    pub(super) fn take_unsaved(&mut self) -> Vec<(String, SystemTime)> {
        self.slots
            .iter_mut()
            .filter_map(|(name, slot)| Some((name.clone(), slot.unsaved.take()?)))
            .collect()
    }

    /// The file that was not used for longest, unless so many bytes more fit in as it is.
    pub(super) fn in_the_way_of(&self, bytes: u64) -> Option<String> {
        if self.bytes <= self.capacity.saturating_sub(bytes) {
            return None;
        }
        let oldest = self.slots.iter().min_by_key(|(_, slot)| slot.used);
        oldest.map(|(name, _)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_of_what_was_not_used_for_longest() {
        let mut index = Index::new(100);
        for name in ["a", "b", "c", "d"] {
            index.insert(name.to_owned(), 25);
        }
        assert!(index.touch("a", SystemTime::UNIX_EPOCH));
        assert!(!index.touch("e", SystemTime::UNIX_EPOCH));
        index.insert("b".to_owned(), 20);
        assert_eq!(index.bytes(), 95);
        assert_eq!(index.in_the_way_of(5), None);
        assert_eq!(index.in_the_way_of(6), Some("c".to_owned()));
        index.remove("c");
        assert_eq!(index.in_the_way_of(31), Some("d".to_owned()));
        index.remove("d");
        assert_eq!((index.in_the_way_of(31), index.bytes()), (None, 45));
        assert_eq!(index.take_unsaved(), [("a".to_owned(), SystemTime::UNIX_EPOCH)]);
        assert_eq!(index.take_unsaved(), []);
    }

    #[test]
    fn even_an_empty_file_takes_a_block() {
        assert_eq!([0, 1, 4096, 4097].map(disk_bytes), [4096, 4096, 4096, 8192]);
    }
}
