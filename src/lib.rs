//! The operator: controllers of `codeworkspace.dev` and everything that they need.

pub mod authority;
pub mod configuration;
pub mod controller;
pub mod gateway;
pub mod http;
pub mod metrics;
pub mod pod;
mod signal;
