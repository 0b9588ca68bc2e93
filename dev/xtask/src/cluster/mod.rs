//! The development cluster: one real Kubernetes node for this checkout, inside its own network namespace.
//!
//! If `KUBECONFIG` names another cluster, that one is used instead and left as it was found.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Subcommand;

mod api_server;
mod archive;
mod cache;
mod certificates;
mod command;
mod components;
mod control_groups;
mod hexadecimal;
mod instance;
mod lock;
mod namespaces;
mod network;
mod packages;
mod processes;
mod programs;
mod progress;
mod start;
mod status;
mod stop;
mod template;

pub(crate) use api_server::ApiServer;
pub(crate) use cache::{Kept, Making, hash};
use instance::Instance;

/// The arguments of `cargo xtask cluster`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Use this cluster, and leave it as it is, instead of the checkout's own.
    #[arg(long, env = "KUBECONFIG", global = true, value_name = "FILE")]
    kubeconfig: Option<OsString>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start the cluster, or mend it; a running one is left alone.
    Up,
    /// Remove the cluster and everything that belongs to it.
    Down,
    /// Show what runs.
    Status,
    /// Print the path of the kubeconfig.
    Kubeconfig,
    /// Load an image from an archive in the format of `docker save`.
    LoadImage {
        /// The archive.
        archive: PathBuf,
    },
    /// Run a command with `KUBECONFIG` set to an API server that is started for it, without nodes and without root.
    WithApiServer {
        /// The command and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Print the path of one of the cluster's programs, such as kubectl or helm.
    Program {
        /// The program's name.
        name: String,
    },
    /// Become a component of the cluster.
    #[command(hide = true)]
    Become(processes::BecomeArguments),
}

/// Runs one cluster command.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let cluster = || Cluster::choose(arguments.kubeconfig);
    let answer = match arguments.command {
        Command::Up => format!("export KUBECONFIG={}", cluster()?.ensure_up()?.display()),
        Command::Down => cluster()?.down()?,
        Command::Status => cluster()?.status()?,
        Command::Kubeconfig => cluster()?.kubeconfig_path().display().to_string(),
        Command::LoadImage { archive } => cluster()?.load_image(&archive)?,
        Command::Program { name } => program(&name)?.display().to_string(),
        Command::WithApiServer { command } => {
            let status = api_server::run_with(&command)?;
            return Ok(status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .map_or(ExitCode::FAILURE, ExitCode::from));
        }
        Command::Become(arguments) => {
            return processes::become_component(&Instance::of(crate::checkout()), &arguments);
        }
    };
    writeln!(std::io::stdout(), "{answer}")?;
    Ok(ExitCode::SUCCESS)
}

/// The cluster that development commands work with.
pub(crate) enum Cluster {
    /// The checkout's own.
    Own(OwnCluster),
    /// Someone else's: the value of `KUBECONFIG`.
    Given(OsString),
}

/// The checkout's own cluster, on a machine that can run it.
pub(crate) struct OwnCluster(Instance);

impl Cluster {
    /// The cluster of `kubeconfig` if it is given, else the checkout's own. The kubeconfig of the checkout's own cluster means that one, so
    /// that exporting what `up` printed changes nothing.
    pub(crate) fn choose(kubeconfig: Option<OsString>) -> Result<Self> {
        let own = Instance::of(crate::checkout());
        match kubeconfig {
            Some(path) if !path.is_empty() && Path::new(&path) != own.kubeconfig() => Ok(Self::Given(path)),
            _ if cfg!(not(target_os = "linux")) || !rustix::process::geteuid().is_root() => bail!(
                "the development cluster needs Linux and root, as it consists of namespaces and control groups: use sudo, or set KUBECONFIG to a cluster of yours"
            ),
            _ => Ok(Self::Own(OwnCluster(own))),
        }
    }

    /// The value for `KUBECONFIG`.
    pub(crate) fn kubeconfig_path(&self) -> PathBuf {
        match self {
            Self::Own(OwnCluster(instance)) => instance.kubeconfig(),
            Self::Given(path) => PathBuf::from(path),
        }
    }

    /// Starts the checkout's own cluster, or checks that the given one answers. Gives the value for `KUBECONFIG`.
    pub(crate) fn ensure_up(&self) -> Result<PathBuf> {
        match self {
            Self::Own(OwnCluster(instance)) => start::up(instance)?,
            Self::Given(path) => status::check_given(path)?,
        }
        Ok(self.kubeconfig_path())
    }

    /// Removes the checkout's own cluster. Gives a sentence about it.
    pub(crate) fn down(&self) -> Result<String> {
        match self {
            Self::Own(OwnCluster(instance)) => {
                let sentence = if stop::down(instance)? {
                    "the cluster is gone"
                } else {
                    "there is no cluster"
                };
                Ok(sentence.to_owned())
            }
            Self::Given(path) => Ok(format!(
                "{} is not this checkout's own cluster and stays as it is",
                path.display()
            )),
        }
    }

    /// Loads an image from an archive in the format of `docker save`. Gives what containerd says about it.
    pub(crate) fn load_image(&self, archive: &Path) -> Result<String> {
        match self {
            Self::Own(OwnCluster(instance)) => {
                anyhow::ensure!(
                    start::api_answers(instance),
                    "there is no cluster to load into: `cargo xtask cluster up` starts it"
                );
                Ok(start::import(instance, archive)?.trim_end().to_owned())
            }
            Self::Given(path) => bail!(
                "images cannot be loaded into {}, which is not this checkout's own cluster: load {} by that cluster's own means (for instance `kind load image-archive`), or push it to its registry",
                path.display(),
                archive.display()
            ),
        }
    }

    fn status(&self) -> Result<String> {
        match self {
            Self::Own(OwnCluster(instance)) => status::describe(instance),
            Self::Given(path) => {
                status::check_given(path)?;
                Ok(format!(
                    "{} answers; it is not this checkout's own cluster",
                    path.display()
                ))
            }
        }
    }
}

/// The path of a program of the cluster (`kubectl`, `helm`, …), which is built first if need be.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    programs::program(name)
}
