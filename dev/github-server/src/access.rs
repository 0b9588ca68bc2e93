//! Credentials: who sends a request, and what that opens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{HeaderMap, header};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ServerError;
use crate::apps::{App, Issued, Revoked};
use crate::rate_limit::Counter;
use crate::repositories::FullName;

/// A personal access token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Token {
    /// The token itself.
    pub token: String,
    /// The private repositories that it opens, as `owner/name` by their present names.
    #[serde(default)]
    pub repositories: BTreeSet<String>,
    /// The scopes of a classic token, as the header `x-oauth-scopes` tells them. Fine-grained tokens have none and no header.
    #[serde(default)]
    pub scopes: Option<String>,
    /// Whether it may read contents. Without, private repositories can be seen and their contents are refused (403).
    #[serde(default = "yes")]
    pub contents: bool,
    /// How the token is refused although it is valid.
    #[serde(default)]
    pub refusal: Option<TokenRefusal>,
}

fn yes() -> bool {
    true
}

impl Token {
    /// A fine-grained token that may read the contents of these repositories.
    pub fn for_repositories<'a>(
        token: impl Into<String>,
        repositories: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self {
            token: token.into(),
            repositories: repositories.into_iter().map(str::to_owned).collect(),
            scopes: None,
            contents: true,
            refusal: None,
        }
    }

    /// The same as a classic token with these scopes.
    #[must_use]
    pub fn scopes(mut self, scopes: &str) -> Self {
        self.scopes = Some(scopes.to_owned());
        self
    }
}

/// How a valid token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TokenRefusal {
    /// The organisation wants it authorised for single sign-on: 403 with `x-github-sso`, for private repositories.
    SingleSignOn,
    /// A secondary limit without any header that says how long: 403 with a text, for everything.
    SecondaryLimit,
}

/// What a request's credential opens.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    /// By which requests are counted.
    pub(crate) label: String,
    pub(crate) repositories: BTreeSet<String>,
    pub(crate) scopes: Option<String>,
    pub(crate) contents: bool,
    pub(crate) refusal: Option<TokenRefusal>,
    pub(crate) counter: Arc<Counter>,
}

/// Who sends a request.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    Anonymous,
    Token(Grant),
    /// Something that looks like the word of an App for itself.
    App(String),
    /// A token that is not known, or no longer.
    Unknown,
}

impl Caller {
    /// By which requests are counted.
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Token(grant) => &grant.label,
            Self::App(_) => "app",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) fn grant(&self) -> Option<&Grant> {
        match self {
            Self::Token(grant) => Some(grant),
            Self::Anonymous | Self::App(_) | Self::Unknown => None,
        }
    }

    /// Whether the caller sees this private repository. An App may ask about all, and is told only where it is installed.
    pub(crate) fn sees(&self, name: &FullName) -> bool {
        match self {
            Self::App(_) => true,
            Self::Token(grant) => grant.repositories.contains(&name.to_string()),
            Self::Anonymous | Self::Unknown => false,
        }
    }
}

#[derive(Debug)]
struct Table {
    tokens: BTreeMap<String, (Token, Arc<Counter>)>,
    apps: BTreeMap<String, App>,
    issued: BTreeMap<String, Issued>,
    number: u64,
}

/// All credentials of a server.
#[derive(Debug)]
pub(crate) struct Credentials {
    rate_limit: u32,
    table: Mutex<Table>,
}

impl Credentials {
    /// Each credential may send `rate_limit` requests an hour, unless told otherwise.
    pub(crate) fn new(rate_limit: u32) -> Self {
        Self {
            rate_limit,
            table: Mutex::new(Table {
                tokens: BTreeMap::new(),
                apps: BTreeMap::new(),
                issued: BTreeMap::new(),
                number: 0,
            }),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the token that is called `label`.
    pub(crate) fn set_token(&self, label: &str, token: Token) {
        let mut table = self.table();
        let counter = table.tokens.get(label).map(|(_, counter)| Arc::clone(counter));
        let counter = counter.unwrap_or_else(|| Counter::shared(self.rate_limit));
        table.tokens.insert(label.to_owned(), (token, counter));
    }

    /// Revokes the token that is called `label`.
    pub(crate) fn remove_token(&self, label: &str) -> Result<(), ServerError> {
        let removed = self.table().tokens.remove(label);
        removed
            .map(drop)
            .ok_or_else(|| ServerError::NotFound(format!("no token is called `{label}`")))
    }

    /// Sets the App with this id.
    pub(crate) fn set_app(&self, id: &str, app: App) -> Result<(), ServerError> {
        app.check()?;
        self.table().apps.insert(id.to_owned(), app);
        Ok(())
    }

    pub(crate) fn app(&self, id: &str) -> Option<App> {
        self.table().apps.get(id).cloned()
    }

    /// What an installation was given so far, without the tokens themselves.
    pub(crate) fn issued(&self, app: &str) -> Vec<Issued> {
        let mut issued: Vec<_> = self
            .table()
            .issued
            .values()
            .filter(|issued| issued.app == app)
            .cloned()
            .collect();
        issued.sort_by_key(|issued| issued.number);
        issued
    }

    /// Ends all tokens of an App before their time.
    pub(crate) fn revoke(&self, app: &str) -> Revoked {
        let mut table = self.table();
        let before = table.issued.len();
        table.issued.retain(|_, issued| issued.app != app);
        Revoked {
            revoked: before - table.issued.len(),
        }
    }

    /// Remembers a new token; `make` gets its number and returns the token with what it opens.
    pub(crate) fn issue(&self, make: impl FnOnce(u64) -> (String, Issued)) -> (String, Issued) {
        let mut table = self.table();
        table.number += 1;
        let (token, mut issued) = make(table.number);
        // All tokens of an installation share its limit.
        let shared = table
            .issued
            .values()
            .find(|known| known.label() == issued.label())
            .map(|known| Arc::clone(&known.counter));
        issued.counter = shared.unwrap_or_else(|| Counter::shared(self.rate_limit));
        table.issued.insert(token.clone(), issued.clone());
        (token, issued)
    }

    /// The rate limit of the credential that is called `label`.
    pub(crate) fn counter(&self, label: &str) -> Result<Arc<Counter>, ServerError> {
        let table = self.table();
        let token = table.tokens.get(label).map(|(_, counter)| counter);
        let issued = || {
            let mut all = table.issued.values();
            all.find(|issued| issued.label() == label)
                .map(|issued| &issued.counter)
        };
        token
            .or_else(issued)
            .map(Arc::clone)
            .ok_or_else(|| ServerError::NotFound(format!("no credential is called `{label}`")))
    }

    /// Who sends a request with these headers.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Caller {
        let Some(authorization) = headers.get(header::AUTHORIZATION) else {
            return Caller::Anonymous;
        };
        let text = authorization.to_str().unwrap_or_default();
        let token = ["Bearer ", "bearer ", "token "]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme));
        let Some(token) = token else {
            return Caller::Unknown;
        };
        let table = self.table();
        let personal = table
            .tokens
            .iter()
            .find(|(_, (known, _))| known.token == token)
            .map(|(label, (known, counter))| Grant {
                label: label.clone(),
                repositories: known.repositories.clone(),
                scopes: known.scopes.clone(),
                contents: known.contents,
                refusal: known.refusal,
                counter: Arc::clone(counter),
            });
        if let Some(grant) = personal {
            return Caller::Token(grant);
        }
        match table.issued.get(token) {
            Some(issued) if Timestamp::now() < issued.expires_at => Caller::Token(issued.grant()),
            // Tokens of installations have dots as well, and are known.
            None if token.split('.').count() == 3 => Caller::App(token.to_owned()),
            Some(_) | None => Caller::Unknown,
        }
    }
}
