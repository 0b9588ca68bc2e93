//! What a real API server makes of our definitions, our admission policies and our charts.
//!
//! Most tests need a server (`cargo xtask test api` starts one) and are ignored without it.

mod admission;
mod applying;
mod attach;
mod charts;
mod claims;
#[path = "../corpus/cases.rs"]
mod corpus;
mod definitions;
mod pasted;
mod permissions;
mod pins;
mod registration;
#[path = "../support/mod.rs"]
mod support;
