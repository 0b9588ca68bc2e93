//! What can be wrong with a signature.

use thiserror::Error;

/// A request that does not prove whose it is. Every one of them is answered with 403.
///
/// The names are AWS's own for REST-JSON services. `InvalidSignatureException` makes the SDKs correct their clock by the `Date`
/// header of the answer and try again, so the answer should have one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SignatureError {
    /// There is no header `Authorization`.
    #[error(
        "the header Authorization is missing: requests are signed with AWS Signature Version 4, in that header"
    )]
    Missing,
    /// A header that must be there once is there more often.
    #[error("the header {header} must not be repeated")]
    Repeated {
        /// Which.
        header: &'static str,
    },
    /// A header is not ASCII.
    #[error("the header {header} must be ASCII")]
    NotText {
        /// Which.
        header: &'static str,
    },
    /// `Authorization` has another form.
    #[error(
        "the header Authorization must be `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`: {0}"
    )]
    Malformed(&'static str),
    /// Neither `x-amz-date` nor `date` can be read.
    #[error("the header x-amz-date (20260101T000000Z) or date is needed")]
    NoDate,
    /// A session token: there are only keys that last.
    #[error(
        "the security token included in the request is invalid: this service issues no session tokens, use an access key \
         without one"
    )]
    SecurityToken,
    /// No key has this id. The caller finds out.
    #[error("the security token included in the request is invalid: the access key id is unknown")]
    UnknownKey,
    /// Signed for another service.
    #[error("credential should be scoped to correct service: '{expected}'")]
    WrongService {
        /// The service that is served.
        expected: String,
    },
    /// Signed for another region.
    #[error("credential should be scoped to a valid region: '{expected}'")]
    WrongRegion {
        /// The region that is served.
        expected: String,
    },
    /// The day of the credential's scope is not that of the request's date.
    #[error("the date in the credential's scope must be the day of the request's date")]
    WrongDay,
    /// Signed too long ago.
    #[error("signature expired: {signed} is now earlier than {earliest} ({now} - 5 min.)")]
    Expired {
        /// The date that was signed.
        signed: String,
        /// The earliest that is taken.
        earliest: String,
        /// The server's time.
        now: String,
    },
    /// Signed in the future.
    #[error("signature not yet current: {signed} is still later than {latest} ({now} + 5 min.)")]
    NotYetCurrent {
        /// The date that was signed.
        signed: String,
        /// The latest that is taken.
        latest: String,
        /// The server's time.
        now: String,
    },
    /// A header must be signed and is not.
    #[error("the header {header} must be signed")]
    NotSigned {
        /// Which.
        header: String,
    },
    /// A header is signed and did not arrive.
    #[error("the header {header} is signed but missing")]
    SignedButMissing {
        /// Which.
        header: String,
    },
    /// The body is not covered by the signature.
    #[error("the body must be signed: unsigned and chunk-signed payloads are not taken")]
    UnsignedBody,
    /// `x-amz-content-sha256` is not the hash of the body.
    #[error("the header x-amz-content-sha256 must be the SHA-256 of the body")]
    WrongBody,
    /// The signature is not that of the secret.
    #[error(
        "the request signature we calculated does not match the signature you provided: check your secret access key and \
         signing method"
    )]
    Mismatch,
}

impl SignatureError {
    /// The name for the client.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Missing => "MissingAuthenticationTokenException",
            Self::Repeated { .. } | Self::NotText { .. } | Self::Malformed(_) | Self::NoDate => {
                "IncompleteSignatureException"
            }
            Self::SecurityToken | Self::UnknownKey => "UnrecognizedClientException",
            Self::WrongService { .. }
            | Self::WrongRegion { .. }
            | Self::WrongDay
            | Self::Expired { .. }
            | Self::NotYetCurrent { .. }
            | Self::NotSigned { .. }
            | Self::SignedButMissing { .. }
            | Self::UnsignedBody
            | Self::WrongBody
            | Self::Mismatch => "InvalidSignatureException",
        }
    }
}
