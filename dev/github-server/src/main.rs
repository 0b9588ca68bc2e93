//! Runs the server until it is told to stop.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use github_server::{GithubServer, ServerOptions};
use tokio::signal::unix::{SignalKind, signal};

/// Plays GitHub's REST API over real git repositories, for development and tests.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Address of the API and of the control endpoints.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Address of the download host.
    #[arg(long, default_value = "127.0.0.1:8081")]
    download_listen: SocketAddr,
    /// Base URL of the download host as callers reach it, for example `http://github-server:8081`.
    #[arg(long)]
    advertise_download: Option<String>,
    /// Folder of fixtures: `owner/name/` is the tree of one commit, `owner/name.json` may add branches and tags.
    #[arg(long)]
    fixtures: Option<PathBuf>,
    /// Directory of the repositories; a temporary one by default.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Requests that the API allows an hour.
    #[arg(long, default_value_t = ServerOptions::default().rate_limit)]
    rate_limit: u32,
    /// Path before all paths of the API; GitHub Enterprise Server has `/api/v3`.
    #[arg(long, default_value = "")]
    api_path: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let arguments = Arguments::parse();
    // Before the listeners, so that an early signal is not lost.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let server = GithubServer::start_with(ServerOptions {
        listen: arguments.listen,
        download_listen: arguments.download_listen,
        advertise_download: arguments.advertise_download,
        data: arguments.data,
        fixtures: arguments.fixtures,
        rate_limit: arguments.rate_limit,
        api_path: arguments.api_path,
    })
    .await
    .context("the server does not start")?;
    tracing::info!(
        api = server.api_host(),
        download = server.download_host(),
        "listening"
    );
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    server.shutdown().await.context("the server does not stop")
}
