//! Callers that a host asked to leave it alone for a while.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::{later, until};
use crate::credential::Asker;
use crate::error::SourceError;

/// A wait grows by up to one part in so many, so that operators which met a limit together do not come back together.
const JITTER_PARTS: u32 = 10;
/// How long after its end a limit still counts as the one before the next.
const MEMORY: Duration = Duration::from_hours(1);

#[derive(Debug, Default)]
struct State {
    until: Option<Timestamp>,
    strikes: u32,
    /// The host does not accept the credential, and will hardly do so a moment later.
    rejected: Option<(Timestamp, SourceError)>,
}

/// Remembers each caller's limit at each host, so that nobody asks again before it is over: a limit concerns the credential,
/// not the object for which it was met.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<HashMap<(String, Asker), State>>);

impl Breaker {
    fn states(&self) -> MutexGuard<'_, HashMap<(String, Asker), State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, host: &str, asker: Asker, read: impl FnOnce(&State) -> Option<T>) -> Option<T> {
        self.states().get(&(host.to_owned(), asker)).and_then(read)
    }

    /// How long the host must still be left alone.
    pub(crate) fn wait(&self, host: &str, asker: Asker, now: Timestamp) -> Option<Duration> {
        let limit = self.with(host, asker, |state| state.until)?;
        Some(until(now, limit)).filter(|wait| !wait.is_zero())
    }

    /// Why the host has just refused the credential itself.
    pub(crate) fn rejection(&self, host: &str, asker: Asker, now: Timestamp) -> Option<SourceError> {
        let (end, error) = self.with(host, asker, |state| state.rejected.clone())?;
        (now < end).then_some(error)
    }

    /// How many limits without a given time the host has set since it last answered.
    pub(crate) fn strikes(&self, host: &str, asker: Asker) -> u32 {
        self.with(host, asker, |state| Some(state.strikes))
            .unwrap_or_default()
    }

    /// The host asks for `wait`; returns how long it is left alone, which is a little longer.
    pub(crate) fn limit(&self, host: &str, asker: Asker, now: Timestamp, wait: Duration) -> Duration {
        let end = later(now, wait.saturating_add(jitter(wait)));
        let mut states = self.states();
        forget(&mut states, now);
        let state = states.entry((host.to_owned(), asker)).or_default();
        let end = state.until.map_or(end, |known| known.max(end));
        state.until = Some(end);
        state.strikes = state.strikes.saturating_add(1);
        until(now, end)
    }

    /// The host does not accept the credential; it is not shown again before `end`.
    pub(crate) fn reject(
        &self,
        host: &str,
        asker: Asker,
        now: Timestamp,
        end: Timestamp,
        error: &SourceError,
    ) {
        let mut states = self.states();
        forget(&mut states, now);
        states.entry((host.to_owned(), asker)).or_default().rejected = Some((end, error.clone()));
    }

    /// The host answers.
    pub(crate) fn answered(&self, host: &str, asker: Asker) {
        if let Some(state) = self.states().get_mut(&(host.to_owned(), asker)) {
            state.strikes = 0;
        }
    }
}

/// Drops what is long over: a rotated secret leaves the old one's state behind.
fn forget(states: &mut HashMap<(String, Asker), State>, now: Timestamp) {
    states.retain(|_, state| {
        let limited = state.until.is_some_and(|end| now < later(end, MEMORY));
        limited || state.rejected.as_ref().is_some_and(|(end, _)| now < *end)
    });
}

/// Up to a tenth of `wait`, in whole seconds.
fn jitter(wait: Duration) -> Duration {
    let longest = (wait / JITTER_PARTS).as_secs();
    // A new hasher's keys are random, and nothing here must be hard to guess.
    let random = RandomState::new().build_hasher().finish();
    Duration::from_secs(random % (longest + 1))
}
