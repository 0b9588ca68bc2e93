//! How often a tenant may call: a bucket of tokens for each, refilled with time, for starting sessions and for everything else.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use super::configuration::Limits;

/// Tenants whose buckets are kept. Full ones are forgotten first: they say nothing.
const MOST_BUCKETS: usize = 10_000;

/// What a call is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Usage {
    /// It starts a session.
    Start,
    /// Anything else.
    Call,
}

/// The bucket is empty.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{} more than {rate} times a second: call less often", match usage {
    Usage::Start => "sessions are started",
    Usage::Call => "calls come",
})]
pub struct TooOften {
    usage: Usage,
    rate: f64,
}

/// The buckets of all tenants, of this replica.
#[derive(Debug)]
pub struct Rates {
    starts: f64,
    calls: f64,
    buckets: Mutex<HashMap<(String, Usage), Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Timestamp,
}

impl Rates {
    /// All buckets are full. Each holds two seconds' worth.
    pub fn new(limits: &Limits) -> Self {
        Self {
            starts: f64::from(limits.starts_per_second),
            calls: f64::from(limits.calls_per_second),
            buckets: Mutex::default(),
        }
    }

    /// Takes a token, or says that there is none.
    pub fn check(&self, tenant: &str, usage: Usage, now: Timestamp) -> Result<(), TooOften> {
        let rate = match usage {
            Usage::Start => self.starts,
            Usage::Call => self.calls,
        };
        let most = rate * 2.0;
        let refill = |bucket: &Bucket| {
            (bucket.tokens + now.duration_since(bucket.at).as_secs_f64().max(0.0) * rate).min(most)
        };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST_BUCKETS {
            buckets.retain(|_, bucket| refill(bucket) < most);
        }
        let bucket = buckets.entry((tenant.to_owned(), usage)).or_insert(Bucket {
            tokens: most,
            at: now,
        });
        let tokens = refill(bucket);
        bucket.at = now;
        bucket.tokens = tokens;
        if tokens < 1.0 {
            return Err(TooOften { usage, rate });
        }
        bucket.tokens -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn each_tenant_has_its_own_rate_and_it_comes_back_with_time() {
        let rates = Rates::new(&Limits {
            starts_per_second: 1,
            ..Limits::default()
        });
        let now = Timestamp::UNIX_EPOCH;
        let start = |tenant: &str, at| rates.check(tenant, Usage::Start, at).is_ok();
        assert_eq!(
            [start("a", now), start("a", now), start("a", now)],
            [true, true, false]
        );
        assert!(start("b", now));
        assert!(rates.check("a", Usage::Call, now).is_ok());
        assert!(!start("a", now + SignedDuration::from_millis(900)));
        assert!(start("a", now + SignedDuration::from_secs(2)));
    }
}
