use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codeworkspace_bundle::code::{CacheClass, CommitId};
use jiff::Timestamp;

use super::ReferenceKey;
use crate::clock::later;
use crate::error::{SourceError, SourceErrorReason};

/// How long a version tag is believed (AIP-26: tags may move, but rarely do).
const VERSION_LIFETIME: Duration = Duration::from_hours(24);
/// How long a failure that may pass is shared with others who ask. Shorter than the floor, so that one lost packet
/// does not cost half a minute.
const TRANSIENT_LIFETIME: Duration = Duration::from_secs(5);
/// Branches and tags that are remembered.
const CAPACITY: usize = 10_000;

/// Where a branch or tag leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) commit: CommitId,
    /// What the manifest's author should know, for example that the repository has another name now.
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Default)]
struct Entry {
    answer: Option<(Timestamp, Result<Resolved, SourceError>)>,
    /// The last commit whose tree could be had.
    last_good: Option<CommitId>,
    /// Somebody wants to know anew, so that only the floor protects the answer.
    expired: bool,
    used: u64,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<ReferenceKey, Entry>,
    uses: u64,
}

impl Table {
    fn entry(&mut self, key: &ReferenceKey) -> &mut Entry {
        self.uses += 1;
        if self.entries.len() >= CAPACITY && !self.entries.contains_key(key) {
            let oldest = self
                .entries
                .iter()
                .min_by_key(|(_, entry)| entry.used)
                .map(|(key, _)| key.clone());
            oldest.map(|key| self.entries.remove(&key));
        }
        let entry = self.entries.entry(key.clone()).or_default();
        entry.used = self.uses;
        entry
    }
}

/// The answers to look-ups, good and bad, each for as long as it may be believed.
#[derive(Debug)]
pub(crate) struct Lookups {
    floor: Duration,
    table: Mutex<Table>,
}

impl Lookups {
    pub(crate) fn new(floor: Duration) -> Self {
        Self {
            floor,
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer that is still young enough, if there is one.
    pub(crate) fn get(&self, key: &ReferenceKey, now: Timestamp) -> Option<Result<Resolved, SourceError>> {
        let mut table = self.table();
        let entry = table.entry(key);
        let (at, answer) = entry.answer.as_ref()?;
        let lifetime = match answer {
            Ok(_) if key.reference.cache_class() == CacheClass::Day && !entry.expired => VERSION_LIFETIME,
            Err(error) if error.is_transient() => TRANSIENT_LIFETIME.min(self.floor),
            Ok(_) | Err(_) => self.floor,
        };
        // An answer from the future means that the clock was set back, and its age is unknown.
        (*at <= now && now < later(*at, lifetime)).then(|| answer.clone())
    }

    /// Remembers an answer. That the host is limited concerns all its repositories and is remembered elsewhere.
    pub(crate) fn put(&self, key: &ReferenceKey, now: Timestamp, answer: &Result<Resolved, SourceError>) {
        if matches!(answer, Err(error) if error.reason == SourceErrorReason::RateLimited) {
            return;
        }
        let mut table = self.table();
        let entry = table.entry(key);
        entry.answer = Some((now, answer.clone()));
        entry.expired = false;
    }

    /// Lets the next look-up ask again as soon as the floor allows.
    pub(crate) fn expire(&self, key: &ReferenceKey) {
        self.table().entry(key).expired = true;
    }

    pub(crate) fn last_good(&self, key: &ReferenceKey) -> Option<CommitId> {
        self.table().entry(key).last_good.clone()
    }

    pub(crate) fn set_last_good(&self, key: &ReferenceKey, commit: &CommitId) {
        self.table().entry(key).last_good = Some(commit.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::Asker;

    fn key(reference: &str) -> ReferenceKey {
        ReferenceKey {
            host: "api.github.com".to_owned(),
            repository: "octo/tools".parse().unwrap(),
            reference: reference.parse().unwrap(),
            asker: Asker::Anonymous,
        }
    }

    fn resolved() -> Resolved {
        Resolved {
            commit: "0123456789012345678901234567890123456789".parse().unwrap(),
            warnings: Vec::new(),
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    /// The last of the interesting seconds at which the answer is still believed.
    fn lifetime(lookups: &Lookups, reference: &str, answer: &Result<Resolved, SourceError>) -> Option<i64> {
        const DAY: i64 = 24 * 3600;
        lookups.put(&key(reference), at(0), answer);
        let seconds = [0, 4, 5, 29, 30, DAY - 1, DAY, 10 * DAY];
        let believed = |second: &i64| lookups.get(&key(reference), at(*second)).is_some();
        seconds.into_iter().rev().find(believed)
    }

    #[test]
    fn a_branch_is_believed_for_the_floor_and_a_version_for_a_day() {
        let lookups = Lookups::new(Duration::from_secs(30));
        assert_eq!(lifetime(&lookups, "main", &Ok(resolved())), Some(29));
        assert_eq!(lifetime(&lookups, "v1.2", &Ok(resolved())), Some(24 * 3600 - 1));
        lookups.expire(&key("v1.2"));
        assert_eq!(
            lookups.get(&key("v1.2"), at(29)),
            Some(Ok(resolved())),
            "the floor holds also for a refresh"
        );
        assert_eq!(lookups.get(&key("v1.2"), at(30)), None);
    }

    #[test]
    fn failures_are_shared_for_a_while_and_limits_are_not() {
        let lookups = Lookups::new(Duration::from_secs(30));
        let failed = |reason| Err(SourceError::new(reason, "x"));
        assert_eq!(
            lifetime(&lookups, "a", &failed(SourceErrorReason::RepoOrRefNotFound)),
            Some(29)
        );
        assert_eq!(
            lifetime(&lookups, "b", &failed(SourceErrorReason::FetchFailed)),
            Some(4)
        );
        assert_eq!(
            lifetime(&lookups, "c", &failed(SourceErrorReason::RateLimited)),
            None
        );
    }

    #[test]
    fn a_clock_that_was_set_back_makes_answers_old() {
        let lookups = Lookups::new(Duration::from_secs(30));
        lookups.put(&key("main"), at(0), &Ok(resolved()));
        assert_eq!(lookups.get(&key("main"), at(-1)), None);
    }

    #[test]
    fn the_table_forgets_what_was_not_used_for_longest() {
        let lookups = Lookups::new(Duration::from_secs(30));
        lookups.put(&key("first"), at(0), &Ok(resolved()));
        lookups.put(&key("second"), at(0), &Ok(resolved()));
        assert!(lookups.get(&key("first"), at(0)).is_some());
        for number in 2..=CAPACITY {
            lookups.put(&key(&format!("branch-{number}")), at(0), &Ok(resolved()));
        }
        assert_eq!(lookups.table().entries.len(), CAPACITY);
        assert!(lookups.table().entries.contains_key(&key("first")));
        assert!(!lookups.table().entries.contains_key(&key("second")));
    }
}
