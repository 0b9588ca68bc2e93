//! Who may read which repository, as far as GitHub has shown it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codeworkspace_bundle::code::Repository;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::later;
use crate::credential::Asker;
use crate::store::{Key, Store};

/// Proofs that are remembered.
const CAPACITY: usize = 10_000;
/// A proof on disk is replaced when so many parts of its lifetime are over: not with every answer.
const RENEWED_AFTER: u32 = 4;

/// A repository on one host, and somebody who asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ProofKey {
    pub(crate) host: String,
    pub(crate) repository: Repository,
    pub(crate) asker: Asker,
}

impl ProofKey {
    /// The key of a record about this asker and repository.
    pub(super) fn record(&self, kind: &str) -> Key {
        Key::of(&[
            kind,
            &self.host,
            &self.repository.to_string(),
            &self.asker.to_string(),
        ])
    }

    fn public(&self) -> Self {
        Self {
            asker: Asker::Anonymous,
            ..self.clone()
        }
    }
}

/// That GitHub has let the asker read the repository's contents. How long this is believed is the configuration's matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub(crate) made: Timestamp,
    /// What else the asker's token may do: the scopes of a classic token, as GitHub told them with the answer.
    pub(crate) scopes: Vec<String>,
}

#[derive(Debug)]
struct Entry {
    proof: Proof,
    /// The proof as the disk has it.
    saved: Option<Proof>,
}

#[derive(Debug, Default)]
struct Table {
    proofs: HashMap<ProofKey, Entry>,
    /// When a host last rejected a credential: what the disk says from before is void.
    rejected: HashMap<(String, Asker), Timestamp>,
}

/// Unexpired proofs. A cached tree is served only to those who have one, for everybody when anonymous callers have it.
#[derive(Debug)]
pub(crate) struct Proofs {
    lifetime: Duration,
    table: Mutex<Table>,
    store: Store,
}

impl Proofs {
    pub(crate) fn new(lifetime: Duration, store: Store) -> Self {
        Self {
            lifetime,
            table: Mutex::default(),
            store,
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A proof from the future was made before the clock was set back, and says nothing.
    fn holds(&self, proof: &Proof, now: Timestamp) -> bool {
        proof.made <= now && now < later(proof.made, self.lifetime)
    }

    /// The asker's own proof, if it holds.
    pub(crate) fn own(&self, key: &ProofKey, now: Timestamp) -> Option<Proof> {
        let table = self.table();
        let proof = &table.proofs.get(key)?.proof;
        self.holds(proof, now).then(|| proof.clone())
    }

    /// Whether the asker may be served: by its own proof, or because the repository is public.
    pub(crate) async fn permits(&self, key: &ProofKey, now: Timestamp) -> bool {
        let public = key.public();
        if self.own(key, now).is_some() || self.own(&public, now).is_some() {
            return true;
        }
        self.recall(key, now).await;
        if *key != public {
            self.recall(&public, now).await;
        }
        self.own(key, now).is_some() || self.own(&public, now).is_some()
    }

    /// GitHub has just answered the asker.
    pub(crate) async fn put(&self, key: &ProofKey, now: Timestamp, scopes: Vec<String>) {
        let proof = Proof { made: now, scopes };
        let saved = self.table().proofs.get(key).and_then(|entry| entry.saved.clone());
        let is_fresh = |saved: &Proof| {
            saved.scopes == proof.scopes
                && saved.made <= now
                && now < later(saved.made, self.lifetime / RENEWED_AFTER)
        };
        let name = key.record("proof");
        let save = !saved.as_ref().is_some_and(is_fresh) || !self.store.touch_record(&name);
        let saved = if save { Some(proof.clone()) } else { saved };
        let entry = Entry {
            proof: proof.clone(),
            saved,
        };
        self.insert(key, entry, now);
        if save {
            self.store.put_record(&name, &proof).await;
        }
    }

    /// GitHub no longer accepts the asker's credential.
    pub(crate) async fn revoke_all(&self, host: &str, asker: Asker, now: Timestamp) {
        {
            let mut table = self.table();
            table
                .proofs
                .retain(|key, _| key.asker != asker || key.host != host);
            table
                .rejected
                .retain(|_, at| *at <= now && now < later(*at, self.lifetime));
            table.rejected.insert((host.to_owned(), asker), now);
        }
        // One record voids all proofs, also those that this process has not read yet.
        self.store.put_record(&rejection(host, asker), &now).await;
    }

    /// Reads a proof that an earlier process stored.
    async fn recall(&self, key: &ProofKey, now: Timestamp) {
        let Some(proof) = self.store.record::<Proof>(&key.record("proof")).await else {
            return;
        };
        let stored: Option<Timestamp> = self.store.record(&rejection(&key.host, key.asker)).await;
        let rejected = (key.host.clone(), key.asker);
        let rejected = self.table().rejected.get(&rejected).copied().max(stored);
        let is_void = rejected.is_some_and(|at| proof.made <= at);
        if is_void || !self.holds(&proof, now) || self.own(key, now).is_some() {
            return;
        }
        let saved = Some(proof.clone());
        self.insert(key, Entry { proof, saved }, now);
    }

    fn insert(&self, key: &ProofKey, entry: Entry, now: Timestamp) {
        let proofs = &mut self.table().proofs;
        if proofs.len() >= CAPACITY && !proofs.contains_key(key) {
            proofs.retain(|_, entry| self.holds(&entry.proof, now));
            let first_to_expire = proofs
                .iter()
                .min_by_key(|(_, entry)| entry.proof.made)
                .map(|(key, _)| key.clone())
                .filter(|_| proofs.len() >= CAPACITY);
            first_to_expire.map(|key| proofs.remove(&key));
        }
        proofs.insert(key.clone(), entry);
    }
}

fn rejection(host: &str, asker: Asker) -> Key {
    Key::of(&["rejected", host, &asker.to_string()])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::*;
    use crate::clock::ManualClock;
    use crate::configuration::{GithubConfiguration, Limits};
    use crate::credential::Credential;

    const HOUR: i64 = 3600;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    fn asker(token: &str) -> Asker {
        crate::credential::Access::Credential(Credential::token("team/github", token.as_bytes()).unwrap())
            .asker()
    }

    fn key(repository: &str, asker: Asker) -> ProofKey {
        ProofKey {
            host: "api.github.com".to_owned(),
            repository: repository.parse().unwrap(),
            asker,
        }
    }

    /// The proofs of a new process with this folder.
    fn proofs(folder: &TempDir) -> Proofs {
        let configuration = GithubConfiguration {
            cache_directory: Some(folder.path().to_owned()),
            ..GithubConfiguration::default()
        };
        let limits = Limits::parse(&configuration).unwrap();
        let store = configuration.store(&limits).unwrap();
        let clock = Arc::new(ManualClock::new(at(0)));
        Proofs::new(limits.proof, Store::new(store, clock))
    }

    #[tokio::test]
    async fn a_proof_is_of_one_asker_and_one_repository_also_in_the_next_process() {
        let folder = TempDir::new().unwrap();
        let (mine, theirs) = (asker("ghp_mine"), asker("ghp_theirs"));
        let scopes = vec!["repo".to_owned()];
        let before = proofs(&folder);
        before.put(&key("octo/secret", mine), at(0), scopes.clone()).await;
        before
            .put(&key("octo/public", Asker::Anonymous), at(0), Vec::new())
            .await;
        drop(before);

        let after = proofs(&folder);
        for (repository, asker, permitted) in [
            ("octo/secret", mine, true),
            ("octo/secret", theirs, false),
            ("octo/secret", Asker::Anonymous, false),
            ("octo/other", mine, false),
            ("octo/public", theirs, true),
        ] {
            let key = key(repository, asker);
            assert_eq!(after.permits(&key, at(24 * HOUR - 1)).await, permitted, "{key:?}");
            assert!(!after.permits(&key, at(24 * HOUR)).await, "{key:?}");
        }
        let own = after.own(&key("octo/secret", mine), at(1)).unwrap();
        assert_eq!((own.made, own.scopes), (at(0), scopes));
    }

    #[tokio::test]
    async fn a_rejected_credential_has_no_proofs_in_the_next_process_until_it_works_again() {
        let folder = TempDir::new().unwrap();
        let (mine, theirs) = (asker("ghp_mine"), asker("ghp_theirs"));
        let before = proofs(&folder);
        for asker in [mine, theirs] {
            before.put(&key("octo/secret", asker), at(0), Vec::new()).await;
        }
        drop(before);

        // This process never reads the proof that the rejection voids.
        let middle = proofs(&folder);
        middle.revoke_all("api.github.com", mine, at(1)).await;
        drop(middle);

        let after = proofs(&folder);
        assert!(!after.permits(&key("octo/secret", mine), at(2)).await);
        assert!(after.permits(&key("octo/secret", theirs), at(2)).await);
        after.put(&key("octo/secret", mine), at(3), Vec::new()).await;
        drop(after);
        assert!(proofs(&folder).permits(&key("octo/secret", mine), at(4)).await);
    }

    #[tokio::test]
    async fn a_proof_is_written_again_only_when_it_has_aged() {
        let folder = TempDir::new().unwrap();
        let key = key("octo/secret", asker("ghp_mine"));
        let before = proofs(&folder);
        for hour in [0, 5, 6, 11] {
            before.put(&key, at(hour * HOUR), Vec::new()).await;
        }
        drop(before);
        let after = proofs(&folder);
        assert!(after.permits(&key, at(12 * HOUR)).await);
        assert_eq!(
            after.own(&key, at(12 * HOUR)).unwrap().made,
            at(6 * HOUR),
            "not the last one"
        );
    }
}
