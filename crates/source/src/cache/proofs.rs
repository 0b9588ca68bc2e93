//! Who may read which repository, as far as GitHub has shown it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codeworkspace_bundle::code::Repository;
use jiff::Timestamp;

use crate::clock::later;
use crate::credential::Asker;

/// Proofs that are remembered.
const CAPACITY: usize = 10_000;

/// A repository on one host, and somebody who asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ProofKey {
    pub(crate) host: String,
    pub(crate) repository: Repository,
    pub(crate) asker: Asker,
}

/// That GitHub has let the asker read the repository's contents, and until when this is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) expires: Timestamp,
    /// What else the asker's token may do: the scopes of a classic token, as GitHub told them with the answer.
    pub(crate) scopes: Vec<String>,
}

/// Unexpired proofs. A cached tree is served only to those who have one, for everybody when anonymous callers have it.
#[derive(Debug)]
pub(crate) struct Proofs {
    lifetime: Duration,
    table: Mutex<HashMap<ProofKey, Proof>>,
}

impl Proofs {
    pub(crate) fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<ProofKey, Proof>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A proof that would hold for longer than any is given was made before the clock was set back or the lifetime was
    /// shortened, and says nothing.
    fn holds(&self, proof: &Proof, now: Timestamp) -> bool {
        now < proof.expires && proof.expires <= later(now, self.lifetime)
    }

    /// The asker's own proof, if it holds.
    pub(crate) fn own(&self, key: &ProofKey, now: Timestamp) -> Option<Proof> {
        let proof = self.table().get(key).cloned()?;
        self.holds(&proof, now).then_some(proof)
    }

    /// Whether the asker may be served: by its own proof, or because the repository is public.
    pub(crate) fn permits(&self, key: &ProofKey, now: Timestamp) -> bool {
        let public = ProofKey {
            asker: Asker::Anonymous,
            ..key.clone()
        };
        self.own(key, now).is_some() || self.own(&public, now).is_some()
    }

    /// GitHub has just answered the asker.
    pub(crate) fn put(&self, key: &ProofKey, now: Timestamp, scopes: Vec<String>) {
        let mut table = self.table();
        if table.len() >= CAPACITY && !table.contains_key(key) {
            table.retain(|_, proof| self.holds(proof, now));
            let first_to_expire = table
                .iter()
                .min_by_key(|(_, proof)| proof.expires)
                .map(|(key, _)| key.clone())
                .filter(|_| table.len() >= CAPACITY);
            first_to_expire.map(|key| table.remove(&key));
        }
        let proof = Proof {
            expires: later(now, self.lifetime),
            scopes,
        };
        table.insert(key.clone(), proof);
    }

    /// GitHub no longer accepts the asker's credential.
    pub(crate) fn revoke_all(&self, host: &str, asker: Asker) {
        self.table()
            .retain(|key, _| key.asker != asker || key.host != host);
    }
}
