//! Who calls, and whether they may: both are asked of the API server. The caller's token is reviewed for our audience, and RBAC decides
//! what its user may do with CodeSessions; nothing here knows a rule of its own.
//!
//! Answers are kept for a few seconds, so that a session's calls do not each cost two questions. Only good ones are: whoever was just
//! given a right can use it at once. A token is never believed beyond its own end.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use codeworkspace_api::GROUP;
use codeworkspace_source::Clock;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use super::expiring::Expiring;

/// Audience of the tokens that callers bring.
pub const AUDIENCE: &str = "codeworkspace-gateway";

/// How long an answer of the API server is believed.
const BELIEVED: Duration = Duration::from_secs(10);
/// Answers of each kind that are kept.
const MOST: usize = 10_000;
/// Questions that are open at once: callers without a good token must not keep the API server busy for others.
const OPEN: usize = 32;
/// Longest that a caller waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest token that is looked at.
const LONGEST: usize = 16 * 1024;

/// What a call does to sessions, as RBAC names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Open a session, and use what is in it.
    Create,
    /// Read what is recorded of one.
    Get,
    /// Read what is recorded of all.
    List,
    /// End one.
    Delete,
}

impl Right {
    /// RBAC's verb.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::List => "list",
            Self::Delete => "delete",
        }
    }
}

/// A user whose token the API server has accepted.
#[derive(Debug)]
pub struct Caller {
    user: UserInfo,
    /// The user as bytes that are equal for equal users.
    fingerprint: Vec<u8>,
}

impl Caller {
    /// The user's name.
    pub fn name(&self) -> &str {
        self.user.username.as_deref().unwrap_or_default()
    }
}

/// Why somebody may not do what they want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// There is no token.
    NoToken,
    /// The API server does not accept the token for our audience.
    BadToken,
    /// RBAC does not permit it.
    Forbidden {
        /// The user.
        user: String,
        /// RBAC's verb.
        verb: &'static str,
        /// Where.
        namespace: String,
    },
    /// The API server could not be asked. Nobody gets in by that.
    Unknown,
}

impl fmt::Display for AccessError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken => write!(
                formatter,
                "send a token of the cluster for the audience {AUDIENCE} as `Authorization: Bearer …`"
            ),
            Self::BadToken => write!(
                formatter,
                "the cluster does not accept this token for the audience {AUDIENCE}, or it has expired"
            ),
            Self::Forbidden {
                user,
                verb,
                namespace,
            } => write!(
                formatter,
                "{user} may not {verb} codesessions.{GROUP} in namespace {namespace}"
            ),
            Self::Unknown => {
                formatter.write_str("the cluster's API server cannot be asked who may do this; try again")
            }
        }
    }
}

/// Asks the API server, and remembers for a moment what it said.
pub struct Access {
    client: Client,
    clock: Arc<dyn Clock>,
    callers: Expiring<[u8; 32], Arc<Caller>>,
    permissions: Expiring<[u8; 32], ()>,
    open: Semaphore,
}

impl Access {
    /// Knows nobody yet.
    pub fn new(client: Client, clock: Arc<dyn Clock>) -> Self {
        Self {
            client,
            clock,
            callers: Expiring::new(MOST),
            permissions: Expiring::new(MOST),
            open: Semaphore::new(OPEN),
        }
    }

    /// Who brings this token.
    pub async fn caller(&self, headers: &HeaderMap) -> Result<Arc<Caller>, AccessError> {
        let token = token(headers).ok_or(AccessError::NoToken)?;
        if token.len() > LONGEST {
            return Err(AccessError::BadToken);
        }
        let key: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(caller) = self.callers.get(&key, self.clock.now()) {
            return Ok(caller);
        }
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                audiences: Some(vec![AUDIENCE.to_owned()]),
            },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let status = self
            .ask("token", reviews.create(&PostParams::default(), &review))
            .await?
            .status
            .unwrap_or_default();
        // A server that knows no audiences says nothing of them: then the token is for the API server itself, and not for us.
        let is_ours = status
            .audiences
            .is_some_and(|audiences| audiences.iter().any(|audience| audience == AUDIENCE));
        let (Some(true), true, Some(user)) = (status.authenticated, is_ours, status.user) else {
            return Err(AccessError::BadToken);
        };
        let now = self.clock.now();
        let until = end_of(token).map_or(now + BELIEVED, |end| end.min(now + BELIEVED));
        let fingerprint = serde_json::to_vec(&user).map_err(|_| AccessError::Unknown)?;
        let caller = Arc::new(Caller { user, fingerprint });
        self.callers.insert(key, caller.clone(), until, now);
        Ok(caller)
    }

    /// Whether a user may do something to the sessions of a namespace, or to the one of this name.
    pub async fn check(
        &self,
        caller: &Caller,
        right: Right,
        namespace: &str,
        session: Option<&str>,
    ) -> Result<(), AccessError> {
        let key = permission(caller, right, namespace, session);
        if self.permissions.get(&key, self.clock.now()).is_some() {
            return Ok(());
        }
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: caller.user.username.clone(),
                groups: caller.user.groups.clone(),
                uid: caller.user.uid.clone(),
                extra: caller.user.extra.clone(),
                resource_attributes: Some(ResourceAttributes {
                    group: Some(GROUP.to_owned()),
                    resource: Some("codesessions".to_owned()),
                    verb: Some(right.verb().to_owned()),
                    namespace: Some(namespace.to_owned()),
                    name: session.map(str::to_owned),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let status = self
            .ask("access", reviews.create(&PostParams::default(), &review))
            .await?
            .status
            .unwrap_or_default();
        if !status.allowed || status.denied == Some(true) {
            return Err(AccessError::Forbidden {
                user: caller.name().to_owned(),
                verb: right.verb(),
                namespace: namespace.to_owned(),
            });
        }
        let now = self.clock.now();
        self.permissions.insert(key, (), now + BELIEVED, now);
        Ok(())
    }

    async fn ask<T>(
        &self,
        about: &'static str,
        question: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, AccessError> {
        let asked = async {
            // It is never closed.
            let _turn = self.open.acquire().await.map_err(|_| AccessError::Unknown)?;
            question.await.map_err(|error| {
                tracing::warn!(about, %error, "the API server could not review a caller");
                AccessError::Unknown
            })
        };
        tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| {
            tracing::warn!(about, "the API server took too long to review a caller");
            Err(AccessError::Unknown)
        })
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// When the token ends by its own account (RFC 7519, 4.1.4). Nothing is believed of it before the API server has accepted it.
fn end_of(token: &str) -> Option<Timestamp> {
    #[derive(serde::Deserialize)]
    struct Claims {
        exp: i64,
    }
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Claims = serde_json::from_slice(&claims).ok()?;
    Timestamp::from_second(claims.exp).ok()
}

fn permission(caller: &Caller, right: Right, namespace: &str, session: Option<&str>) -> [u8; 32] {
    let mut hash = Sha256::new();
    // Names of namespaces and sessions have no line breaks.
    for part in [right.verb(), namespace, session.unwrap_or_default()] {
        hash.update(part.as_bytes());
        hash.update(b"\n");
    }
    hash.update(&caller.fingerprint);
    hash.finalize().into()
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
