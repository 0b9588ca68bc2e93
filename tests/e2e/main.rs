//! The product's stories on a real cluster, told against the operator that the charts installed there.
//!
//! `cargo xtask test e2e` prepares the cluster and runs them. Each story has a namespace of its own, whose pods must pass the `restricted`
//! level, and waits by watching objects. Most are told side by side; those that disturb the operator are told alone.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is test code, also what is not marked as a test"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "parts of manifests read best where they are used, without `&`"
)]

mod agentcore;
mod alone;
mod bad_input;
mod claims;
mod connectors;
mod examples;
mod forms;
mod integrity;
mod isolation;
mod kstatus;
mod lifetimes;
mod long;
mod outcomes;
mod policy;
mod quotas;
mod references;
mod roots;
mod runs;
mod scans;
mod sources;
mod support;
mod templates;
mod volumes;
