//! The pod of a run: built from a workspace's resolved state, with no client and no clock.

mod network_policy;
mod run_pod;

pub use network_policy::{NETWORK_POLICY, default_deny};
pub use run_pod::{BODY, PREPARE, RunPod};
