//! `cargo xtask demo`: from a checkout to workspaces that ran on a cluster.

mod report;
mod state;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::installation::{self, Installation, Purpose, Tools};
use state::Workspaces;

/// Namespace of the examples.
const NAMESPACE: &str = "demo";
/// How long the examples may take in all.
const DEADLINE: Duration = Duration::from_mins(5);
/// How often the API server is asked.
const POLL: Duration = Duration::from_millis(500);

/// The arguments of `cargo xtask demo`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: installation::Options,
    /// Remove what an earlier demo left on the cluster, every workspace included.
    #[arg(long)]
    remove: bool,
}

/// Installs the product, applies the examples, waits for them and shows what became of each.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.remove {
        let installation = Installation::find(&arguments.options)?;
        installation
            .tools()
            .kubectl(&["delete", "namespace", NAMESPACE, "--ignore-not-found"])?;
        installation.remove()?;
        println!("the demo, the operator and the definitions are removed");
        return Ok(());
    }
    let installation = Installation::install(&arguments.options, Purpose::Demo)?;
    let tools = installation.tools();
    apply(tools)?;
    let outcome = wait(tools);
    print!("{}", report::report(&read(tools)?));
    println!("\nNext:\n");
    println!("  export KUBECONFIG={}", tools.kubeconfig().display());
    println!("  kubectl get codeworkspaces,coderuns --namespace {NAMESPACE}");
    println!("  kubectl describe codeworkspace broken-sources --namespace {NAMESPACE}");
    println!("  kubectl edit codeworkspace hello-python --namespace {NAMESPACE}    # a change is a new run");
    println!(
        "  cargo xtask {}",
        if installation.is_on_own_cluster() {
            "cluster down"
        } else {
            "demo --remove"
        }
    );
    outcome
}

fn apply(tools: &Tools) -> Result<()> {
    tools.apply(&[installation::namespace(NAMESPACE)])?;
    // Runs made by hand cannot be changed, and a demo is there to see them run.
    tools.kubectl(&[
        "delete",
        "coderuns",
        "--namespace",
        NAMESPACE,
        "--selector=!app.kubernetes.io/managed-by",
    ])?;
    let examples = installation::in_checkout("examples")?;
    let applied = tools.kubectl(&["apply", "--namespace", NAMESPACE, "--filename", &examples])?;
    eprint!("{applied}");
    Ok(())
}

/// Waits until nothing moves any more, and says when something did.
fn wait(tools: &Tools) -> Result<()> {
    let started = Instant::now();
    let mut told = String::new();
    loop {
        let workspaces = read(tools)?;
        let waiting: Vec<_> = workspaces.waiting().collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let now = format!("waiting for {}", waiting.join(", "));
        if now != told {
            eprintln!("[{:>4} s] {now}", started.elapsed().as_secs());
            told = now;
        }
        if started.elapsed() > DEADLINE {
            bail!("after {} s still {told}", DEADLINE.as_secs());
        }
        std::thread::sleep(POLL);
    }
}

fn read(tools: &Tools) -> Result<Workspaces> {
    let list = tools.get(&["codeworkspaces,coderuns", "--namespace", NAMESPACE])?;
    Workspaces::from_list(list).context("the API server's list of workspaces and runs")
}
