//! What callers asked for, counted.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, header};
use serde::Serialize;

use crate::switches::RequestKind;

/// Counts since the start or the last reset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// All requests by kind, on both listeners.
    pub kinds: BTreeMap<RequestKind, u64>,
    /// The same for each repository, by the name that the caller used.
    pub repositories: BTreeMap<String, BTreeMap<RequestKind, u64>>,
    /// Requests outside the part of the API that this server plays.
    pub unknown: u64,
    /// Requests that carried a credential of any sort, by kind. The query token of an archive of a private repository is none: the
    /// server itself has put it into the redirect.
    pub credentials: BTreeMap<RequestKind, u64>,
    /// All requests by the credential that they carried in `Authorization`, and by kind: a token's name, `installation-` and its
    /// number, `app` for an App's word for itself, `unknown`, or `anonymous`.
    pub callers: BTreeMap<String, BTreeMap<RequestKind, u64>>,
    /// Answers that only confirmed what the caller had (304).
    pub confirmed: u64,
}

impl Requests {
    /// How many requests of this kind came.
    pub fn of(&self, kind: RequestKind) -> u64 {
        self.kinds.get(&kind).copied().unwrap_or_default()
    }

    /// How many requests came to the API, which are those that GitHub counts against a rate limit.
    pub fn api(&self) -> u64 {
        self.total() - self.of(RequestKind::Download)
    }

    /// How many requests came in all.
    pub fn total(&self) -> u64 {
        self.unknown + self.kinds.values().sum::<u64>()
    }

    /// How many requests of this kind carried the credential of this name.
    pub fn by(&self, caller: &str, kind: RequestKind) -> u64 {
        let kinds = self.callers.get(caller);
        kinds
            .and_then(|kinds| kinds.get(&kind))
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn record(
        &mut self,
        repository: &str,
        caller: &str,
        kind: RequestKind,
        headers: &HeaderMap,
        query: Option<&str>,
    ) {
        *self.kinds.entry(kind).or_default() += 1;
        *self
            .repositories
            .entry(repository.to_owned())
            .or_default()
            .entry(kind)
            .or_default() += 1;
        *self
            .callers
            .entry(caller.to_owned())
            .or_default()
            .entry(kind)
            .or_default() += 1;
        if has_credential(headers, query) {
            *self.credentials.entry(kind).or_default() += 1;
        }
    }
}

fn has_credential(headers: &HeaderMap, query: Option<&str>) -> bool {
    let telling = ["authorization", "token", "api-key", "cookie", "credential"];
    headers
        .keys()
        .filter(|name| *name != header::HOST)
        .any(|name| telling.iter().any(|word| name.as_str().contains(word)))
        || query.is_some_and(|query| query.contains("token"))
}
