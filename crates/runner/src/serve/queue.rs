//! Calls that wait for one worker.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// First come, first served; bounded.
pub(super) struct Queue<T> {
    depth: usize,
    state: Mutex<State<T>>,
    arrived: Notify,
}

struct State<T> {
    waiting: VecDeque<T>,
    worker_is_free: bool,
}

/// There is no room for another call, which is given back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full<T>(pub(super) T);

impl<T> Queue<T> {
    /// A queue in which at most `depth` calls wait, beside the one that the worker has.
    pub(super) fn new(depth: usize) -> Self {
        Self {
            depth,
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                worker_is_free: true,
            }),
            arrived: Notify::new(),
        }
    }

    /// Takes a call in.
    pub(super) fn push(&self, call: T) -> Result<(), Full<T>> {
        let mut state = self.lock();
        // What a free worker is about to take does not wait.
        if state.waiting.len() >= self.depth + usize::from(state.worker_is_free) {
            return Err(Full(call));
        }
        state.waiting.push_back(call);
        self.arrived.notify_one();
        Ok(())
    }

    /// The next call, for the only worker. It is free until it gets one.
    pub(super) async fn next(&self) -> T {
        loop {
            {
                let mut state = self.lock();
                let next = state.waiting.pop_front();
                state.worker_is_free = next.is_none();
                if let Some(call) = next {
                    return call;
                }
            }
            self.arrived.notified().await;
        }
    }

    /// Takes out the calls that need not wait any more.
    pub(super) fn take_if(&self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut state = self.lock();
        let (taken, left) = state
            .waiting
            .drain(..)
            .partition::<VecDeque<_>, _>(|call| wanted(call));
        state.waiting = left;
        taken.into()
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_are_served_in_their_order_and_one_too_many_is_given_back() {
        let queue = Queue::new(2);
        for call in 1..=3 {
            assert_eq!(queue.push(call), Ok(()), "one for the free worker, two wait");
        }
        assert_eq!(queue.push(4), Err(Full(4)));
        assert_eq!(queue.next().await, 1);
        assert_eq!(queue.push(5), Err(Full(5)), "the worker is busy and two wait");
        assert_eq!(queue.next().await, 2);
        assert_eq!(queue.push(6), Ok(()));
        assert_eq!((queue.next().await, queue.next().await), (3, 6));
    }

    #[tokio::test]
    async fn a_call_that_gave_up_makes_room() {
        let queue = Queue::new(2);
        for call in 1..=3 {
            queue.push(call).unwrap();
        }
        assert_eq!(queue.take_if(|call| *call == 2), [2]);
        assert_eq!(queue.push(4), Ok(()));
        assert_eq!(
            (queue.next().await, queue.next().await, queue.next().await),
            (1, 3, 4)
        );
    }

    #[tokio::test]
    async fn a_waiting_worker_is_woken() {
        let queue = Queue::new(1);
        let (call, pushed) = tokio::join!(queue.next(), async { queue.push("late") });
        assert_eq!((call, pushed), ("late", Ok(())));
    }
}
