//! The header `Authorization`.

use std::{fmt, str::FromStr};

use super::{SignatureError, from_hexadecimal};

pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";

pub(super) const TERMINATOR: &str = "aws4_request";

/// Characters of the longest header that is read. A real one has some 250, and one name more for each signed header.
const MAX_LENGTH: usize = 4096;

/// An access key's id: 16 to 128 letters, digits and underscores.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccessKeyId(String);

impl AccessKeyId {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccessKeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for AccessKeyId {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        let is_legal = (16..=128).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_legal {
            Ok(Self(text.to_owned()))
        } else {
            Err(SignatureError::Malformed(
                "an access key id has 16 to 128 letters, digits and underscores",
            ))
        }
    }
}

/// The scope of a credential: what the key that signs was derived for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialScope {
    /// `20260101`
    pub day: String,
    /// `us-east-1`
    pub region: String,
    /// `bedrock-agentcore`
    pub service: String,
}

impl fmt::Display for CredentialScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}/{}/{}/{TERMINATOR}",
            self.day, self.region, self.service
        )
    }
}

/// The header, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authorization {
    pub(super) access_key_id: AccessKeyId,
    pub(super) scope: CredentialScope,
    /// Lower case, sorted, each once.
    pub(super) signed_headers: Vec<String>,
    pub(super) signature: [u8; 32],
}

impl Authorization {
    pub(super) fn signs(&self, name: &str) -> bool {
        self.signed_headers
            .binary_search_by(|signed| signed.as_str().cmp(name))
            .is_ok()
    }
}

impl FromStr for Authorization {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        use SignatureError::Malformed;

        if text.len() > MAX_LENGTH {
            return Err(Malformed("it is too long"));
        }
        let parameters = text
            .strip_prefix(ALGORITHM)
            .filter(|rest| rest.starts_with([' ', '\t']))
            .ok_or(Malformed("it begins otherwise"))?;
        let [mut credential, mut signed_headers, mut signature] = [None; 3];
        for parameter in parameters.split(',') {
            let (name, value) = parameter
                .trim()
                .split_once('=')
                .ok_or(Malformed("a parameter has no value"))?;
            let slot = match name {
                "Credential" => &mut credential,
                "SignedHeaders" => &mut signed_headers,
                "Signature" => &mut signature,
                _ => return Err(Malformed("it has another parameter")),
            };
            if slot.replace(value).is_some() {
                return Err(Malformed("a parameter stands twice"));
            }
        }
        let (access_key_id, scope) = credential_of(credential.ok_or(Malformed("Credential is missing"))?)?;
        Ok(Self {
            access_key_id,
            scope,
            signed_headers: names_of(signed_headers.ok_or(Malformed("SignedHeaders is missing"))?)?,
            signature: from_hexadecimal(signature.ok_or(Malformed("Signature is missing"))?).ok_or(
                Malformed("a signature has 64 hexadecimal digits, a to f in lower case"),
            )?,
        })
    }
}

fn credential_of(text: &str) -> Result<(AccessKeyId, CredentialScope), SignatureError> {
    const FORM: SignatureError =
        SignatureError::Malformed("a credential is key-id/YYYYMMDD/region/service/aws4_request");
    let parts: Vec<_> = text.splitn(6, '/').collect();
    let [id, day, region, service, TERMINATOR] = parts[..] else {
        return Err(FORM);
    };
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let is_day = day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit());
    if !is_day || !is_name(region) || !is_name(service) {
        return Err(FORM);
    }
    let scope = CredentialScope {
        day: day.to_owned(),
        region: region.to_owned(),
        service: service.to_owned(),
    };
    Ok((id.parse()?, scope))
}

fn names_of(text: &str) -> Result<Vec<String>, SignatureError> {
    let names: Vec<_> = text.split(';').map(str::to_owned).collect();
    let is_legal = |name: &String| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase())
    };
    if names.iter().all(is_legal) && names.is_sorted_by(|one, next| one < next) {
        Ok(names)
    } else {
        Err(SignatureError::Malformed(
            "signed headers are in lower case, in order, each once, with semicolons between them",
        ))
    }
}
