//! The registration endpoint: the pod of a session tells the digest of its key, once, while it is prepared.
//!
//! By that digest the gateway knows later whom it speaks to, whatever pod has the address by then. Every replica serves it, since it
//! needs no lease: all that it decides by is what the API server says at that moment.

mod decision;
mod handler;
mod server;

pub use handler::{Peer, Registrar};
pub use server::serve;
