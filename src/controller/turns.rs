//! How many objects of one namespace are worked on at once, so that no namespace takes every place of a controller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most of one namespace. A look may wait for minutes for a slow host.
const MOST: usize = 16;

/// Counts by namespace.
#[derive(Clone, Debug, Default)]
pub struct Turns(Arc<Mutex<HashMap<String, usize>>>);

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    turns: Turns,
    namespace: String,
}

impl Turns {
    /// Takes a place, if the namespace has one left.
    pub fn take(&self, namespace: &str) -> Option<Turn> {
        let mut counts = self.counts();
        let count = counts.entry(namespace.to_owned()).or_default();
        if *count >= MOST {
            return None;
        }
        *count += 1;
        Some(Turn {
            turns: self.clone(),
            namespace: namespace.to_owned(),
        })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut counts = self.turns.counts();
        if let Some(count) = counts.get_mut(&self.namespace) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_namespace_leaves_places_for_the_others_and_gives_its_own_back() {
        let turns = Turns::default();
        let taken: Vec<_> = (0..MOST).filter_map(|_| turns.take("busy")).collect();
        assert_eq!(taken.len(), MOST);
        assert!(turns.take("busy").is_none());
        assert!(turns.take("quiet").is_some());
        drop(taken);
        assert!(turns.take("busy").is_some());
        assert!(turns.counts().is_empty());
    }
}
