//! What the runner tells about itself, its tasks and its files.

use serde::{Deserialize, Serialize};

use super::event::{Finished, StreamSummary};

/// The state of a session's pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    /// The session that is bound to the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Every kernel.
    pub kernels: Vec<KernelStatus>,
    /// Calls that run or wait.
    pub active: u64,
    /// Seconds since the last call ended; 0 while one runs.
    pub idle_seconds: u64,
}

/// The state of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KernelStatus {
    /// Its name.
    pub name: String,
    /// How often its process was replaced.
    pub restarts: u64,
    /// Whether it runs code now.
    pub busy: bool,
}

/// The state of a background command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TaskStatus {
    /// Its id, a UUID.
    pub id: String,
    /// Where it stands.
    pub state: TaskState,
    /// The beginning of standard output so far, at most [`super::MAX_STREAM_BYTES`].
    pub stdout: String,
    /// The beginning of standard error so far.
    pub stderr: String,
    /// All that was printed to standard output so far.
    pub stdout_summary: StreamSummary,
    /// All that was printed to standard error so far.
    pub stderr_summary: StreamSummary,
    /// How it ended; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Finished>,
}

/// Where a background command stands; AgentCore's `TaskStatus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum TaskState {
    /// It was taken and has not started.
    Submitted,
    /// It runs.
    Working,
    /// It exited by itself with 0.
    Completed,
    /// It was stopped.
    Canceled,
    /// It exited with another code, or died.
    Failed,
}

/// One file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileEntry {
    /// Path relative to the session's root.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// Bytes of a file.
    pub size: u64,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A socket, pipe or device.
    Other,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WrittenFiles {
    /// Number of files.
    pub files: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}
