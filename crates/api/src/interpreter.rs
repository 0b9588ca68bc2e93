//! `CodeInterpreter`: what sessions an agent may open, and how many of them stand ready.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::WorkspaceReference;
use crate::{blocks, labels};

/// The identifier of the interpreter that AgentCore gives everybody; here every tenant has an object of its own for it.
pub const DEFAULT_IDENTIFIER: &str = "aws.codeinterpreter.v1";

/// Name of the object that stands for [`DEFAULT_IDENTIFIER`] in each tenant's namespace.
pub const DEFAULT_NAME: &str = "aws-codeinterpreter-v1";

/// An interpreter that agents open sessions of, through a gateway that speaks the AgentCore protocol.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "codeworkspace.dev",
    version = "v1alpha1",
    doc = "An interpreter that agents open sessions of.",
    kind = "CodeInterpreter",
    plural = "codeinterpreters",
    shortname = "cint",
    category = "code",
    namespaced,
    status = "CodeInterpreterStatus",
    printcolumn(name = "Identifier", json_path = ".status.identifier", type_ = "string"),
    printcolumn(
        name = "Ready",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        type_ = "string"
    ),
    printcolumn(
        name = "Reason",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        type_ = "string"
    ),
    printcolumn(name = "Template", json_path = ".status.template", type_ = "string"),
    printcolumn(name = "Warm", json_path = ".status.warmPool.ready", type_ = "integer"),
    printcolumn(name = "Sessions", json_path = ".status.sessions", type_ = "integer"),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date"),
    printcolumn(
        name = "Message",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        type_ = "string",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct CodeInterpreterSpec {
    /// Name of the RunnerTemplate whose image and kernels sessions get; the lightest that has kernels when absent. A template that
    /// goes takes its interpreters with it: sessions are refused, and no other template steps in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub template: Option<String>,
    /// Languages that sessions may use; all that the template has a kernel for when absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub languages: Vec<SessionLanguage>,
    /// A workspace of the same namespace whose bundle sessions start with. Not implemented yet: refused in status as
    /// NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_ref: Option<WorkspaceReference>,
    /// What sessions may reach. They reach nothing: lists of hosts are refused in status as NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<InterpreterNetwork>,
    /// Secrets by environment variable (AIP-19). Not implemented yet: refused in status as NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::secrets")]
    pub secrets: Option<Value>,
    /// Whether sessions may run shell commands.
    #[serde(default)]
    pub commands: Commands,
    /// How long a session may live, whatever it does.
    #[serde(default)]
    pub session_timeout_seconds: SessionTimeout,
    /// Seconds without a call after which a session ends; it does not end by idleness when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 28_800))]
    pub idle_timeout_seconds: Option<i64>,
    /// Pods that wait for sessions, with their kernels started.
    #[serde(default)]
    pub warm_pool: WarmPool,
    /// Most sessions at once; as many as the tenant's quota permits when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub capacity: Option<i32>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,
}

impl CodeInterpreter {
    /// The name that clients of the AgentCore API know: the one that a client gave it, or else the object's own, as far as that API's
    /// pattern (`[a-zA-Z][a-zA-Z0-9_]{0,47}`) permits.
    pub fn agentcore_name(&self) -> String {
        const LONGEST: usize = 48;
        let given = self
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(labels::AGENTCORE_NAME));
        let name = given.or(self.metadata.name.as_ref());
        let name = name.map(String::as_str).unwrap_or_default();
        let letters = name.chars().map(|letter| match letter {
            letter if letter.is_ascii_alphanumeric() => letter,
            _ => '_',
        });
        // Names of objects may begin with a digit.
        let prefix = Some('i').filter(|_| !name.starts_with(|first: char| first.is_ascii_alphabetic()));
        prefix.into_iter().chain(letters).take(LONGEST).collect()
    }

    /// What clients of the AgentCore API call this interpreter: [`DEFAULT_IDENTIFIER`] for the object of [`DEFAULT_NAME`], else its name
    /// and ten letters and digits, which follow from its uid.
    pub fn identifier(&self) -> String {
        if self.metadata.name.as_deref() == Some(DEFAULT_NAME) {
            return DEFAULT_IDENTIFIER.to_owned();
        }
        let uid = self.metadata.uid.as_deref().unwrap_or_default();
        let letters = uid.chars().filter(char::is_ascii_alphanumeric);
        let suffix: String = letters.chain(std::iter::repeat('0')).take(10).collect();
        format!("{}-{suffix}", self.agentcore_name())
    }
}

/// What sessions may reach.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterpreterNetwork {
    /// Hosts: `host` or `*.host`, each with an optional `:port`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 300)))]
    pub egress: Vec<String>,
}

/// A language as the AgentCore API spells it.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionLanguage {
    /// Python: the kernel `python3`.
    Python,
    /// JavaScript: the kernel `javascript`.
    Javascript,
    /// TypeScript: the kernel `typescript`.
    Typescript,
}

impl SessionLanguage {
    /// Every language.
    pub const ALL: [Self; 3] = [Self::Python, Self::Javascript, Self::Typescript];

    /// The AgentCore API's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Javascript => "javascript",
            Self::Typescript => "typescript",
        }
    }

    /// Name of the kernelspec that runs it.
    pub fn kernel(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Javascript => "javascript",
            Self::Typescript => "typescript",
        }
    }
}

/// Whether sessions may run shell commands.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Commands {
    /// They may.
    #[default]
    Enabled,
    /// They may run code only. That is no barrier for code that starts programs itself.
    Disabled,
}

/// How long a session may live.
#[derive(KubeSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.default <= self.max").message("default must not be above max"))]
pub struct SessionTimeout {
    /// Seconds of a session that asks for nothing itself.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1, max = 28_800))]
    pub default: i64,
    /// Most seconds that a session may ask for.
    #[serde(default = "longest_timeout")]
    #[schemars(range(min = 1, max = 28_800))]
    pub max: i64,
}

impl Default for SessionTimeout {
    fn default() -> Self {
        Self {
            default: default_timeout(),
            max: longest_timeout(),
        }
    }
}

fn default_timeout() -> i64 {
    900
}

fn longest_timeout() -> i64 {
    28_800
}

/// Pods that wait for sessions. Interpreters of one template share them within their namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WarmPool {
    /// Pods that wait. Without any, each session starts cold.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub size: i32,
    /// Most pods, waiting ones and sessions together; as many as the operator's configuration permits when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max: Option<i32>,
    /// Age at which a waiting pod is replaced, as a Go duration such as `24h` (the default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 32))]
    pub max_age: Option<String>,
}

/// What became of an interpreter.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeInterpreterStatus {
    /// The generation that this status speaks of; -1 before the first look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, and `Reconciling` and `Stalled` while they hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// What clients of the AgentCore API call this interpreter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<String>,
    /// The template that sessions get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Languages that sessions may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<SessionLanguage>,
    /// The pods that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_pool: Option<WarmPoolStatus>,
    /// Sessions that are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<i32>,
}

/// The pods that wait for sessions of one template in one namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WarmPoolStatus {
    /// How many there should be.
    pub size: i32,
    /// Pods that a session can have at once.
    pub ready: i32,
    /// Pods that still start.
    pub starting: i32,
    /// Why the last pod did not start; absent while pods start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interpreter(name: &str, given: Option<&str>) -> CodeInterpreter {
        let mut interpreter = CodeInterpreter::new(name, CodeInterpreterSpec::default());
        interpreter.metadata.uid = Some("0b3f6c1e-77aa-4d0c-9d8e-1c2d3e4f5a6b".to_owned());
        interpreter.metadata.annotations =
            given.map(|given| [(labels::AGENTCORE_NAME.to_owned(), given.to_owned())].into());
        interpreter
    }

    #[test]
    fn every_interpreter_has_an_identifier_that_clients_take() {
        let identifiers = [
            (DEFAULT_NAME, None),
            ("data-science", None),
            ("2nd.team", None),
            ("anything", Some("dataScience_2")),
        ]
        .map(|(name, given)| interpreter(name, given).identifier());
        assert_eq!(
            identifiers,
            [
                "aws.codeinterpreter.v1",
                "data_science-0b3f6c1e77",
                "i2nd_team-0b3f6c1e77",
                "dataScience_2-0b3f6c1e77",
            ]
        );
        let long = interpreter(&"a".repeat(200), None).identifier();
        assert_eq!(long.len(), 48 + 11);
    }
}
