//! A bounded memory of answers that hold for a while.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

/// Values that are forgotten at a time of their own.
#[derive(Debug)]
pub struct Expiring<K, V> {
    most: usize,
    kept: Mutex<HashMap<K, (V, Timestamp)>>,
}

impl<K: Eq + Hash, V: Clone> Expiring<K, V> {
    /// Keeps at most so many values.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            kept: Mutex::default(),
        }
    }

    /// The value, unless its time has come.
    pub fn get(&self, key: &K, now: Timestamp) -> Option<V> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (value, until) = kept.get(key)?;
        (now < *until).then(|| value.clone())
    }

    /// Keeps a value until then. When too many are kept, those go whose time has come, or else all: each can be asked for again.
    pub fn insert(&self, key: K, value: V, until: Timestamp, now: Timestamp) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= self.most {
            kept.retain(|_, (_, until)| now < *until);
        }
        if kept.len() >= self.most {
            kept.clear();
        }
        kept.insert(key, (value, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_value_holds_until_its_time_and_not_a_moment_longer() {
        let kept = Expiring::new(2);
        kept.insert("a", 1, at(10), at(0));
        assert_eq!(kept.get(&"a", at(9)), Some(1));
        assert_eq!(kept.get(&"a", at(10)), None);
        assert_eq!(kept.get(&"b", at(0)), None);
    }

    #[test]
    fn there_are_never_more_than_permitted_and_the_stale_go_first() {
        let kept = Expiring::new(2);
        kept.insert("stale", 1, at(5), at(0));
        kept.insert("fresh", 2, at(20), at(0));
        kept.insert("new", 3, at(20), at(6));
        assert_eq!(kept.get(&"fresh", at(7)), Some(2));
        assert_eq!(kept.get(&"new", at(7)), Some(3));
        kept.insert("more", 4, at(20), at(7));
        assert_eq!(kept.kept.lock().unwrap().len(), 1);
        assert_eq!(kept.get(&"more", at(8)), Some(4));
    }
}
