//! The pods of runs and of readers: built from a workspace's resolved state, with no client and no clock.

mod network_policy;
mod reader_pod;
mod run_pod;

pub use network_policy::{NETWORK_POLICY, default_deny};
pub use reader_pod::{READER, READER_PREFIX, ReaderPod};
pub use run_pod::{BODY, PREPARE, RunPod};
