//! GitHub Apps: they sign a word for themselves (a JWT) and get tokens for their installations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::KeyPair as _;
use axum::Json;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ServerError;
use crate::access::{Caller, Credentials, Grant};
use crate::api::problem;
use crate::rate_limit::Counter;
use crate::repositories::FullName;

/// How long GitHub lets an App's word for itself last.
const LONGEST_ASSERTION_SECONDS: i64 = 600;
/// Length of the tokens that GitHub has issued since spring 2026, about.
const TOKEN_LENGTH: usize = 520;

/// A GitHub App.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct App {
    /// The public half of its key, in PEM.
    pub public_key: String,
    /// Where it is installed, by the installation's number.
    #[serde(default)]
    pub installations: BTreeMap<u64, Installation>,
    /// How long its tokens last.
    #[serde(default = "an_hour")]
    pub token_seconds: i64,
}

fn an_hour() -> i64 {
    3600
}

impl App {
    /// An App with one installation, which opens these repositories of one owner.
    pub fn installed<'a>(
        public_key: impl Into<String>,
        installation: u64,
        repositories: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let installation = (
            installation,
            Installation {
                repositories: repositories.into_iter().map(str::to_owned).collect(),
                ..Installation::default()
            },
        );
        Self {
            public_key: public_key.into(),
            installations: [installation].into(),
            token_seconds: an_hour(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ServerError> {
        self.key().map(drop)
    }

    fn key(&self) -> Result<DecodingKey, ServerError> {
        DecodingKey::from_rsa_pem(self.public_key.as_bytes())
            .map_err(|error| ServerError::Invalid(format!("publicKey: {error}")))
    }
}

/// An App's installation at one owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Installation {
    /// What it opens, as `owner/name`.
    pub repositories: BTreeSet<String>,
    /// What it may do there.
    pub permissions: BTreeMap<String, String>,
    /// Whether the owner has suspended it.
    pub suspended: bool,
}

impl Default for Installation {
    fn default() -> Self {
        let permissions = [("contents", "write"), ("metadata", "read")];
        Self {
            repositories: BTreeSet::new(),
            permissions: permissions
                .map(|(name, level)| (name.to_owned(), level.to_owned()))
                .into(),
            suspended: false,
        }
    }
}

/// A token of an installation, without the token itself.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Issued {
    /// The App's id.
    #[serde(skip)]
    pub(crate) app: String,
    /// Counts from one, over all Apps.
    #[serde(skip)]
    pub(crate) number: u64,
    /// The installation.
    pub installation: u64,
    /// What it opens.
    pub repositories: BTreeSet<String>,
    /// What it may do there.
    pub permissions: BTreeMap<String, String>,
    /// When it ends.
    pub expires_at: Timestamp,
    #[serde(skip)]
    pub(crate) counter: Arc<Counter>,
}

impl Issued {
    pub(crate) fn label(&self) -> String {
        format!("installation-{}", self.installation)
    }

    pub(crate) fn grant(&self) -> Grant {
        Grant {
            label: self.label(),
            repositories: self.repositories.clone(),
            scopes: None,
            contents: self.permissions.contains_key("contents"),
            refusal: None,
            counter: Arc::clone(&self.counter),
        }
    }
}

/// How many tokens were ended before their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Revoked {
    /// The number.
    pub revoked: usize,
}

/// The two halves of an App's key, in PEM.
#[derive(Clone)]
pub struct AppKey {
    /// What the App signs with.
    pub private_pem: String,
    /// What this server is told.
    pub public_pem: String,
}

impl AppKey {
    /// A fresh key, for tests.
    pub fn generate() -> Result<Self, ServerError> {
        let failed = |_| ServerError::Invalid("no RSA key can be made".to_owned());
        let key = KeyPair::generate(KeySize::Rsa2048).map_err(failed)?;
        let private: Pkcs8V1Der<'_> = key.as_der().map_err(failed)?;
        let public: PublicKeyX509Der<'_> = key.public_key().as_der().map_err(failed)?;
        Ok(Self {
            private_pem: pem("PRIVATE KEY", private.as_ref()),
            public_pem: pem("PUBLIC KEY", public.as_ref()),
        })
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    iat: i64,
    exp: i64,
}

/// The App that signed this, or GitHub's answer to one that nobody did.
fn authenticate(credentials: &Credentials, caller: &Caller) -> Result<(String, App), Box<Response>> {
    let refused = |message: &str| Err(Box::new(problem(StatusCode::UNAUTHORIZED, message)));
    let Caller::App(assertion) = caller else {
        return refused("A JSON web token could not be decoded");
    };
    let mut validation = Validation::new(Algorithm::RS256);
    validation.set_required_spec_claims(&["exp", "iss"]);
    validation.leeway = 0;
    // Who it is from must be known before its signature can be checked.
    let Ok(unverified) = jsonwebtoken::dangerous::insecure_decode_claims::<Claims>(assertion) else {
        return refused("A JSON web token could not be decoded");
    };
    let Some(app) = credentials.app(&unverified.iss) else {
        return refused("Integration not found");
    };
    let Ok(key) = app.key() else {
        return refused("A JSON web token could not be decoded");
    };
    let Ok(token) = jsonwebtoken::decode::<Claims>(assertion, &key, &validation) else {
        return refused("A JSON web token could not be decoded");
    };
    let (claims, now) = (token.claims, Timestamp::now().as_second());
    if claims.iat > now {
        return refused("'Issued at' claim ('iat') must be an Integer representing a time in the past");
    }
    if claims.exp > now + LONGEST_ASSERTION_SECONDS {
        return refused("'Expiration time' claim ('exp') is too far in the future");
    }
    Ok((claims.iss, app))
}

/// `GET /repos/{owner}/{name}/installation`
pub(crate) fn installation(credentials: &Credentials, caller: &Caller, name: &FullName) -> Response {
    let (id, app) = match authenticate(credentials, caller) {
        Ok(app) => app,
        Err(refused) => return *refused,
    };
    let found = app
        .installations
        .iter()
        .find(|(_, installation)| installation.repositories.contains(&name.to_string()));
    match found {
        Some((number, installation)) => Json(json!({
            "id": number,
            "app_id": id,
            "account": { "login": name.owner },
            "permissions": installation.permissions,
        }))
        .into_response(),
        None => problem(StatusCode::NOT_FOUND, "Not Found"),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Narrowing {
    repositories: Option<Vec<String>>,
    repository_ids: Option<Vec<u64>>,
    permissions: Option<BTreeMap<String, String>>,
}

/// `POST /app/installations/{number}/access_tokens`
pub(crate) fn issue(
    credentials: &Credentials,
    caller: &Caller,
    number: u64,
    body: &Bytes,
    name_of: impl Fn(u64) -> Option<FullName>,
) -> Response {
    let (id, app) = match authenticate(credentials, caller) {
        Ok(app) => app,
        Err(refused) => return *refused,
    };
    let Some(installation) = app.installations.get(&number) else {
        return problem(StatusCode::NOT_FOUND, "Not Found");
    };
    if installation.suspended {
        return problem(StatusCode::FORBIDDEN, "This installation has been suspended");
    }
    let narrowing = if body.is_empty() {
        Narrowing::default()
    } else {
        match serde_json::from_slice(body) {
            Ok(narrowing) => narrowing,
            Err(_) => return problem(StatusCode::BAD_REQUEST, "Problems parsing JSON"),
        }
    };
    let permissions = narrowing
        .permissions
        .unwrap_or_else(|| installation.permissions.clone());
    let granted = |(name, level): (&String, &String)| {
        let allowed = installation.permissions.get(name);
        allowed.is_some_and(|allowed| allowed == level || (allowed == "write" && level == "read"))
    };
    if !permissions.iter().all(granted) {
        return problem(
            StatusCode::UNPROCESSABLE_ENTITY,
            "The permissions requested are not granted to this installation.",
        );
    }
    let named = |name: &String| {
        let mut all = installation.repositories.iter();
        all.find(|full| full.split('/').nth(1) == Some(name.as_str()))
            .cloned()
    };
    let numbered = |number: &u64| name_of(*number).map(|name| name.to_string());
    let chosen: Option<BTreeSet<String>> = match (&narrowing.repositories, &narrowing.repository_ids) {
        (Some(chosen), _) => chosen.iter().map(named).collect(),
        (None, Some(numbers)) => numbers.iter().map(numbered).collect(),
        (None, None) => Some(installation.repositories.clone()),
    };
    let chosen = chosen.filter(|chosen| chosen.is_subset(&installation.repositories));
    let Some(repositories) = chosen else {
        return problem(
            StatusCode::UNPROCESSABLE_ENTITY,
            "There is at least one repository that does not exist or is not accessible to the parent installation.",
        );
    };
    let expires_at = Timestamp::now()
        .checked_add(SignedDuration::from_secs(app.token_seconds))
        .unwrap_or(Timestamp::MAX);
    let (token, issued) = credentials.issue(|count| {
        let issued = Issued {
            app: id,
            number: count,
            installation: number,
            repositories,
            permissions,
            expires_at,
            counter: Arc::default(),
        };
        (long_token(number, count), issued)
    });
    let body = json!({
        "token": token,
        "expires_at": issued.expires_at,
        "permissions": issued.permissions,
        "repository_selection": "selected",
    });
    (StatusCode::CREATED, Json(body)).into_response()
}

/// A token like those that GitHub issues now: long, with dots, dashes and underscores.
fn long_token(installation: u64, number: u64) -> String {
    let head = format!("ghs_{installation}-{number}.");
    let filler = "Zk3-Qx_7v".chars().cycle();
    let body: String = filler.take(TOKEN_LENGTH - head.len() - 65).collect();
    format!("{head}{body}.{}", "s1G-".repeat(16))
}
