//! `CodeRun`: one execution of a workspace's bundle, with its whole outcome.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One execution of a workspace. The operator makes one for each new combination of bundle, command and runner
/// (`runPolicy: OnChange`); anyone may make more.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "codeworkspace.dev",
    version = "v1alpha1",
    doc = "One execution of a workspace, with its whole outcome.",
    kind = "CodeRun",
    plural = "coderuns",
    shortname = "crun",
    category = "code",
    namespaced,
    status = "CodeRunStatus",
    validation = Rule::new("self.spec == oldSelf.spec")
        .field_path(".spec")
        .message("spec is immutable: make another CodeRun instead"),
    printcolumn(name = "Workspace", json_path = ".spec.workspaceRef.name", type_ = "string"),
    printcolumn(name = "Outcome", json_path = ".status.outcome", type_ = "string"),
    printcolumn(name = "Reason", json_path = ".status.reason", type_ = "string"),
    printcolumn(name = "Exit", json_path = ".status.exitCode", type_ = "integer"),
    printcolumn(name = "Started", json_path = ".status.startedAt", type_ = "date"),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date"),
    printcolumn(name = "Message", json_path = ".status.message", type_ = "string", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct CodeRunSpec {
    /// The workspace to run, in the same namespace.
    pub workspace_ref: WorkspaceReference,
    /// Arguments that follow the workspace's command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 8192), regex(pattern = r"^[^\x00]*$")))]
    pub args: Vec<String>,
    /// Seconds until the body is ended; the workspace's own limit when absent, and never above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub timeout_seconds: Option<i64>,
    /// Seconds that the finished run and its pod stay for reading; an hour when absent. The run of a workspace's current
    /// key stays as long as the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub ttl_seconds_after_finished: Option<i64>,
    /// Run only this bundle (`sha256:…`). Runs that the operator makes pin the bundle they were made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80), regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
}

/// Names a CodeWorkspace of the same namespace.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceReference {
    /// Name of the workspace.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
}

/// What became of the run. Fields are present only when they were observed; nothing is guessed.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeRunStatus {
    /// The generation that this status speaks of; -1 before the first look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Digest of the bundle that this run uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_digest: Option<String>,
    /// Name of the run's pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// Uid of the run's pod, so that a pod of the same name is never taken for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// Runner template that the pod uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The image as the node resolved it, with its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// When the body started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the outcome was settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// How the run ended; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Why, from a closed list; also set while the run waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<OutcomeReason>,
    /// For people: what happened and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Exit code of the body, only when it exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that ended the body, only when one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The body's standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<StreamStatus>,
    /// The body's standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<StreamStatus>,
}

impl CodeRunStatus {
    /// Whether the outcome is settled.
    pub fn is_finished(&self) -> bool {
        self.outcome.is_some()
    }
}

/// The end of one output stream, and how much there was.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamStatus {
    /// The last bytes as text; bytes that are no UTF-8 are replaced.
    pub tail: String,
    /// Bytes written in all.
    pub total_bytes: i64,
    /// Whether `tail` is less than everything.
    pub truncated: bool,
}

/// How a run ended.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// The body exited with 0.
    Succeeded,
    /// The body exited with another code, or a signal ended it.
    Failed,
    /// The body was still running at its time limit.
    TimedOut,
    /// The kernel killed a process of the run for memory.
    OOMKilled,
    /// The node evicted the pod.
    Evicted,
    /// The body never started.
    StartError,
    /// A newer state of the workspace replaced this run before it started.
    Cancelled,
    /// The pod vanished before its outcome was seen.
    Lost,
}

impl Outcome {
    /// The spelling in status, events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::TimedOut => "TimedOut",
            Self::OOMKilled => "OOMKilled",
            Self::Evicted => "Evicted",
            Self::StartError => "StartError",
            Self::Cancelled => "Cancelled",
            Self::Lost => "Lost",
        }
    }
}

/// Why a run ended as it did, or what it waits for.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OutcomeReason {
    /// The body exited with 0.
    Completed,
    /// The body exited with another code.
    NonZeroExit,
    /// A signal ended the body.
    Signal,
    /// The body's time was up.
    TimeLimit,
    /// Memory ran out.
    MemoryLimit,
    /// The node evicted the pod.
    Evicted,
    /// The command could not be started in the image.
    CommandNotStarted,
    /// The bundle's bytes are not those of the digest.
    DigestMismatch,
    /// The bundle could not be unpacked.
    UnpackFailed,
    /// The image could not be pulled within the start budget.
    ImagePullFailed,
    /// The container could not be made or started within the start budget.
    ContainerNotStarted,
    /// No node took the pod within the start budget.
    NotScheduled,
    /// The API server refused the pod (quota, pod security, admission).
    PodRejected,
    /// The pinned digest is not the workspace's bundle any more.
    BundleNotAvailable,
    /// The workspace changed before the run started.
    Superseded,
    /// The workspace has no `run`.
    NothingToRun,
    /// The pod is gone.
    PodDeleted,
    /// The container ended without a record of the body.
    NoRecord,
    /// Waiting: the workspace does not exist.
    WorkspaceNotFound,
    /// Waiting: the workspace is not ready.
    WorkspaceNotReady,
    /// Waiting: the pod starts.
    Starting,
    /// The body runs.
    Running,
}

impl OutcomeReason {
    /// The spelling in status and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "Completed",
            Self::NonZeroExit => "NonZeroExit",
            Self::Signal => "Signal",
            Self::TimeLimit => "TimeLimit",
            Self::MemoryLimit => "MemoryLimit",
            Self::Evicted => "Evicted",
            Self::CommandNotStarted => "CommandNotStarted",
            Self::DigestMismatch => "DigestMismatch",
            Self::UnpackFailed => "UnpackFailed",
            Self::ImagePullFailed => "ImagePullFailed",
            Self::ContainerNotStarted => "ContainerNotStarted",
            Self::NotScheduled => "NotScheduled",
            Self::PodRejected => "PodRejected",
            Self::BundleNotAvailable => "BundleNotAvailable",
            Self::Superseded => "Superseded",
            Self::NothingToRun => "NothingToRun",
            Self::PodDeleted => "PodDeleted",
            Self::NoRecord => "NoRecord",
            Self::WorkspaceNotFound => "WorkspaceNotFound",
            Self::WorkspaceNotReady => "WorkspaceNotReady",
            Self::Starting => "Starting",
            Self::Running => "Running",
        }
    }
}
