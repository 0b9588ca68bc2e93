//! GitHub's primary rate limit, which every request to the API counts against.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Length of GitHub's window.
const WINDOW_SECONDS: i64 = 3600;

/// The state of the limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RateLimit {
    /// Requests in each window.
    pub limit: u32,
    /// Requests left in this window.
    pub remaining: u32,
    /// When the window ends, in seconds since 1970.
    pub reset: i64,
}

impl RateLimit {
    /// A fresh window of `limit` requests.
    pub(crate) fn starting(limit: u32, now: Timestamp) -> Self {
        Self {
            limit,
            remaining: limit,
            reset: now.as_second() + WINDOW_SECONDS,
        }
    }
}

/// The limit, counted down by requests.
#[derive(Debug, Default)]
pub(crate) struct Counter(Mutex<RateLimit>);

impl Counter {
    pub(crate) fn new(limit: RateLimit) -> Self {
        Self(Mutex::new(limit))
    }

    /// A fresh limit for one credential.
    pub(crate) fn shared(limit: u32) -> Arc<Self> {
        Arc::new(Self::new(RateLimit::starting(limit, Timestamp::now())))
    }

    pub(crate) fn get(&self) -> RateLimit {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, limit: RateLimit) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = limit;
    }

    /// Counts one request; says whether it is one too many, and the headers that every answer carries.
    pub(crate) fn count(&self) -> (bool, [(HeaderName, HeaderValue); 4]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Timestamp::now();
        if now.as_second() >= state.reset {
            *state = RateLimit::starting(state.limit, now);
        }
        let limited = state.remaining == 0;
        state.remaining = state.remaining.saturating_sub(1);
        (limited, headers(&state))
    }

    /// Takes back the count of a request that costs nothing.
    pub(crate) fn give_back(&self) -> [(HeaderName, HeaderValue); 4] {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.remaining = state.remaining.saturating_add(1).min(state.limit);
        headers(&state)
    }
}

fn headers(state: &RateLimit) -> [(HeaderName, HeaderValue); 4] {
    let header = |name: &'static str, value: i64| (HeaderName::from_static(name), HeaderValue::from(value));
    [
        header("x-ratelimit-limit", i64::from(state.limit)),
        header("x-ratelimit-remaining", i64::from(state.remaining)),
        header(
            "x-ratelimit-used",
            i64::from(state.limit - state.remaining.min(state.limit)),
        ),
        header("x-ratelimit-reset", state.reset),
    ]
}
