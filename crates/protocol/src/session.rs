//! What the gateway and the runner of a session say to each other: HTTP/1.1 over TLS in which both sides prove who they are.
//!
//! The gateway dials; nobody in the pod calls anybody. Requests and answers are JSON, files are raw bytes or a tar stream, and what an
//! execution prints comes as one JSON object a line ([`SessionEvent`]) while it runs.

mod error;
mod event;
mod request;
mod state;

pub use error::{ErrorCode, SessionError};
pub use event::{ExecutionOutcome, Finished, OutputStream, SessionEvent, StreamSummary};
pub use request::{
    BindRequest, BindResponse, CancelRequest, CommandRequest, ExecuteRequest, RemoveRequest, RestartRequest,
    StopRequest,
};
pub use state::{FileEntry, FileKind, KernelStatus, SessionStatus, TaskState, TaskStatus, WrittenFiles};

/// TCP port at which `runner serve` listens. The kubelet takes the pod for ready once somebody does, which is when every kernel is.
pub const PORT: u16 = 7070;
/// Port of the operator's registration endpoint.
pub const REGISTRATION_PORT: u16 = 8443;
/// DNS name in the certificate that a session's pod makes for itself; its key is pinned, the name only has to be one.
pub const SESSION_NAME: &str = "session.codeworkspace.internal";
/// DNS name in the gateway's certificate, which the internal authority signs.
pub const GATEWAY_NAME: &str = "gateway.codeworkspace.internal";
/// DNS name in the certificate of the registration endpoint, which the internal authority signs.
pub const OPERATOR_NAME: &str = "operator.codeworkspace.internal";
/// Audience of the token with which a pod registers.
pub const REGISTRATION_AUDIENCE: &str = "codeworkspace-operator";
/// Media type of a stream of [`SessionEvent`]s: one JSON object a line.
pub const EVENTS_MEDIA_TYPE: &str = "application/x-ndjson";
/// Bytes of each output stream that travel as events. What is longer is whole in a file, which [`StreamSummary::file`] names.
pub const MAX_STREAM_BYTES: u64 = 1024 * 1024;
/// Calls that may wait for one kernel, or for the shell; the next is refused with [`ErrorCode::QueueFull`].
pub const QUEUE_DEPTH: usize = 16;
/// Folder below the session's root that holds whole output streams.
pub const OUTPUT_FOLDER: &str = ".output";

/// [`path::REGISTER`]: what a pod tells the operator about itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegisterRequest {
    /// `sha256:` and the hex digest of the DER-encoded `SubjectPublicKeyInfo` (RFC 5280, 4.1) of the pod's key.
    pub key_digest: String,
}

/// Paths of the runner's verbs.
pub mod path {
    /// `POST` [`super::RegisterRequest`] to the operator, with the pod's token.
    pub const REGISTER: &str = "/v1/register";
    /// `POST` [`super::BindRequest`] gives [`super::BindResponse`]. The first call of each gateway.
    pub const BIND: &str = "/v1/bind";
    /// `GET` gives [`super::SessionStatus`].
    pub const STATUS: &str = "/v1/status";
    /// `POST` [`super::ExecuteRequest`] gives a stream of [`super::SessionEvent`]s.
    pub const EXECUTE: &str = "/v1/execute";
    /// `POST` [`super::CommandRequest`] gives a stream of [`super::SessionEvent`]s.
    pub const COMMAND: &str = "/v1/command";
    /// `POST` [`super::CommandRequest`] starts it in the background and gives [`super::TaskStatus`]; `GET /v1/tasks/{id}` gives the same
    /// later, `POST /v1/tasks/{id}/stop` ends it.
    pub const TASKS: &str = "/v1/tasks";
    /// `POST` [`super::CancelRequest`]: interrupts an execution or command.
    pub const CANCEL: &str = "/v1/cancel";
    /// `POST` [`super::RestartRequest`]: a new process for a kernel; its variables are gone.
    pub const RESTART: &str = "/v1/restart";
    /// `PUT` a tar stream of regular files, all of which are written, or none; gives [`super::WrittenFiles`].
    pub const FILES: &str = "/v1/files";
    /// `GET` or `PUT` one file as it is; query `path`.
    pub const FILE: &str = "/v1/file";
    /// `GET` gives the [`super::FileEntry`]s of a folder, sorted by name; query `path`, the root when absent.
    pub const LIST: &str = "/v1/list";
    /// `POST` [`super::RemoveRequest`].
    pub const REMOVE: &str = "/v1/remove";
    /// `PUT` the session's bundle (compressed tar); query `digest`.
    pub const BUNDLE: &str = "/v1/bundle";
    /// `POST` [`super::StopRequest`]: the runner ends its pod.
    pub const STOP: &str = "/v1/stop";
}
