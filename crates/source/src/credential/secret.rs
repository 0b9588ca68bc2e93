//! Values of Secrets, parsed once.

use aws_lc_rs::rsa::KeyPair;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;

/// GitHub signs nothing shorter.
const SHORTEST_KEY_BYTES: usize = 2048 / 8;

/// Servers refuse longer headers, and such a refusal looks as if it would pass.
const LONGEST_VALUE_BYTES: usize = 8 * 1024;

/// A Secret's value that cannot be used. Names the key and never shows the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Secret key `{key}` {problem}")]
pub struct CredentialError {
    /// The key in the Secret's data.
    pub key: &'static str,
    /// What is wrong with its value.
    pub problem: CredentialProblem,
}

/// What can be wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CredentialProblem {
    /// Nothing, or nothing but line ends.
    #[error("is empty; write the value that GitHub shows")]
    Empty,
    /// More than any host takes in a header.
    #[error("has more than {LONGEST_VALUE_BYTES} bytes; is it the value that GitHub shows?")]
    TooLong,
    /// A space or a line end that is not the last sign.
    #[error(
        "has white space within its value; write the value alone, without quotes, spaces or a second line"
    )]
    WhiteSpace,
    /// A sign that no value has and no HTTP header can carry (RFC 6750, 2.1).
    #[error("has control characters or signs outside ASCII; check how the value came into the Secret")]
    Illegal,
    /// An installation's id that is none.
    #[error("is no number; write the digits at the end of the installation's address")]
    NotANumber,
    /// Not PEM, or no private key in it that can be read without a password.
    #[error(
        "has no unencrypted private key in PEM; write the whole file that GitHub hands out, with its line breaks"
    )]
    NotPem,
    /// A key in PEM that RS256 cannot use.
    #[error("is no RSA key of 2048 bits or more; generate a new key in the App's settings")]
    NotRsa,
}

/// The text of a value: one word of visible ASCII. Only line ends at its end are forgiven, since editors and `echo` leave
/// them there. Length and alphabet are GitHub's business.
pub(super) fn value<'a>(key: &'static str, bytes: &'a [u8]) -> Result<&'a str, CredentialError> {
    let refused = |problem| CredentialError { key, problem };
    let end = bytes
        .iter()
        .rposition(|byte| !matches!(byte, b'\r' | b'\n'))
        .map_or(0, |last| last + 1);
    let bytes = &bytes[..end];
    if bytes.is_empty() {
        return Err(refused(CredentialProblem::Empty));
    }
    if bytes.len() > LONGEST_VALUE_BYTES {
        return Err(refused(CredentialProblem::TooLong));
    }
    if bytes.iter().any(u8::is_ascii_whitespace) {
        return Err(refused(CredentialProblem::WhiteSpace));
    }
    if !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(refused(CredentialProblem::Illegal));
    }
    str::from_utf8(bytes).map_err(|_| refused(CredentialProblem::Illegal))
}

/// A value of digits.
pub(super) fn number(key: &'static str, bytes: &[u8]) -> Result<u64, CredentialError> {
    let text = value(key, bytes)?;
    let refused = CredentialError {
        key,
        problem: CredentialProblem::NotANumber,
    };
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused);
    }
    text.parse().map_err(|_| refused)
}

/// An RSA private key in PEM.
pub(super) fn rsa_key(key: &'static str, bytes: &[u8]) -> Result<KeyPair, CredentialError> {
    let refused = |problem| CredentialError { key, problem };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(refused(CredentialProblem::Empty));
    }
    let der = PrivateKeyDer::from_pem_slice(bytes).map_err(|_| refused(CredentialProblem::NotPem))?;
    let parsed = match &der {
        PrivateKeyDer::Pkcs1(der) => KeyPair::from_der(der.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(der) => KeyPair::from_pkcs8(der.secret_pkcs8_der()),
        _ => return Err(refused(CredentialProblem::NotRsa)),
    };
    parsed
        .ok()
        .filter(|parsed| parsed.public_modulus_len() >= SHORTEST_KEY_BYTES)
        .ok_or_else(|| refused(CredentialProblem::NotRsa))
}
