//! Equal requests that are made at the same time become one.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt as _, Shared, WeakShared};

/// The requests under way, by what they ask for.
///
/// Whoever waits drives the request; when the last one gives up, it is cancelled.
pub(crate) struct Flights<K, V: Clone>(Mutex<HashMap<K, WeakShared<BoxFuture<'static, V>>>>);

impl<K, V: Clone> Default for Flights<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq, V: Clone + Send + Sync + 'static> Flights<K, V> {
    /// Joins the request of this key, or starts it.
    ///
    /// A request that has just ended is not joined. So what `start` makes must look into the cache first: it may have
    /// been filled since the caller looked.
    pub(crate) fn join(
        &self,
        key: K,
        start: impl FnOnce() -> BoxFuture<'static, V>,
    ) -> Shared<BoxFuture<'static, V>> {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let under_way = flights
            .get(&key)
            .and_then(WeakShared::upgrade)
            .filter(|flight| flight.peek().is_none());
        if let Some(flight) = under_way {
            return flight;
        }
        flights.retain(|_, flight| flight.upgrade().is_some());
        let flight = start().shared();
        if let Some(weak) = flight.downgrade() {
            flights.insert(key, weak);
        }
        flight
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::future::join;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn those_who_ask_at_the_same_time_share_one_answer() {
        let flights = Flights::default();
        let (starts, gate) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let ask = || {
            let (starts, gate) = (Arc::clone(&starts), Arc::clone(&gate));
            flights.join("key", move || {
                async move {
                    gate.notified().await;
                    starts.fetch_add(1, Ordering::Relaxed) + 1
                }
                .boxed()
            })
        };
        let both = join(ask(), ask());
        gate.notify_one();
        assert_eq!(both.await, (1, 1));
        gate.notify_one();
        assert_eq!(ask().await, 2, "an answer that is there already is not reused");
    }

    #[tokio::test]
    async fn one_who_gives_up_does_not_stop_the_others() {
        let flights = Flights::default();
        let gate = Arc::new(Notify::new());
        let ask = || {
            let gate = Arc::clone(&gate);
            flights.join("key", move || async move { gate.notified().await }.boxed())
        };
        let (mut impatient, patient) = (ask(), tokio::spawn(ask()));
        assert!(futures::poll!(&mut impatient).is_pending());
        drop(impatient);
        gate.notify_one();
        patient.await.unwrap();
    }
}
