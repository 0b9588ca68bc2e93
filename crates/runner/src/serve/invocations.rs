//! The memory of recent calls, by which a repeated call is known and not run again.

use std::collections::{HashMap, VecDeque};

use aws_lc_rs::digest::{SHA256, digest};
use serde::Serialize;

/// What a call has come to so far.
pub(super) trait Outcome: Clone {
    /// Bytes that are kept of it; `None` while it still goes on, which keeps it from being forgotten.
    fn kept_bytes(&self) -> Option<usize>;
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Calls that ended.
    pub(super) calls: usize,
    /// Bytes of all calls that ended.
    pub(super) bytes: usize,
    /// Ids of forgotten calls, which still are not run again.
    pub(super) forgotten: usize,
}

/// What tells one call from another of the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of a kind of call and everything that it asks for.
    pub(super) fn of(kind: &str, request: &impl Serialize) -> Result<Self, serde_json::Error> {
        let text = serde_json::to_vec(&(kind, request))?;
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, &text).as_ref());
        Ok(Self(bytes))
    }
}

/// What is known of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recall<T> {
    /// It was not made before.
    New,
    /// It is this one.
    Same(T),
    /// Another call has this id.
    Other,
    /// It was made, and what it came to is not kept any more.
    Forgotten,
}

pub(super) struct Invocations<T> {
    limits: Limits,
    calls: HashMap<String, (Fingerprint, T)>,
    /// Ids of `calls`, oldest first.
    order: VecDeque<String>,
    forgotten: VecDeque<(String, Fingerprint)>,
}

impl<T: Outcome> Invocations<T> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            calls: HashMap::new(),
            order: VecDeque::new(),
            forgotten: VecDeque::new(),
        }
    }

    pub(super) fn recall(&self, id: &str, fingerprint: Fingerprint) -> Recall<T> {
        if let Some((known, call)) = self.calls.get(id) {
            return if *known == fingerprint {
                Recall::Same(call.clone())
            } else {
                Recall::Other
            };
        }
        match self.forgotten.iter().find(|(forgotten, _)| forgotten == id) {
            Some((_, known)) if *known == fingerprint => Recall::Forgotten,
            Some(_) => Recall::Other,
            None => Recall::New,
        }
    }

    /// The call of this id, whatever it asked for.
    pub(super) fn get(&self, id: &str) -> Option<&T> {
        self.calls.get(id).map(|(_, call)| call)
    }

    /// Remembers a new call, and forgets the oldest ones that are too much.
    pub(super) fn remember(&mut self, id: String, fingerprint: Fingerprint, call: T) {
        self.order.push_back(id.clone());
        self.calls.insert(id, (fingerprint, call));
        self.forget();
    }

    fn forget(&mut self) {
        let ended: Vec<(String, usize)> = self
            .order
            .iter()
            .filter_map(|id| Some((id.clone(), self.calls.get(id)?.1.kept_bytes()?)))
            .collect();
        let mut bytes: usize = ended.iter().map(|(_, bytes)| bytes).sum();
        let mut calls = ended.len();
        for (id, kept) in ended {
            if calls <= self.limits.calls && bytes <= self.limits.bytes {
                break;
            }
            (calls, bytes) = (calls - 1, bytes - kept);
            self.order.retain(|known| *known != id);
            if let Some((fingerprint, _)) = self.calls.remove(&id) {
                self.forgotten.push_back((id, fingerprint));
            }
        }
        let surplus = self.forgotten.len().saturating_sub(self.limits.forgotten);
        self.forgotten.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Call(Option<usize>);

    impl Outcome for Call {
        fn kept_bytes(&self) -> Option<usize> {
            self.0
        }
    }

    fn memory(calls: usize, bytes: usize) -> Invocations<Call> {
        Invocations::new(Limits {
            calls,
            bytes,
            forgotten: 2,
        })
    }

    fn print(code: &str) -> Fingerprint {
        Fingerprint::of("execute", &code).unwrap()
    }

    #[test]
    fn a_repeated_call_is_known_and_another_one_of_the_same_id_is_not_it() {
        let mut memory = memory(9, 9);
        assert_eq!(memory.recall("a", print("1")), Recall::New);
        memory.remember("a".to_owned(), print("1"), Call(Some(1)));
        assert_eq!(memory.recall("a", print("1")), Recall::Same(Call(Some(1))));
        assert_eq!(memory.recall("a", print("2")), Recall::Other);
        assert_ne!(print("1"), Fingerprint::of("command", &"1").unwrap());
    }

    #[test]
    fn the_oldest_are_forgotten_by_count_and_by_bytes_and_still_are_not_run_again() {
        for mut memory in [memory(2, 1000), memory(1000, 20)] {
            for id in ["a", "b", "c"] {
                memory.remember(id.to_owned(), print(id), Call(Some(10)));
            }
            assert_eq!(memory.recall("a", print("a")), Recall::Forgotten);
            assert_eq!(memory.recall("a", print("other")), Recall::Other);
            assert_eq!(memory.recall("b", print("b")), Recall::Same(Call(Some(10))));
            for id in ["d", "e"] {
                memory.remember(id.to_owned(), print(id), Call(Some(10)));
            }
            assert_eq!(
                memory.recall("a", print("a")),
                Recall::New,
                "even ids are bounded"
            );
        }
    }

    #[test]
    fn what_still_goes_on_is_never_forgotten() {
        let mut memory = memory(0, 0);
        memory.remember("runs".to_owned(), print("x"), Call(None));
        memory.remember("ended".to_owned(), print("y"), Call(Some(0)));
        assert_eq!(memory.recall("runs", print("x")), Recall::Same(Call(None)));
        assert_eq!(memory.recall("ended", print("y")), Recall::Forgotten);
    }
}
