//! Sources resolved from a server that plays GitHub over real git repositories.

#![expect(
    clippy::unwrap_used,
    reason = "a step that fails is a failed test, helpers included"
)]

mod access;
mod answers;
mod caching;
mod downloads;
mod fidelity;
mod look_up;
mod narrowing;
mod restart;
mod world;
