//! What metrics show about requests.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use super::answer::RateLimit;

/// Credentials whose rate limit is shown; each name is a label.
const MAXIMUM_SHOWN_LIMITS: usize = 50;
/// What requests without a credential are called.
const ANONYMOUS: &str = "anonymous";

/// Counts since the start, for metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistics {
    /// Requests to the API, which count against its rate limits.
    pub api_requests: u64,
    /// Requests to download hosts.
    pub download_requests: u64,
    /// Trees that were served from memory.
    pub tree_cache_hits: u64,
    /// Memory that cached trees take, in bytes.
    pub tree_cache_bytes: u64,
    /// Trees that were served from disk.
    pub disk_cache_hits: u64,
    /// Disk that cached files take, in bytes.
    pub disk_cache_bytes: u64,
    /// Cached files that were removed to make room for others.
    pub disk_cache_evictions: u64,
    /// The rate limits, as the API last told them, by the credential's name; `anonymous` without one. Of more than fifty, those
    /// that were reset most recently.
    pub rate_limits: BTreeMap<String, RateLimit>,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) api: AtomicU64,
    pub(crate) downloads: AtomicU64,
    rate_limits: Mutex<BTreeMap<String, RateLimit>>,
}

impl Counters {
    /// Keeps the lowest count of a window: answers to requests that were made together come in any order.
    pub(crate) fn note(&self, name: Option<&str>, limit: RateLimit) {
        let name = name.unwrap_or(ANONYMOUS);
        let mut limits = self.rate_limits.lock().unwrap_or_else(PoisonError::into_inner);
        let known = limits.get(name);
        if known.is_some_and(|known| known.reset == limit.reset && known.remaining <= limit.remaining) {
            return;
        }
        limits.insert(name.to_owned(), limit);
        if limits.len() > MAXIMUM_SHOWN_LIMITS {
            let oldest = limits
                .iter()
                .min_by_key(|(_, limit)| limit.reset)
                .map(|(name, _)| name.clone());
            oldest.map(|name| limits.remove(&name));
        }
    }

    /// The limits by the credential's name.
    pub(crate) fn rate_limits(&self) -> BTreeMap<String, RateLimit> {
        self.rate_limits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn limit(remaining: u64, reset: i64) -> RateLimit {
        RateLimit {
            limit: 5000,
            remaining,
            reset: Timestamp::from_second(reset).unwrap(),
        }
    }

    #[test]
    fn the_lowest_count_of_a_window_is_shown_for_each_credential() {
        let counters = Counters::default();
        for (name, remaining, reset) in [
            (None, 3, 10),
            (None, 4, 10),
            (Some("a"), 7, 10),
            (Some("a"), 9, 20),
        ] {
            counters.note(name, limit(remaining, reset));
        }
        let expected = [
            ("a".to_owned(), limit(9, 20)),
            ("anonymous".to_owned(), limit(3, 10)),
        ];
        assert_eq!(counters.rate_limits(), expected.into());
    }

    #[test]
    fn no_number_of_credentials_floods_a_scrape() {
        let counters = Counters::default();
        for number in 0..200 {
            counters.note(Some(&format!("credential-{number}")), limit(1, number));
        }
        let shown = counters.rate_limits();
        assert_eq!(shown.len(), MAXIMUM_SHOWN_LIMITS);
        assert!(shown.contains_key("credential-199") && !shown.contains_key("credential-0"));
    }
}
