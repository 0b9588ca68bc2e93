//! What stories are told with: a namespace, the objects in it, GitHub, the operator, and an account of what went wrong.

mod account;
mod credentials;
mod gateway;
mod github;
mod leaks;
mod objects;
mod operator;
mod programs;
mod story;

pub use gateway::{AccessKey, Gateway};
pub use github::{Github, Repository};
pub use leaks::leaks;
pub use objects::{End, bundle, condition, end, inline, source_error, verdict};
pub use operator::Operator;
pub use programs::{checkout, helm, kstatus, kubectl};
pub use story::{Story, alone, story};
