//! The controller of CodeSessions: dereference, decide, apply, status.
//!
//! A session's pod is its truth. The gateway opens it, the kubelet keeps its time and its runner its idleness; what is left here is to
//! record how it went, to delete what is over, and to see that nothing is left behind.

mod apply;
mod decide;
mod dereference;
mod ending;
mod reconcile;
mod status;
#[cfg(test)]
mod story_tests;

pub use reconcile::reconcile;
