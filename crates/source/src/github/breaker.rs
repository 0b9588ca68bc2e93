//! Hosts that asked to be left alone for a while.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::{later, until};

#[derive(Debug, Default)]
struct State {
    until: Option<Timestamp>,
    strikes: u32,
}

/// Remembers each host's limit, so that nobody asks again before it is over: a limit concerns the caller as a whole, not
/// the object for which it was met.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<HashMap<String, State>>);

impl Breaker {
    fn hosts(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the host must still be left alone.
    pub(crate) fn wait(&self, host: &str, now: Timestamp) -> Option<Duration> {
        let limit = self.hosts().get(host).and_then(|state| state.until)?;
        Some(until(now, limit)).filter(|wait| !wait.is_zero())
    }

    /// How many limits without a given time the host has set since it last answered.
    pub(crate) fn strikes(&self, host: &str) -> u32 {
        self.hosts().get(host).map_or(0, |state| state.strikes)
    }

    /// The host asks for `wait`.
    pub(crate) fn limit(&self, host: &str, now: Timestamp, wait: Duration) {
        let mut hosts = self.hosts();
        let state = hosts.entry(host.to_owned()).or_default();
        let end = later(now, wait);
        state.until = Some(state.until.map_or(end, |known| known.max(end)));
        state.strikes = state.strikes.saturating_add(1);
    }

    /// The host answers.
    pub(crate) fn answered(&self, host: &str) {
        if let Some(state) = self.hosts().get_mut(host) {
            state.strikes = 0;
        }
    }
}
