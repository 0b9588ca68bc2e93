//! The controller of CodeInterpreters: dereference, validate, status. Their pods are the pools'.

mod reconcile;
mod status;
#[cfg(test)]
mod story_tests;
mod validate;

pub use reconcile::{Written, reconcile, refuse};
pub use status::pool_label;
pub use validate::validate;
