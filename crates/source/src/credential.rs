//! Who asks GitHub, and with which secret.

mod secret;

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rsa::KeyPair;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

pub use secret::{CredentialError, CredentialProblem};

/// With what a source is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Access {
    /// Without a credential: GitHub then serves what everybody may read.
    #[default]
    Anonymous,
    /// With this credential, always: also where the repository is public.
    Credential(Credential),
}

impl Access {
    pub(crate) fn asker(&self) -> Asker {
        match self {
            Self::Anonymous => Asker::Anonymous,
            Self::Credential(credential) => credential.asker(),
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::Credential(credential) => Some(credential.name()),
        }
    }
}

/// A secret that GitHub knows, parsed. Clones share it. It shows its name and never a value.
#[derive(Clone)]
pub struct Credential(Arc<Inner>);

struct Inner {
    name: String,
    identity: Identity,
    kind: Kind,
}

/// The kinds of credentials.
pub(crate) enum Kind {
    /// A personal access token, or whatever else GitHub takes as a bearer token.
    Token(SecretString),
    /// A GitHub App, which gets tokens for one repository at a time.
    App(App),
}

/// A GitHub App as its owner set it up.
pub(crate) struct App {
    /// The App's id, or its client id: GitHub takes either as the issuer.
    pub(crate) id: String,
    /// Where it is installed; without one, GitHub is asked for each repository.
    pub(crate) installation: Option<u64>,
    pub(crate) key: KeyPair,
}

impl Credential {
    /// A personal access token, from the raw value of a Secret's key `token`.
    ///
    /// `name` is what messages and the audit log call the credential; it must hold no secret.
    pub fn token(name: impl Into<String>, token: &[u8]) -> Result<Self, CredentialError> {
        let token = secret::value("token", token)?;
        let identity = Identity::of(&[b"token", token.as_bytes()]);
        Ok(Self::new(name.into(), identity, Kind::Token(token.into())))
    }

    /// A GitHub App, from the raw values of a Secret's keys `appId`, `installationId` (optional) and `privateKey` (PEM
    /// as GitHub hands it out, PKCS#1, or PKCS#8).
    ///
    /// `name` is what messages and the audit log call the credential; it must hold no secret.
    pub fn app(
        name: impl Into<String>,
        app_id: &[u8],
        installation_id: Option<&[u8]>,
        private_key: &[u8],
    ) -> Result<Self, CredentialError> {
        let id = secret::value("appId", app_id)?;
        let installation = installation_id
            .map(|value| secret::number("installationId", value))
            .transpose()?;
        let key = secret::rsa_key("privateKey", private_key)?;
        let number = installation.map(u64::to_be_bytes);
        let parts: [&[u8]; 4] = [
            b"app",
            id.as_bytes(),
            number.as_ref().map_or(&[], |number| number),
            private_key,
        ];
        let identity = Identity::of(&parts);
        let app = App {
            id: id.to_owned(),
            installation,
            key,
        };
        Ok(Self::new(name.into(), identity, Kind::App(app)))
    }

    fn new(name: String, content: Identity, kind: Kind) -> Self {
        let identity = Identity::of(&[name.as_bytes(), &content.0]);
        Self(Arc::new(Inner { name, identity, kind }))
    }

    /// What messages and the audit log call the credential.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn identity(&self) -> Identity {
        self.0.identity
    }

    pub(crate) fn asker(&self) -> Asker {
        Asker::Credential(self.0.identity)
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0.kind
    }
}

/// Equal when name and secret are: a rotated secret makes another credential.
impl PartialEq for Credential {
    fn eq(&self, other: &Self) -> bool {
        self.0.identity == other.0.identity
    }
}

impl Eq for Credential {}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0.kind {
            Kind::Token(_) => "token",
            Kind::App(_) => "app",
        };
        formatter
            .debug_struct("Credential")
            .field("name", &self.0.name)
            .field("kind", &kind)
            .finish_non_exhaustive()
    }
}

/// Which credential, without what is in it: SHA-256 over name and content. What was remembered for a secret that has been
/// rotated does not apply to the new one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Identity([u8; 32]);

impl Identity {
    /// The parts' lengths are hashed too, so that no two lists of parts look alike.
    fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

/// The credential by which answers, proofs and limits are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Asker {
    /// Everybody.
    Anonymous,
    /// Who has this credential.
    Credential(Identity),
}

impl fmt::Display for Asker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => formatter.write_str("anonymous"),
            Self::Credential(Identity(bytes)) => {
                bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
            }
        }
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Enough to tell two apart.
        write!(formatter, "Asker({:.8})", self.to_string())
    }
}

/// A value for the `Authorization` header.
pub(crate) fn bearer(token: &SecretString) -> Option<reqwest::header::HeaderValue> {
    let mut value =
        reqwest::header::HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests;
