//! The operator binary. One process for each subcommand.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use codeworkspace_operator::configuration::Configuration;
use codeworkspace_operator::controller;
use tracing_subscriber::EnvFilter;

/// Provisions code sandboxes from `CodeWorkspace` objects.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the controllers.
    Controller {
        /// File that the chart writes.
        #[arg(long, env = "CODEWORKSPACE_CONFIGURATION")]
        configuration: PathBuf,
        /// Address of `/healthz`, `/readyz` and `/metrics`.
        #[arg(long, default_value = "0.0.0.0:8080")]
        listen: SocketAddr,
        /// Namespace of the lease by which replicas choose their leader.
        #[arg(long, env = "POD_NAMESPACE", default_value = "default")]
        namespace: String,
        /// Name of this replica in the lease.
        #[arg(long, env = "POD_NAME")]
        identity: String,
    },
}

/// What is logged when nobody says otherwise. The client shows answers that it cannot parse, among which may be a Secret.
const LOGGED: &str = "info,kube=warn,kube_client=error";

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .json()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOGGED)))
        .with_writer(std::io::stderr)
        .init();
    // The whole process uses one provider: two would make clients panic when they look for the default.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another TLS provider is installed already"))?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    match Arguments::parse().command {
        Command::Controller {
            configuration,
            listen,
            namespace,
            identity,
        } => {
            let configuration = Configuration::read(&configuration)?;
            runtime.block_on(controller::start(configuration, listen, &namespace, &identity))
        }
    }
}
