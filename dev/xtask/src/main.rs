//! `cargo xtask`: the commands of development. Each subcommand lives in its own module.

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod cluster;
mod demo;
mod gateway_env;
mod images;
mod installation;
mod test;

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
    Cluster(cluster::Arguments),
    /// Build the project's container images from their Dockerfiles.
    Images(images::Arguments),
    /// Run the examples on a cluster and show what became of each.
    Demo(demo::Arguments),
    /// Print the lines that point an AWS SDK at the gateway of the development cluster.
    GatewayEnv(gateway_env::Arguments),
    /// Run the tests of one tier, or of all.
    Test(test::Arguments),
}

/// The root of the checkout that this program was built in.
fn checkout() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package)
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Cluster(arguments) => cluster::run(arguments),
        Command::Images(arguments) => images::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Demo(arguments) => demo::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::GatewayEnv(arguments) => gateway_env::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Test(arguments) => test::run(&arguments).map(|()| ExitCode::SUCCESS),
    };
    match result {
        Ok(status) => status,
        Err(error) => {
            // One line: what failed and why. Where in this program it failed is of no use to whoever runs it.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        super::Arguments::command().debug_assert();
    }
}
