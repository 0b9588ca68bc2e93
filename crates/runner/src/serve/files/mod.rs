//! The session's files, as callers read, write, list and remove them.

mod bundle;
mod fault;
mod jail;
mod look;
mod path;
mod stage;
mod write;

#[cfg(test)]
mod tests;

pub(in crate::serve) use bundle::unpack;
pub(in crate::serve) use jail::Root;
pub(in crate::serve) use look::{list, open_file, remove};
pub(in crate::serve) use path::SessionPath;
pub(in crate::serve) use write::{write_file, write_tar};
