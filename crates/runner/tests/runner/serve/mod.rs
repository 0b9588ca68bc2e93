//! `runner serve` from outside: the built program, a real ipykernel, and a gateway that speaks to it over TLS.

mod access;
mod client;
mod command;
mod end;
mod execute;
mod files;
mod interrupt;
mod isolation;
pub mod pod;
mod repeat;
