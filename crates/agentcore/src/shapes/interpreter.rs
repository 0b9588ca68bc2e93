//! The control plane: interpreters.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::IgnoredAny};

use super::{
    iso_8601,
    limits::{self, ClientToken, NextToken},
    optional_iso_8601,
    session::{list_length, refuse_mounts},
};
use crate::{
    identifier::{InterpreterId, InterpreterName, NameError},
    json::{self, Object},
    query::Query,
    validation::{Faults, ValidationError},
};

/// Tags of an interpreter at most.
const MAX_TAGS: usize = 50;

/// What code in an interpreter's sessions may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum NetworkMode {
    /// The network, as far as it is permitted.
    Public,
    /// Nothing.
    Sandbox,
}

/// What code in an interpreter's sessions may reach, as the wire wraps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkConfiguration {
    /// The mode.
    pub network_mode: NetworkMode,
}

/// How far an interpreter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum InterpreterStatus {
    /// Accepted, not usable yet.
    Creating,
    /// It will not be usable.
    CreateFailed,
    /// Usable.
    Ready,
    /// Going away.
    Deleting,
    /// It would not go away.
    DeleteFailed,
    /// Gone.
    Deleted,
}

/// Who made an interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterpreterType {
    /// Nobody had to: `aws.codeinterpreter.v1`.
    System,
    /// A client.
    Custom,
}

/// The body of `CreateCodeInterpreter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateInterpreterRequest {
    /// The name, which its id begins with.
    pub name: InterpreterName,
    /// 1 to 4,096 characters.
    pub description: Option<String>,
    /// What its sessions may reach.
    pub network_mode: NetworkMode,
    /// A repeated creation with the same token is the same interpreter.
    pub client_token: Option<ClientToken>,
    /// At most 50. No operation of the interpreter gives them back.
    pub tags: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateBody {
    name: Option<String>,
    description: Option<String>,
    execution_role_arn: Option<IgnoredAny>,
    network_configuration: Option<Object<NetworkBody>>,
    certificates: Option<IgnoredAny>,
    filesystem_configurations: Option<Vec<IgnoredAny>>,
    client_token: Option<String>,
    tags: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NetworkBody {
    network_mode: Option<String>,
    vpc_config: Option<IgnoredAny>,
}

impl CreateInterpreterRequest {
    /// Reads the body.
    pub fn parse(body: &[u8]) -> Result<Self, ValidationError> {
        let body: CreateBody = json::parse(body)?;
        let mut faults = Faults::default();
        if body.execution_role_arn.is_some() {
            faults.add("executionRoleArn", "is not supported: leave it out");
        }
        refuse_mounts(
            body.certificates.is_some(),
            body.filesystem_configurations.as_deref(),
            &mut faults,
        );
        let name = name_of(body.name.as_deref(), &mut faults);
        let network_mode = network_mode_of(body.network_configuration, &mut faults);
        let description = limits::text("description", body.description, 1..=4096, &mut faults);
        let client_token = ClientToken::checked(body.client_token.as_deref(), &mut faults);
        let tags = body.tags.unwrap_or_default();
        check_tags(&tags, &mut faults);
        let (Some(name), Some(network_mode)) = (name, network_mode) else {
            return Err(faults.into_error());
        };
        faults.into_result(Self {
            name,
            description,
            network_mode,
            client_token,
            tags,
        })
    }
}

/// Adds a fault exactly if there is no name.
fn name_of(text: Option<&str>, faults: &mut Faults) -> Option<InterpreterName> {
    let Some(text) = text else {
        faults.add("name", "is needed");
        return None;
    };
    text.parse()
        .map_err(|error: NameError| faults.add("name", &error.to_string()))
        .ok()
}

/// Adds a fault if there is no mode.
fn network_mode_of(body: Option<Object<NetworkBody>>, faults: &mut Faults) -> Option<NetworkMode> {
    const MEMBER: &str = "networkConfiguration.networkMode";
    const MODES: [(&str, NetworkMode); 2] =
        [("PUBLIC", NetworkMode::Public), ("SANDBOX", NetworkMode::Sandbox)];
    let Some(Object(body)) = body else {
        faults.add("networkConfiguration", "is needed");
        return None;
    };
    if body.vpc_config.is_some() {
        faults.add("networkConfiguration.vpcConfig", "is not supported: leave it out");
    }
    match body.network_mode.as_deref() {
        None => faults.add(MEMBER, "is needed"),
        Some("VPC") => faults.add(MEMBER, "VPC is not supported: must be one of PUBLIC, SANDBOX"),
        mode => return limits::choice(MEMBER, mode, &MODES, faults),
    }
    None
}

fn check_tags(tags: &BTreeMap<String, String>, faults: &mut Faults) {
    if tags.len() > MAX_TAGS {
        faults.add("tags", "must be at most 50");
    }
    let is_legal = |text: &str, least: usize, most: usize| {
        let is_character = |character: char| {
            character.is_ascii_alphanumeric() || character.is_whitespace() || "._:/=+@-".contains(character)
        };
        (least..=most).contains(&text.chars().count()) && text.chars().all(is_character)
    };
    if !tags.keys().all(|key| is_legal(key, 1, 128)) {
        faults.add(
            "tags",
            "keys must have 1 to 128 letters, digits, spaces and ._:/=+@-",
        );
    }
    if !tags.values().all(|value| is_legal(value, 0, 256)) {
        faults.add(
            "tags",
            "values must have at most 256 letters, digits, spaces and ._:/=+@-",
        );
    }
}

/// The answer to `CreateCodeInterpreter`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateInterpreterResponse {
    /// The new interpreter, or that of the same client token.
    pub code_interpreter_id: InterpreterId,
    /// Its ARN.
    pub code_interpreter_arn: String,
    /// When it was created.
    #[serde(serialize_with = "iso_8601")]
    pub created_at: Timestamp,
    /// How far it is.
    pub status: InterpreterStatus,
}

/// The answer to `GetCodeInterpreter`, which has no request beside its path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GetInterpreterResponse {
    /// Its id.
    pub code_interpreter_id: InterpreterId,
    /// Its ARN.
    pub code_interpreter_arn: String,
    /// The name it was created with. That of the system's interpreter is not of [`InterpreterName`]'s pattern.
    pub name: String,
    /// What it was created with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What its sessions may reach.
    pub network_configuration: NetworkConfiguration,
    /// How far it is.
    pub status: InterpreterStatus,
    /// Why it is not ready, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// When it was created.
    #[serde(serialize_with = "iso_8601")]
    pub created_at: Timestamp,
    /// When its status last changed.
    #[serde(serialize_with = "iso_8601")]
    pub last_updated_at: Timestamp,
}

/// The query of `ListCodeInterpreters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListInterpretersRequest {
    /// 1 to 100, and 10 if the client does not say.
    pub max_results: u32,
    /// Where to go on.
    pub next_token: Option<NextToken>,
    /// Only those.
    pub kind: Option<InterpreterType>,
}

impl ListInterpretersRequest {
    /// Reads the query.
    pub fn parse(query: Query<'_>) -> Result<Self, ValidationError> {
        const TYPES: [(&str, InterpreterType); 2] = [
            ("SYSTEM", InterpreterType::System),
            ("CUSTOM", InterpreterType::Custom),
        ];
        let mut faults = Faults::default();
        // What is no number is out of the range.
        let max_results = query.value("maxResults")?.map(|text| text.parse().unwrap_or(-1));
        let request = Self {
            max_results: list_length(max_results, &mut faults),
            next_token: NextToken::checked(query.value("nextToken")?.as_deref(), &mut faults),
            kind: limits::choice("type", query.value("type")?.as_deref(), &TYPES, &mut faults),
        };
        faults.into_result(request)
    }
}

/// The answer to `ListCodeInterpreters`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListInterpretersResponse {
    /// A page of them.
    pub code_interpreter_summaries: Vec<InterpreterSummary>,
    /// Where the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_token: Option<NextToken>,
}

/// One interpreter of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InterpreterSummary {
    /// Its id.
    pub code_interpreter_id: InterpreterId,
    /// Its ARN.
    pub code_interpreter_arn: String,
    /// The name it was created with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it was created with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How far it is.
    pub status: InterpreterStatus,
    /// When it was created.
    #[serde(serialize_with = "iso_8601")]
    pub created_at: Timestamp,
    /// When its status last changed.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_iso_8601")]
    pub last_updated_at: Option<Timestamp>,
}

/// The query of `DeleteCodeInterpreter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteInterpreterRequest {
    /// A repeated deletion with the same token is the same deletion.
    pub client_token: Option<ClientToken>,
}

impl DeleteInterpreterRequest {
    /// Reads the query.
    pub fn parse(query: Query<'_>) -> Result<Self, ValidationError> {
        let mut faults = Faults::default();
        let client_token = ClientToken::checked(query.value("clientToken")?.as_deref(), &mut faults);
        faults.into_result(Self { client_token })
    }
}

/// The answer to `DeleteCodeInterpreter`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteInterpreterResponse {
    /// Its id.
    pub code_interpreter_id: InterpreterId,
    /// How far it is.
    pub status: InterpreterStatus,
    /// When it was deleted.
    #[serde(serialize_with = "iso_8601")]
    pub last_updated_at: Timestamp,
}
