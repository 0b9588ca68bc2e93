//! AWS Signature Version 4 in header form, verified.
//!
//! In two steps, since a body may be large and the SDKs need not say its hash in advance: [`parse`] judges all that the head of a
//! request shows, and [`SignedRequest::verify`] judges the rest when the body's hash is known. Between them the caller looks up the
//! access key, and so never reads the body of an unknown one.

mod authorization;
mod canonical;
mod date;
mod error;
#[cfg(test)]
mod tests;

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Method};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use self::{authorization::Authorization, date::SigningDate};
pub use self::{
    authorization::{AccessKeyId, CredentialScope},
    error::SignatureError,
};
use crate::query::Query;

/// The name that clients of both planes sign for.
pub const SIGNING_NAME: &str = "bedrock-agentcore";

/// SHA-256 of a body.
pub type BodyHash = [u8; 32];

/// Headers that must be signed if they are there, beside `host` and all of `x-amz-`: this one says where the call goes.
const SESSION_HEADER: &str = "x-amzn-code-interpreter-session-id";

const CONTENT_HASH_HEADER: &str = "x-amz-content-sha256";

const SECURITY_TOKEN_HEADER: &str = "x-amz-security-token";

/// The head of a request.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path as it was received, encoded.
    pub path: &'a str,
    /// What followed the question mark, as it was received.
    pub query: Option<&'a str>,
    /// All headers, `host` among them.
    pub headers: &'a HeaderMap,
}

/// What a signature must be for.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedScope<'a> {
    /// The region, if only one is served. Clients need some region, and it means nothing to a server that has none.
    pub region: Option<&'a str>,
    /// The service: [`SIGNING_NAME`].
    pub service: &'a str,
}

/// A request whose head is in order. Its signature is not verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedRequest {
    authorization: Authorization,
    date: SigningDate,
    /// The canonical request up to the body's hash, which is its last line.
    canonical_head: Vec<u8>,
    declared_hash: Option<BodyHash>,
}

/// Reads the signature of a request and judges all but the signature itself: form, scope, clock, and that what matters is signed.
pub fn parse(
    head: Head<'_>,
    now: Timestamp,
    expected: ExpectedScope<'_>,
) -> Result<SignedRequest, SignatureError> {
    let headers = head.headers;
    let authorization: Authorization = only(headers, "authorization")?
        .ok_or(SignatureError::Missing)?
        .parse()?;
    if headers.contains_key(SECURITY_TOKEN_HEADER) {
        return Err(SignatureError::SecurityToken);
    }
    let scope = &authorization.scope;
    if scope.service != expected.service {
        return Err(SignatureError::WrongService {
            expected: expected.service.to_owned(),
        });
    }
    if let Some(region) = expected.region
        && scope.region != region
    {
        return Err(SignatureError::WrongRegion {
            expected: region.to_owned(),
        });
    }
    let date = date::signing_date(headers)?;
    if date.day() != scope.day {
        return Err(SignatureError::WrongDay);
    }
    date.check(now)?;
    let declared_hash = only(headers, CONTENT_HASH_HEADER)?
        .map(declared_hash)
        .transpose()?;
    must_be_signed(headers, &authorization)?;
    let canonical_head = canonical::head(
        head.method,
        head.path,
        Query::new(head.query),
        headers,
        &authorization,
    )?;
    Ok(SignedRequest {
        authorization,
        date,
        canonical_head,
        declared_hash,
    })
}

impl SignedRequest {
    /// Whose key it claims to be signed with. Well formed; who it is, is for the caller to know.
    pub fn access_key_id(&self) -> &AccessKeyId {
        &self.authorization.access_key_id
    }

    /// What it was signed for.
    pub fn scope(&self) -> &CredentialScope {
        &self.authorization.scope
    }

    /// Whether the signature covers a header. `name` is in lower case.
    pub fn signs(&self, name: &str) -> bool {
        self.authorization.signs(name)
    }

    /// Whether the signature is that of `secret` over this request with a body of this hash. Takes the same time wherever a wrong
    /// signature differs.
    pub fn verify(&self, secret: &[u8], body: &BodyHash) -> Result<(), SignatureError> {
        if self.declared_hash.is_some_and(|declared| declared != *body) {
            return Err(SignatureError::WrongBody);
        }
        let mut request = Sha256::new_with_prefix(&self.canonical_head);
        request.update(hexadecimal(body));
        let scope = &self.authorization.scope;
        let to_sign = format!(
            "{}\n{}\n{scope}\n{}",
            authorization::ALGORITHM,
            self.date.as_str(),
            hexadecimal(&request.finalize())
        );
        let first = [b"AWS4", secret].concat();
        let mut key = keyed(&first)?.chain_update(&scope.day).finalize().into_bytes();
        for part in [&scope.region, &scope.service, authorization::TERMINATOR] {
            key = keyed(&key)?.chain_update(part).finalize().into_bytes();
        }
        keyed(&key)?
            .chain_update(to_sign)
            .verify_slice(&self.authorization.signature)
            .map_err(|_| SignatureError::Mismatch)
    }
}

/// HMAC takes keys of any length, so that its error never comes.
fn keyed(key: &[u8]) -> Result<Hmac<Sha256>, SignatureError> {
    Hmac::new_from_slice(key).map_err(|_| SignatureError::Mismatch)
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// A SHA-256 in hexadecimal, in the lower case that signatures use.
fn from_hexadecimal(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let bytes: Option<Vec<u8>> = pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect();
    bytes?.try_into().ok()
}

/// The one value of a header that may not be repeated, if it is there.
fn only<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, SignatureError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(SignatureError::Repeated { header: name });
    }
    match value.to_str() {
        Ok(text) => Ok(Some(text.trim())),
        Err(_) => Err(SignatureError::NotText { header: name }),
    }
}

fn declared_hash(value: &str) -> Result<BodyHash, SignatureError> {
    if value.starts_with("UNSIGNED-PAYLOAD") || value.starts_with("STREAMING-") {
        return Err(SignatureError::UnsignedBody);
    }
    from_hexadecimal(value).ok_or(SignatureError::WrongBody)
}

fn must_be_signed(headers: &HeaderMap, authorization: &Authorization) -> Result<(), SignatureError> {
    let names = headers.keys().map(http::HeaderName::as_str);
    let needed = names.filter(|name| name.starts_with("x-amz-") || *name == SESSION_HEADER);
    for name in std::iter::once("host").chain(needed) {
        if !authorization.signs(name) {
            return Err(SignatureError::NotSigned {
                header: name.to_owned(),
            });
        }
    }
    Ok(())
}
