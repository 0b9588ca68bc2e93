//! The runner from outside: the built program, real processes, real volumes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "helpers of tests fail like tests"
)]

mod exec;
mod fixture;
mod hostile;
mod prepare;
mod read;
mod register;
mod serve;
