use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codeworkspace_bundle::code::{CacheClass, CommitId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ReferenceKey;
use crate::clock::{later, until};
use crate::error::{SourceError, SourceErrorReason};
use crate::store::{Key, Store};

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
    /// There is something that the disk should know.
    unsaved: bool,
    used: u64,
}

/// What outlives the process. Not how long an answer is believed: that depends on the configuration, and on its class.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    answer: Option<RecordedAnswer>,
    last_good: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedAnswer {
    at: Timestamp,
    commit: String,
    warnings: Vec<String>,
}

impl Record {
    fn of(entry: &Entry) -> Self {
        let good = |(at, answer): &(Timestamp, Result<Resolved, SourceError>)| {
            let resolved = answer.as_ref().ok()?;
            Some(RecordedAnswer {
                at: *at,
                commit: resolved.commit.to_string(),
                warnings: resolved.warnings.clone(),
            })
        };
        Self {
            answer: entry.answer.as_ref().and_then(good),
            last_good: entry.last_good.as_ref().map(ToString::to_string),
        }
    }

    /// Fills in what the entry lacks: what it has is newer.
    fn recall(self, entry: &mut Entry) {
        let answer = self.answer.and_then(|answer| {
            let resolved = Resolved {
                commit: answer.commit.parse().ok()?,
                warnings: answer.warnings,
            };
            Some((answer.at, Ok(resolved)))
        });
        entry.answer = entry.answer.take().or(answer);
        let last_good = self.last_good.and_then(|commit| commit.parse().ok());
        entry.last_good = entry.last_good.take().or(last_good);
    }
}

fn record_key(key: &ReferenceKey) -> Key {
    Key::of(&[
        "reference",
        &key.host,
        &key.repository.to_string(),
        &key.reference.to_string(),
        &key.asker.to_string(),
    ])
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
    store: Store,
}

impl Lookups {
    pub(crate) fn new(floor: Duration, store: Store) -> Self {
        Self {
            floor,
            table: Mutex::default(),
            store,
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
        // Others are not believed for long enough to outlive anything.
        entry.unsaved |= answer.is_ok() && key.reference.cache_class() == CacheClass::Day;
    }

    /// Lets the next look-up ask again as soon as the floor allows, and tells when that is unless it is now.
    pub(crate) fn expire(&self, key: &ReferenceKey, now: Timestamp) -> Option<Duration> {
        let mut table = self.table();
        let entry = table.entry(key);
        entry.expired = true;
        let (at, _) = entry.answer.as_ref().filter(|(at, _)| *at <= now)?;
        Some(until(now, later(*at, self.floor))).filter(|wait| !wait.is_zero())
    }

    pub(crate) fn last_good(&self, key: &ReferenceKey) -> Option<CommitId> {
        self.table().entry(key).last_good.clone()
    }

    pub(crate) fn set_last_good(&self, key: &ReferenceKey, commit: &CommitId) {
        let mut table = self.table();
        let entry = table.entry(key);
        if entry.last_good.as_ref() != Some(commit) {
            entry.last_good = Some(commit.clone());
            entry.unsaved = true;
        }
    }

    /// Reads what was known of a branch or tag before the process began, unless something good is known since.
    pub(crate) async fn recall(&self, key: &ReferenceKey) {
        if self.table().entry(key).last_good.is_some() {
            return;
        }
        if let Some(record) = self.store.record::<Record>(&record_key(key)).await {
            record.recall(self.table().entry(key));
        }
    }

    /// Stores what is new of a branch or tag.
    pub(crate) async fn save(&self, key: &ReferenceKey) {
        let name = record_key(key);
        let record = {
            let mut table = self.table();
            let entry = table.entry(key);
            let is_worth_it = std::mem::take(&mut entry.unsaved)
                || entry.last_good.is_some() && !self.store.touch_record(&name);
            is_worth_it.then(|| Record::of(entry))
        };
        if let Some(record) = record {
            self.store.put_record(&name, &record).await;
        }
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
        let lookups = Lookups::new(Duration::from_secs(30), Store::default());
        assert_eq!(lifetime(&lookups, "main", &Ok(resolved())), Some(29));
        assert_eq!(lifetime(&lookups, "v1.2", &Ok(resolved())), Some(24 * 3600 - 1));
        assert_eq!(
            lookups.expire(&key("v1.2"), at(10)),
            Some(Duration::from_secs(20))
        );
        assert_eq!(lookups.expire(&key("v1.2"), at(40)), None);
        assert_eq!(
            lookups.get(&key("v1.2"), at(29)),
            Some(Ok(resolved())),
            "the floor holds also for a refresh"
        );
        assert_eq!(lookups.get(&key("v1.2"), at(30)), None);
    }

    #[test]
    fn failures_are_shared_for_a_while_and_limits_are_not() {
        let lookups = Lookups::new(Duration::from_secs(30), Store::default());
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
        let lookups = Lookups::new(Duration::from_secs(30), Store::default());
        lookups.put(&key("main"), at(0), &Ok(resolved()));
        assert_eq!(lookups.get(&key("main"), at(-1)), None);
    }

    #[test]
    fn the_table_forgets_what_was_not_used_for_longest() {
        let lookups = Lookups::new(Duration::from_secs(30), Store::default());
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
