//! One asker's requests about one repository.

use std::sync::Arc;

use codeworkspace_bundle::code::Repository;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::HeaderValue;
use secrecy::SecretString;

use super::app::Tokens;
use super::client::{Caller, Client, Moved, Reply};
use crate::cache::{ProofKey, Proofs};
use crate::configuration::Reach;
use crate::credential::{Access, Kind, bearer};
use crate::error::{SourceError, SourceErrorReason as Reason};

/// The unreserved signs of RFC 3986 stay, and slashes, which are part of a name and of a path alike.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// Asks about one repository with one credential, or without. Each success proves that the asker may read the repository.
#[derive(Clone, Copy)]
pub(crate) struct Session<'a> {
    pub(crate) client: &'a Client,
    pub(crate) tokens: &'a Arc<Tokens>,
    pub(crate) proofs: &'a Proofs,
    pub(crate) access: &'a Access,
    pub(crate) repository: &'a Repository,
}

impl Session<'_> {
    /// Asks the API for what lies at the encoded `path` below the repository; `None` when it does not exist.
    pub(crate) async fn get(&self, path: &str, reach: Reach) -> Result<Option<Reply>, SourceError> {
        let path = format!("{}{path}", repository_path(self.repository));
        let mut reply = self.send(&path, reach).await;
        if let (Err((error, Some(token))), Access::Credential(credential)) = (&reply, self.access)
            && error.reason == Reason::AuthFailed
        {
            // A token of an App may end before its time, when somebody changes what the App may do.
            self.tokens.forget(credential, self.repository, token);
            reply = self.send(&path, reach).await;
        }
        let reply = reply.map_err(|(error, _)| error);
        match &reply {
            Ok(Some(reply)) => {
                self.proofs
                    .put(&self.proof_key(), self.client.now(), reply.scopes.clone())
                    .await;
            }
            Err(error) if error.reason == Reason::AuthFailed && *self.access != Access::Anonymous => {
                self.client.reject(self.access.asker(), error);
                self.proofs
                    .revoke_all(&self.client.api_host(), self.access.asker(), self.client.now())
                    .await;
            }
            _ => {}
        }
        reply
    }

    /// Asks the API for a JSON document; `None` when it does not exist.
    pub(crate) async fn get_json<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<(T, Option<Moved>)>, SourceError> {
        let Some(reply) = self.get(path, Reach::Api).await? else {
            return Ok(None);
        };
        let moved = reply.moved;
        let document = self.client.json(reply, &self.caller(None)).await?;
        Ok(Some((document, moved)))
    }

    /// The error for a `what` that does not exist, as far as this asker can see.
    pub(crate) fn missing(&self, what: &str) -> SourceError {
        let used = match self.access.name() {
            None => "no credential was used".to_owned(),
            Some(name) => format!("the credential of {name} was used"),
        };
        let text = format!(
            "the repository or the {what} does not exist, or the repository is private, which looks the same from outside \
             ({used}); check `repo` and `ref`"
        );
        SourceError::new(Reason::RepoOrRefNotFound, text)
    }

    pub(crate) fn proof_key(&self) -> ProofKey {
        ProofKey {
            host: self.client.api_host(),
            repository: self.repository.clone(),
            asker: self.access.asker(),
        }
    }

    /// An error comes with the App's token that was used, if one was.
    async fn send(
        &self,
        path: &str,
        reach: Reach,
    ) -> Result<Option<Reply>, (SourceError, Option<Arc<SecretString>>)> {
        let mut issued = None;
        let authorization = match self.access {
            Access::Anonymous => None,
            Access::Credential(credential) => match credential.kind() {
                Kind::Token(token) => bearer(token),
                Kind::App(_) => {
                    let token = self.tokens.get(credential, self.repository).await;
                    let token = token.map_err(|error| (error, None))?;
                    let header = bearer(&token);
                    issued = Some(token);
                    header
                }
            },
        };
        if authorization.is_none() && *self.access != Access::Anonymous {
            let text = "the host has issued a token that no HTTP header can carry";
            return Err((SourceError::new(Reason::FetchFailed, text), None));
        }
        let caller = self.caller(authorization.as_ref());
        let reply = self.client.get(path, reach, &caller).await;
        reply.map_err(|error| (error, issued))
    }

    fn caller<'b>(&'b self, authorization: Option<&'b HeaderValue>) -> Caller<'b> {
        Caller {
            asker: self.access.asker(),
            name: self.access.name(),
            authorization,
            counted: true,
        }
    }
}

/// The API's path of a repository.
pub(crate) fn repository_path(repository: &Repository) -> String {
    format!(
        "/repos/{}/{}",
        encoded(repository.owner()),
        encoded(repository.name())
    )
}

pub(crate) fn encoded(name: &str) -> String {
    utf8_percent_encode(name, KEPT).to_string()
}
