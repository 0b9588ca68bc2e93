//! Pods that wait for sessions: one pool for each template that interpreters of a namespace use.
//!
//! All pools of a namespace are looked at together, since they share its limit. A look is triggered by changes of interpreters,
//! templates, sessions and pods, all of which the watches know; the API server is only written to.

mod apply;
mod dereference;
mod member;
mod memory;
mod plan;
mod reconcile;
mod run;
#[cfg(test)]
mod story_tests;
mod trouble;

pub use apply::delete_pod;
pub use memory::Memory;
pub use run::run;
