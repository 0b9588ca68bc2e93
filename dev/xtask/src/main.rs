//! `cargo xtask`: the commands of development. Each subcommand lives in its own module.

use clap::{Parser, Subcommand};

mod cluster;
mod images;

/// Development commands of the project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The development cluster: one node, inside its own network namespace.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Build the project's container images from their Dockerfiles.
    Images(images::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Cluster(command) => cluster::run(command),
        Command::Images(arguments) => images::run(&arguments),
    }
}
