//! The development cluster.

/// What to do with the cluster.
#[derive(clap::Subcommand)]
pub enum Command {}

/// Runs one cluster command.
pub fn run(command: Command) -> anyhow::Result<()> {
    match command {}
}
