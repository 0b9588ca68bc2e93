//! Growing delays for objects whose reconcile fails.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Delay after the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// No delay is longer.
const CEILING: Duration = Duration::from_mins(5);

/// Failures in a row, by object.
#[derive(Debug, Default)]
pub struct Backoff(Mutex<HashMap<String, u32>>);

impl Backoff {
    /// Counts a failure and gives the delay until the next try.
    pub fn failed(&self, object: &str) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(object.to_owned()).or_default();
        let delay = FIRST.saturating_mul(2_u32.saturating_pow(*count)).min(CEILING);
        *count = count.saturating_add(1);
        delay
    }

    /// Forgets the failures of an object.
    pub fn succeeded(&self, object: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_ceiling_and_start_again_after_success() {
        let backoff = Backoff::default();
        let delays: Vec<_> = (0..10).map(|_| backoff.failed("one").as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(backoff.failed("other").as_secs(), 1);
        backoff.succeeded("one");
        assert_eq!(backoff.failed("one").as_secs(), 1);
    }
}
