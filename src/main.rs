//! The operator binary. One process for each subcommand.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use codeworkspace_operator::configuration::Configuration;
use codeworkspace_operator::controller;
use codeworkspace_operator::gateway::{self, GatewayConfiguration, Listen};
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
        /// Address at which pods of sessions register.
        #[arg(long, default_value = "0.0.0.0:8443")]
        register: SocketAddr,
        /// Namespace of the lease by which replicas choose their leader.
        #[arg(long, env = "POD_NAMESPACE", default_value = "default")]
        namespace: String,
        /// Name of this replica in the lease.
        #[arg(long, env = "POD_NAME")]
        identity: String,
    },
    /// Serve sessions to agents: in the protocol of AWS Bedrock AgentCore, over an API of our own, and over MCP.
    Gateway {
        /// File that the chart writes.
        #[arg(long, env = "CODEWORKSPACE_CONFIGURATION")]
        configuration: PathBuf,
        /// Address of `/healthz`, `/readyz` and `/metrics`.
        #[arg(long, default_value = "0.0.0.0:8080")]
        listen: SocketAddr,
        /// Address of the AgentCore API.
        #[arg(long, default_value = "0.0.0.0:8088")]
        agentcore_listen: SocketAddr,
        /// Address of the native API and of the MCP server.
        #[arg(long, default_value = "0.0.0.0:8089")]
        native_listen: SocketAddr,
        /// The gateway's namespace, in which its access keys are.
        #[arg(long, env = "POD_NAMESPACE", default_value = "default")]
        namespace: String,
    },
    /// Make an access key for the AgentCore API, and print it as lines for a shell.
    CreateAccessKey {
        /// The namespace whose interpreters and sessions the key opens.
        #[arg(long)]
        tenant: String,
        /// The gateway's namespace, in which access keys are.
        #[arg(long, env = "POD_NAMESPACE")]
        namespace: String,
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
            register,
            namespace,
            identity,
        } => {
            let configuration = Configuration::read(&configuration)?;
            runtime.block_on(controller::start(
                configuration,
                listen,
                register,
                &namespace,
                &identity,
            ))
        }
        Command::Gateway {
            configuration,
            listen,
            agentcore_listen,
            native_listen,
            namespace,
        } => {
            let configuration = GatewayConfiguration::read(&configuration)?;
            let listen = Listen {
                health: listen,
                agentcore: agentcore_listen,
                native: native_listen,
            };
            runtime.block_on(gateway::start(configuration, listen, &namespace))
        }
        Command::CreateAccessKey { tenant, namespace } => {
            let key = runtime.block_on(async {
                let client = kube::Client::try_default()
                    .await
                    .context("cannot find the API server")?;
                gateway::mint(client, &namespace, &tenant).await
            })?;
            print!("{key}");
            Ok(())
        }
    }
}
