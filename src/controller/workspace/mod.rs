//! The controller of CodeWorkspaces: dereference, validate, build, apply, status.

mod apply;
mod build;
#[cfg(test)]
mod decision_tests;
mod delivery;
mod dereference;
mod duration;
mod graph;
mod key;
#[cfg(test)]
mod known_fault_tests;
mod lookup;
mod manifest;
mod place;
#[cfg(test)]
mod policy_tests;
mod problem;
mod quantity;
mod reconcile;
#[cfg(test)]
mod reference_tests;
mod refuse;
#[cfg(test)]
mod resilience_tests;
pub mod root;
mod schedule;
mod staleness;
mod status;
#[cfg(test)]
mod story;
#[cfg(test)]
mod story_tests;
mod template;
#[cfg(test)]
mod upgrade_tests;

pub use delivery::{config_map_name, holds};
pub use duration::parse as parse_duration;
pub use key::RunKey;
pub use place::path;
pub use reconcile::reconcile;
pub use refuse::{refuse, without_spec};
pub use root::{Volumes, flux_dependency, flux_resource};
