//! The identifiers of code interpreters: ids, names and ARNs.

use std::{fmt, str::FromStr};

use serde::Serialize;
use thiserror::Error;

/// Alphanumerics at the end of a custom interpreter's id.
const SUFFIX_LENGTH: usize = 10;

const MAX_NAME_LENGTH: usize = 48;

/// Digits of the account in an ARN.
const ACCOUNT_LENGTH: usize = 12;

/// A text that is no identifier of a code interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "must be aws.codeinterpreter.v1, an id such as name-1234567890, or the ARN of one: \
     arn:aws:bedrock-agentcore:REGION:ACCOUNT:code-interpreter-custom/ID"
)]
pub struct IdentifierError;

/// A text that cannot name a code interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("must begin with a letter and have 1 to 48 letters, digits and underscores")]
pub struct NameError;

/// The name that a client gives an interpreter: `[a-zA-Z][a-zA-Z0-9_]{0,47}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct InterpreterName(String);

impl InterpreterName {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InterpreterName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let is_legal = text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.len() <= MAX_NAME_LENGTH
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_legal {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError)
        }
    }
}

impl fmt::Display for InterpreterName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The id of an interpreter: `aws.codeinterpreter.v1`, which everybody has, or a name and ten alphanumerics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct InterpreterId(String);

impl InterpreterId {
    /// The id of the interpreter that nobody has to create.
    pub const SYSTEM: &'static str = "aws.codeinterpreter.v1";

    /// The interpreter that nobody has to create.
    pub fn system() -> Self {
        Self(Self::SYSTEM.to_owned())
    }

    /// The id of a created interpreter. `suffix` must be ten ASCII letters or digits.
    pub fn custom(name: &InterpreterName, suffix: &str) -> Result<Self, IdentifierError> {
        format!("{name}-{suffix}").parse()
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is [`Self::SYSTEM`].
    pub fn is_system(&self) -> bool {
        self.0 == Self::SYSTEM
    }

    /// The ARN. The system's interpreter belongs to the account `aws`, whichever account asks, and has a resource type of its
    /// own.
    pub fn arn(&self, region: &str, account: &str) -> String {
        if self.is_system() {
            format!("arn:aws:bedrock-agentcore:{region}:aws:code-interpreter/{self}")
        } else {
            format!("arn:aws:bedrock-agentcore:{region}:{account}:code-interpreter-custom/{self}")
        }
    }
}

impl FromStr for InterpreterId {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        if text == Self::SYSTEM {
            return Ok(Self::system());
        }
        let (name, suffix) = text.rsplit_once('-').ok_or(IdentifierError)?;
        name.parse::<InterpreterName>().map_err(|_| IdentifierError)?;
        let is_suffix =
            suffix.len() == SUFFIX_LENGTH && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_suffix {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdentifierError)
        }
    }
}

impl fmt::Display for InterpreterId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The parts of an ARN that are not its id. Whether they are those of the caller is for the caller to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArnScope {
    /// `us-east-1`
    pub region: String,
    /// Twelve digits, or `aws`.
    pub account: String,
}

/// What a client calls an interpreter: an id or an ARN. Answers repeat it as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterpreterIdentifier {
    written: String,
    id: InterpreterId,
    arn: Option<ArnScope>,
}

impl InterpreterIdentifier {
    /// As it was written, for the answer's `codeInterpreterIdentifier`.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The id that was meant.
    pub fn id(&self) -> &InterpreterId {
        &self.id
    }

    /// Region and account, if it was an ARN.
    pub fn arn(&self) -> Option<&ArnScope> {
        self.arn.as_ref()
    }
}

impl From<InterpreterId> for InterpreterIdentifier {
    fn from(id: InterpreterId) -> Self {
        Self {
            written: id.as_str().to_owned(),
            id,
            arn: None,
        }
    }
}

impl FromStr for InterpreterIdentifier {
    type Err = IdentifierError;

    /// Takes what the model's pattern takes: AWS's own documents write `code-interpreter/` before created interpreters too.
    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        if !text.starts_with("arn:") {
            return Ok(text.parse::<InterpreterId>()?.into());
        }
        let parts: Vec<_> = text.split(':').collect();
        let ["arn", partition, "bedrock-agentcore", region, account, resource] = parts[..] else {
            return Err(IdentifierError);
        };
        let (kind, id) = resource.split_once('/').ok_or(IdentifierError)?;
        let is_legal = is_partition(partition)
            && is_region(region)
            && is_account(account)
            && matches!(kind, "code-interpreter" | "code-interpreter-custom");
        if !is_legal {
            return Err(IdentifierError);
        }
        Ok(Self {
            written: text.to_owned(),
            id: id.parse()?,
            arn: Some(ArnScope {
                region: region.to_owned(),
                account: account.to_owned(),
            }),
        })
    }
}

fn is_partition(text: &str) -> bool {
    text == "aws" || text.strip_prefix("aws-").is_some_and(|rest| !rest.is_empty())
}

fn is_region(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn is_account(text: &str) -> bool {
    text == "aws" || (text.len() == ACCOUNT_LENGTH && text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CUSTOM: &str =
        "arn:aws:bedrock-agentcore:eu-west-1:123456789012:code-interpreter-custom/data_1-Ab3Ab3Ab3x";

    #[test]
    fn ids_and_arns_lead_to_one_id() {
        let system = "arn:aws:bedrock-agentcore:us-east-1:aws:code-interpreter/aws.codeinterpreter.v1";
        for text in [InterpreterId::SYSTEM, system] {
            let identifier: InterpreterIdentifier = text.parse().unwrap();
            assert!(identifier.id().is_system());
            assert_eq!(identifier.as_str(), text);
        }
        let identifier: InterpreterIdentifier = CUSTOM.parse().unwrap();
        assert_eq!(identifier.id().as_str(), "data_1-Ab3Ab3Ab3x");
        let scope = ArnScope {
            region: "eu-west-1".to_owned(),
            account: "123456789012".to_owned(),
        };
        assert_eq!(identifier.arn(), Some(&scope));
        assert_eq!(identifier.id().arn("eu-west-1", "123456789012"), CUSTOM);
        assert_eq!(InterpreterId::system().arn("us-east-1", "123456789012"), system);
    }

    #[test]
    fn what_the_pattern_refuses_is_refused() {
        let long_name = format!("{}-1234567890", "a".repeat(49));
        for text in [
            "",
            "name",
            "name-123456789",
            "name-12345678901",
            "1name-1234567890",
            "na-me-1234567890",
            "name-12345678_0",
            "-1234567890",
            "näme-1234567890",
            "aws.codeinterpreter.v2",
            "aws.codeinterpreter.v1 ",
            &long_name,
            "arn:aws:bedrock-agentcore:us-east-1:aws:code-interpreter",
            "arn:aws:bedrock-agentcore:us-east-1:aws:code-interpreter/",
            "arn:aws:bedrock-agentcore:us-east-1:12345678901:code-interpreter-custom/name-1234567890",
            "arn:aws:bedrock-agentcore::aws:code-interpreter/aws.codeinterpreter.v1",
            "arn:aws-:bedrock-agentcore:us-east-1:aws:code-interpreter/aws.codeinterpreter.v1",
            "arn:aws:bedrock:us-east-1:aws:code-interpreter/aws.codeinterpreter.v1",
            "arn:aws:bedrock-agentcore:us-east-1:aws:browser/aws.codeinterpreter.v1",
            "arn:aws:bedrock-agentcore:us-east-1:aws:code-interpreter/a/aws.codeinterpreter.v1",
            "arn:aws:bedrock-agentcore:us-east-1:aws:code-interpreter/aws.codeinterpreter.v1:x",
        ] {
            assert_eq!(
                text.parse::<InterpreterIdentifier>(),
                Err(IdentifierError),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn an_id_survives_its_arn(name in "[a-zA-Z][a-zA-Z0-9_]{0,47}", suffix in "[a-zA-Z0-9]{10}") {
            let id = InterpreterId::custom(&name.parse().unwrap(), &suffix).unwrap();
            let arn: InterpreterIdentifier = id.arn("us-east-1", "123456789012").parse().unwrap();
            prop_assert_eq!(arn.id(), &id);
        }

        #[test]
        fn what_is_accepted_is_repeated_as_it_was_written(text in ".{0,80}") {
            if let Ok(identifier) = text.parse::<InterpreterIdentifier>() {
                prop_assert_eq!(identifier.as_str(), text);
            }
        }
    }
}
