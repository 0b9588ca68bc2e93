//! Growing delays for objects whose reconcile fails.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Delay after the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// No delay is longer, but for the spread.
const CEILING: Duration = Duration::from_mins(5);
/// An object that did not fail for so long is gone, or has been forgotten otherwise.
const MEMORY: Duration = Duration::from_hours(1);

/// Failures in a row, by object.
#[derive(Debug, Default)]
pub struct Backoff(Mutex<HashMap<String, Failures>>);

#[derive(Debug)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Backoff {
    /// Counts a failure and gives the delay until the next try. Objects that fail together (the API server is away) are spread by up
    /// to a quarter of it, each always by its own share.
    pub fn failed(&self, object: &str) -> Duration {
        self.failed_at(object, Instant::now())
    }

    fn failed_at(&self, object: &str, now: Instant) -> Duration {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        objects.retain(|_, failures| now.saturating_duration_since(failures.last) < MEMORY);
        let failures = objects
            .entry(object.to_owned())
            .or_insert(Failures { count: 0, last: now });
        let delay = doubled(failures.count);
        *failures = Failures {
            count: failures.count.saturating_add(1),
            last: now,
        };
        delay + delay / 400 * share(object)
    }

    /// Forgets the failures of an object.
    pub fn succeeded(&self, object: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(object);
    }
}

/// The delay after so many failures before this one.
fn doubled(failures: u32) -> Duration {
    FIRST.saturating_mul(2_u32.saturating_pow(failures)).min(CEILING)
}

/// The object's own percentage.
fn share(object: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    u32::try_from(hasher.finish() % 100).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_ceiling() {
        let delays: Vec<_> = (0..10).map(|count| doubled(count).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(doubled(u32::MAX), CEILING);
    }

    #[test]
    fn each_object_starts_again_after_its_own_success() {
        let backoff = Backoff::default();
        let first = backoff.failed("one");
        assert!(backoff.failed("one") > first);
        backoff.failed("other");
        backoff.succeeded("one");
        assert_eq!(backoff.failed("one"), first);
    }

    #[test]
    fn objects_that_fail_together_are_tried_again_apart() {
        let delays: std::collections::BTreeSet<_> = (0..20)
            .map(|object| Backoff::default().failed(&object.to_string()))
            .collect();
        assert!(delays.len() > 10, "{delays:?}");
        assert!(delays.iter().all(|delay| (FIRST..=FIRST * 5 / 4).contains(delay)));
    }

    #[test]
    fn objects_that_are_gone_are_forgotten() {
        let (backoff, start) = (Backoff::default(), Instant::now());
        backoff.failed_at("gone", start);
        backoff.failed_at("other", start + MEMORY);
        assert_eq!(backoff.0.lock().unwrap().len(), 1);
    }
}
