//! Tokens of GitHub Apps: each for one repository, for reading contents, and kept in memory only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::RSA_PKCS1_SHA256;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use codeworkspace_bundle::code::Repository;
use futures::future::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use reqwest::StatusCode;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;

use super::client::{Caller, Client, Moved};
use super::session::repository_path;
use crate::configuration::Reach;
use crate::credential::{App, Credential, Identity, Kind, bearer};
use crate::error::{SourceError, SourceErrorReason as Reason};
use crate::flights::Flights;

/// How long before its end a token is replaced: a download that starts with it must not see it end.
const RENEWAL: SignedDuration = SignedDuration::from_mins(5);
/// Clocks differ; GitHub refuses what was issued in its future.
const ISSUED_BEFORE: SignedDuration = SignedDuration::from_secs(60);
/// GitHub refuses what lasts for more than ten minutes.
const LASTS: SignedDuration = SignedDuration::from_secs(9 * 60);
/// A difference of clocks that can be the reason for a refusal.
const NOTABLE_SKEW: SignedDuration = SignedDuration::from_secs(30);

type Key = (Identity, Repository);

#[derive(Clone)]
struct Token {
    value: Arc<SecretString>,
    /// When to replace it, by our clock.
    renewal: Timestamp,
}

#[derive(Deserialize)]
struct Installation {
    id: u64,
}

#[derive(Deserialize)]
struct Issued {
    token: String,
    expires_at: Timestamp,
}

/// The tokens of all Apps. One that is about to end is replaced once for all who ask.
pub(crate) struct Tokens {
    client: Arc<Client>,
    table: Mutex<HashMap<Key, Token>>,
    issuing: Flights<Key, Result<Token, SourceError>>,
}

impl Tokens {
    pub(crate) fn new(client: Arc<Client>) -> Self {
        Self {
            client,
            table: Mutex::default(),
            issuing: Flights::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Key, Token>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, key: &Key) -> Option<Token> {
        let now = self.client.now();
        self.table().get(key).filter(|token| now < token.renewal).cloned()
    }

    /// A token of the App for one repository.
    pub(crate) async fn get(
        self: &Arc<Self>,
        credential: &Credential,
        repository: &Repository,
    ) -> Result<Arc<SecretString>, SourceError> {
        let key = (credential.identity(), repository.clone());
        if let Some(token) = self.known(&key) {
            return Ok(token.value);
        }
        let (tokens, credential, asked) = (Arc::clone(self), credential.clone(), key.clone());
        let flight = self.issuing.join(key, move || {
            async move {
                if let Some(token) = tokens.known(&asked) {
                    return Ok(token);
                }
                let token = tokens.issue(&credential, &asked.1).await?;
                let mut table = tokens.table();
                let now = tokens.client.now();
                table.retain(|_, token| now < token.renewal);
                table.insert(asked, token.clone());
                Ok(token)
            }
            .boxed()
        });
        Ok(flight.await?.value)
    }

    /// Drops a token that GitHub has just refused, unless it has been replaced since.
    pub(crate) fn forget(
        &self,
        credential: &Credential,
        repository: &Repository,
        refused: &Arc<SecretString>,
    ) {
        let key = (credential.identity(), repository.clone());
        let mut table = self.table();
        if table
            .get(&key)
            .is_some_and(|token| Arc::ptr_eq(&token.value, refused))
        {
            table.remove(&key);
        }
    }

    async fn issue(&self, credential: &Credential, repository: &Repository) -> Result<Token, SourceError> {
        let Kind::App(app) = credential.kind() else {
            return Err(unusable(credential));
        };
        let skew = self.client.skew();
        let issued = self.issue_now(credential, app, repository).await;
        match issued {
            // The refusal has told the time.
            Err(error)
                if error.reason == Reason::AuthFailed
                    && self.client.skew().checked_sub(skew).is_some_and(is_notable) =>
            {
                self.issue_now(credential, app, repository).await
            }
            issued => issued,
        }
    }

    async fn issue_now(
        &self,
        credential: &Credential,
        app: &App,
        repository: &Repository,
    ) -> Result<Token, SourceError> {
        let assertion = self.assertion(app).ok_or_else(|| unusable(credential))?;
        let authorization = bearer(&assertion).ok_or_else(|| unusable(credential))?;
        let caller = Caller {
            asker: credential.asker(),
            name: Some(credential.name()),
            authorization: Some(&authorization),
            counted: false,
        };
        let (installation, moved) = match app.installation {
            Some(id) => (id, None),
            None => self.installation(repository, &caller).await?,
        };
        let mut body = json!({ "permissions": { "contents": "read" } });
        match moved.and_then(|moved| moved.number) {
            // The old name means nothing to the installation.
            Some(number) => body["repository_ids"] = json!([number]),
            None => body["repositories"] = json!([repository.name()]),
        }
        let path = format!("/app/installations/{installation}/access_tokens");
        let issued: Issued = match self.client.post(&path, &body, &caller).await? {
            Ok(issued) => issued,
            Err((status, text)) => return Err(refused(credential.name(), status, &text)),
        };
        let expires = shifted(issued.expires_at, -self.client.skew());
        Ok(Token {
            value: Arc::new(issued.token.into()),
            renewal: shifted(expires, -RENEWAL),
        })
    }

    async fn installation(
        &self,
        repository: &Repository,
        caller: &Caller<'_>,
    ) -> Result<(u64, Option<Moved>), SourceError> {
        let path = format!("{}/installation", repository_path(repository));
        let Some(reply) = self.client.get(&path, Reach::Api, caller).await? else {
            return Err(not_installed(caller.name.unwrap_or_default()));
        };
        let moved = reply.moved;
        let installation: Installation = self.client.json(reply, caller).await?;
        Ok((installation.id, moved))
    }

    /// The App's word for itself (RFC 7519, signed with RS256), by the API's clock.
    fn assertion(&self, app: &App) -> Option<SecretString> {
        let now = shifted(self.client.now(), self.client.skew());
        let claims = json!({
            "iss": app.id,
            "iat": shifted(now, -ISSUED_BEFORE).as_second(),
            "exp": shifted(now, LASTS).as_second(),
        });
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let mut signature = vec![0; app.key.public_modulus_len()];
        app.key
            .sign(
                &RSA_PKCS1_SHA256,
                &SystemRandom::new(),
                signed.as_bytes(),
                &mut signature,
            )
            .ok()?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)).into())
    }
}

/// `time` moved by a difference of clocks, or unmoved where that leads out of time.
fn shifted(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(time)
}

fn is_notable(skew: SignedDuration) -> bool {
    skew.abs() >= NOTABLE_SKEW
}

fn unusable(credential: &Credential) -> SourceError {
    let text = format!("the private key of {} cannot sign", credential.name());
    SourceError::new(Reason::AuthFailed, text)
}

fn not_installed(name: &str) -> SourceError {
    let text = format!(
        "the repository does not exist, or the GitHub App of {name} is not installed for it; check `repo`, or install the App \
         for the repository"
    );
    SourceError::new(Reason::RepoOrRefNotFound, text)
}

/// Why an installation gives no token. The answer's text is only looked at, never shown.
fn refused(name: &str, status: StatusCode, text: &str) -> SourceError {
    if status == StatusCode::NOT_FOUND {
        let text = format!(
            "the GitHub App of {name} has no installation with this `installationId`; correct it in the Secret, or leave it \
             out"
        );
        return SourceError::new(Reason::AuthFailed, text);
    }
    if text.contains("permissions") {
        let text = format!(
            "the GitHub App of {name} may not read contents; grant it the repository permission `Contents: read`"
        );
        return SourceError::new(Reason::Forbidden, text);
    }
    not_installed(name)
}
