//! Answers that GitHub may confirm instead of repeating them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderValue;

use crate::credential::Asker;

/// Answers that are remembered.
const CAPACITY: usize = 2_048;
/// Larger answers are asked for in full again. Those that matter have some hundred bytes.
const MAXIMUM_BODY_BYTES: usize = 8 * 1024;

/// An answer and the tag by which GitHub knows it (RFC 9110, 8.8.3).
#[derive(Debug, Clone)]
pub(crate) struct Remembered {
    pub(crate) etag: HeaderValue,
    pub(crate) body: Bytes,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<(Asker, Url), (u64, Remembered)>,
    uses: u64,
}

/// The last answer to each request, by asker: an answer to one credential is none for another, and its tag would not match.
#[derive(Debug, Default)]
pub(crate) struct Etags(Mutex<Table>);

impl Etags {
    pub(crate) fn get(&self, asker: Asker, url: &Url) -> Option<Remembered> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses += 1;
        let now = table.uses;
        let (used, remembered) = table.entries.get_mut(&(asker, url.clone()))?;
        *used = now;
        Some(remembered.clone())
    }

    pub(crate) fn put(&self, asker: Asker, url: &Url, remembered: Remembered) {
        if remembered.body.len() > MAXIMUM_BODY_BYTES {
            return;
        }
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses += 1;
        let key = (asker, url.clone());
        if table.entries.len() >= CAPACITY && !table.entries.contains_key(&key) {
            let oldest = table
                .entries
                .iter()
                .min_by_key(|(_, (used, _))| *used)
                .map(|(key, _)| key.clone());
            oldest.map(|key| table.entries.remove(&key));
        }
        let used = table.uses;
        table.entries.insert(key, (used, remembered));
    }
}
