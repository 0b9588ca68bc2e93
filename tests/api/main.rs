//! What a real API server makes of our definitions, our admission policies and our charts.
//!
//! Most tests need a server (`cargo xtask test api` starts one) and are ignored without it.

mod admission;
mod charts;
mod definitions;
mod pasted;
mod permissions;
#[path = "../corpus/cases.rs"]
mod corpus;
#[path = "../support/mod.rs"]
mod support;
