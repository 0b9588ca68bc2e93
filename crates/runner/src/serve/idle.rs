//! How long nobody has used the session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use tokio::sync::watch;

/// Counts what goes on, and knows since when nothing does.
pub(super) struct IdleClock {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

struct State {
    active: u64,
    since: Instant,
    limit: Option<Duration>,
}

/// One call, execution or task that goes on as long as this exists.
pub(super) struct Activity {
    clock: Arc<IdleClock>,
}

impl IdleClock {
    /// A clock without a limit.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                active: 0,
                since: Instant::now(),
                limit: None,
            }),
            changed: watch::Sender::new(()),
        })
    }

    /// From now on the session may be idle for `limit`.
    pub(super) fn limit(&self, limit: Option<Duration>) {
        self.lock().limit = limit;
        self.changed.send_replace(());
    }

    pub(super) fn begin(self: &Arc<Self>) -> Activity {
        self.lock().active += 1;
        self.changed.send_replace(());
        Activity {
            clock: Arc::clone(self),
        }
    }

    /// What goes on, and for how long nothing has.
    pub(super) fn now(&self) -> (u64, Duration) {
        let state = self.lock();
        let idle = match state.active {
            0 => state.since.elapsed(),
            _ => Duration::ZERO,
        };
        (state.active, idle)
    }

    /// Waits until the session has been idle for as long as it may be, and answers with that time.
    pub(super) async fn expired(&self) -> Duration {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let (end, limit) = {
                let state = self.lock();
                let limit = state.limit.filter(|_| state.active == 0);
                // A limit beyond the clock's range is no limit.
                (
                    limit.and_then(|limit| state.since.checked_add(limit)),
                    limit.unwrap_or_default(),
                )
            };
            tokio::select! {
                () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => return limit,
                // The sender is `self`, so this cannot fail while it is polled.
                _ = changed.changed() => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        let mut state = self.clock.lock();
        state.active -= 1;
        state.since = Instant::now();
        drop(state);
        self.clock.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    async fn expires_within(clock: &IdleClock, time: Duration) -> bool {
        timeout(time, clock.expired()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_without_a_limit_may_be_idle_for_ever() {
        assert!(!expires_within(&IdleClock::new(), MINUTE * 100_000).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_runs_only_while_nothing_goes_on() {
        let clock = IdleClock::new();
        clock.limit(Some(MINUTE));
        let (first, second) = (clock.begin(), clock.begin());
        assert!(!expires_within(&clock, MINUTE * 10).await);
        drop(first);
        assert!(!expires_within(&clock, MINUTE * 10).await);
        assert_eq!(clock.now(), (1, Duration::ZERO));
        drop(second);
        advance(MINUTE / 2).await;
        assert_eq!(clock.now(), (0, MINUTE / 2));
        assert!(!expires_within(&clock, MINUTE / 3).await);
        assert!(expires_within(&clock, MINUTE / 3).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_in_the_last_second_begins_the_time_anew() {
        let clock = IdleClock::new();
        clock.limit(Some(MINUTE));
        let waits = expires_within(&clock, MINUTE * 3 / 2);
        let (expired, ()) = tokio::join!(waits, async {
            advance(Duration::from_secs(59)).await;
            drop(clock.begin());
        });
        assert!(!expired);
    }
}
