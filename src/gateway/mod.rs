//! The gateway: sessions for agents, in the protocols that they speak.

pub mod access_key;
mod agentcore;
pub mod claim;
pub mod configuration;
mod defaults;
mod events;
pub mod index;
mod mint;
mod native;
mod page;
mod pinned;
mod rates;
mod runner;
mod runners;
pub mod sessions;
mod sessions_error;
mod start;
pub mod watch;

pub use configuration::GatewayConfiguration;
pub use mint::mint;
pub use start::{Listen, start};
