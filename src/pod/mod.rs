//! The pods of runs, readers and sessions, and their network: built from resolved state, with no client and no clock.

mod network_policy;
mod parts;
mod reader_pod;
mod run_pod;
mod session_pod;
mod session_policy;

pub use network_policy::{NETWORK_POLICY, default_deny};
pub use reader_pod::{READER, READER_PREFIX, ReaderPod};
pub use run_pod::{BODY, PREPARE, RunPod};
pub use session_pod::{SESSION, SESSION_PREFIX, SessionPod};
pub use session_policy::{SESSION_NETWORK_POLICY, session_network};
