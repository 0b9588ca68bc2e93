//! The gateway: sessions for agents, in the protocols that they speak.

mod access_key;
mod agentcore;
mod claim;
mod configuration;
mod defaults;
mod events;
mod index;
mod mint;
mod page;
mod pinned;
mod rates;
mod runner;
mod runners;
mod sessions;
mod start;
mod watch;

pub use configuration::GatewayConfiguration;
pub use mint::mint;
pub use start::{Listen, start};
