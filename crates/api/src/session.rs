//! `CodeSession`: the record of one session of an interpreter. The session itself is its pod.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One session of an interpreter. The gateway makes it before it takes a pod, under a name that follows from the caller's token, so
/// that a repeated call finds it again.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "codeworkspace.dev",
    version = "v1alpha1",
    doc = "One session of an interpreter, and how it ended.",
    kind = "CodeSession",
    plural = "codesessions",
    shortname = "cses",
    category = "code",
    namespaced,
    status = "CodeSessionStatus",
    printcolumn(
        name = "Interpreter",
        json_path = ".spec.interpreterRef.name",
        type_ = "string"
    ),
    printcolumn(name = "State", json_path = ".status.state", type_ = "string"),
    printcolumn(name = "Reason", json_path = ".status.reason", type_ = "string"),
    printcolumn(name = "Pod", json_path = ".spec.podName", type_ = "string"),
    printcolumn(name = "Expires", json_path = ".status.expiresAt", type_ = "string"),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date"),
    printcolumn(
        name = "Message",
        json_path = ".status.message",
        type_ = "string",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "self.interpreterRef.name == oldSelf.interpreterRef.name && self.timeoutSeconds == oldSelf.timeoutSeconds \
     && self.parametersDigest == oldSelf.parametersDigest && has(self.name) == has(oldSelf.name) \
     && (!has(self.name) || self.name == oldSelf.name)",
).message("only podName and stop may change: open another session instead"))]
#[x_kube(validation = Rule::new("!oldSelf.stop || self.stop").message("a session that was stopped stays stopped"))]
pub struct CodeSessionSpec {
    /// The interpreter, in the same namespace.
    pub interpreter_ref: InterpreterReference,
    /// The name that the caller gave the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub name: Option<String>,
    /// Seconds that the session may live.
    #[schemars(range(min = 1, max = 28_800))]
    pub timeout_seconds: i64,
    /// Digest of everything that the caller asked for, so that the same token with other parameters is noticed.
    #[schemars(length(max = 80))]
    pub parameters_digest: String,
    /// The pod that this session has, or is about to claim: nobody claims a pod for it that does not stand here. Absent until there
    /// is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub pod_name: Option<String>,
    /// Set to end the session.
    #[serde(default)]
    pub stop: bool,
}

/// Names a CodeInterpreter of the same namespace.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterpreterReference {
    /// Name of the interpreter.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What became of the session. Fields are present only when they were observed.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeSessionStatus {
    /// The generation that this status speaks of; -1 before the first look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where the session stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SessionState>,
    /// Why it ended, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SessionReason>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Uid of the session's pod, so that a pod of the same name is never taken for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// When the kubelet will end the pod, however that was meant to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// When the end was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
}

impl CodeSessionStatus {
    /// Whether the session has ended.
    pub fn has_ended(&self) -> bool {
        self.state == Some(SessionState::Terminated)
    }
}

/// Where a session stands.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SessionState {
    /// It has no pod yet.
    Pending,
    /// It has its pod.
    Ready,
    /// It has ended, for the reason that stands beside.
    Terminated,
}

impl SessionState {
    /// The spelling in status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Ready => "Ready",
            Self::Terminated => "Terminated",
        }
    }
}

/// Why a session ended, or what it waits for.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SessionReason {
    /// Waiting: no pod is free, so one is started for this session.
    WaitingForPod,
    /// It has its pod.
    Claimed,
    /// Somebody stopped it.
    Stopped,
    /// Its time was up.
    SessionTimeout,
    /// Nobody called for as long as the interpreter permits.
    IdleTimeout,
    /// Memory ran out, and the node killed the whole session.
    OutOfMemory,
    /// The node evicted the pod.
    Evicted,
    /// Somebody deleted the pod.
    PodDeleted,
    /// The pod's node is gone.
    NodeLost,
    /// The runner of the pod ended without saying why.
    RunnerFailed,
    /// No pod could be started in time.
    StartFailed,
    /// The interpreter, or its template, is gone or refuses sessions.
    InterpreterUnavailable,
}

impl SessionReason {
    /// The spelling in status, events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WaitingForPod => "WaitingForPod",
            Self::Claimed => "Claimed",
            Self::Stopped => "Stopped",
            Self::SessionTimeout => "SessionTimeout",
            Self::IdleTimeout => "IdleTimeout",
            Self::OutOfMemory => "OutOfMemory",
            Self::Evicted => "Evicted",
            Self::PodDeleted => "PodDeleted",
            Self::NodeLost => "NodeLost",
            Self::RunnerFailed => "RunnerFailed",
            Self::StartFailed => "StartFailed",
            Self::InterpreterUnavailable => "InterpreterUnavailable",
        }
    }
}
