//! What the gateway asks for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Binds a pod to the session that claimed it. Repeating it with the same parameters changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BindRequest {
    /// The session's id.
    pub session: String,
    /// Whether commands may be run.
    pub commands: bool,
    /// Seconds without a call or a running execution after which the runner ends the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_seconds: Option<u64>,
    /// Digest of the bundle that has to be there before anything runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
}

/// What a bound pod still needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BindResponse {
    /// Whether the bundle has to be sent.
    pub bundle_wanted: bool,
    /// Names of the kernels that there are.
    pub kernels: Vec<String>,
}

/// Runs code in a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecuteRequest {
    /// Names this call. A second call of the same id is the same call: it gets what the first one printed, from the beginning, and how
    /// it ended. Absent means that this call is never repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation: Option<String>,
    /// Name of the kernel (its kernelspec).
    pub kernel: String,
    /// The code.
    pub code: String,
    /// Forget all variables before.
    #[serde(default)]
    pub clear_context: bool,
    /// Milliseconds that it may take; no limit of its own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Environment variables that are set in the kernel before, each time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// Runs a command in `bash`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandRequest {
    /// As in [`ExecuteRequest::invocation`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation: Option<String>,
    /// The command, as `bash` reads it from a file.
    pub command: String,
    /// Milliseconds that it may take; no limit of its own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Environment variables beside the session's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// Interrupts one execution or command, or all of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelRequest {
    /// The call's id.
    pub invocation: String,
}

/// Gives a kernel a new process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestartRequest {
    /// Name of the kernel.
    pub kernel: String,
}

/// Removes files, or folders with what is in them. All paths are checked before the first is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoveRequest {
    /// Paths relative to the session's root.
    pub paths: Vec<String>,
}

/// Ends the session's pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopRequest {
    /// The session's id.
    pub session: String,
}
