//! The controller of CodeRuns: dereference, decide, build, apply, status.

mod apply;
mod dereference;
mod lifetime;
mod outcome;
mod readiness;
mod reconcile;
mod status;
#[cfg(test)]
mod story_tests;

pub use apply::{delete, deny_network, told};
pub use reconcile::reconcile;
