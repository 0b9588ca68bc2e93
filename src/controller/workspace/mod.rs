//! The controller of CodeWorkspaces: dereference, validate, build, apply, status.

mod apply;
mod build;
mod delivery;
mod dereference;
mod duration;
mod fault;
mod key;
mod manifest;
mod quantity;
mod reconcile;
mod refuse;
pub mod root;
mod schedule;
mod status;
#[cfg(test)]
mod story_tests;
mod template;

pub use delivery::{config_map_name, holds};
pub use key::RunKey;
pub use reconcile::reconcile;
pub use refuse::{refuse, without_spec};
