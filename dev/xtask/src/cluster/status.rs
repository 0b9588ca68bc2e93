//! `cluster status`.

use std::ffi::OsStr;

use anyhow::{Context, Result};

use super::components::{Components, authority};
use super::instance::Instance;
use super::{command, processes, programs, start, stop};

/// Prints each component and what the API server says about the node.
pub(super) fn show(instance: &Instance) -> Result<()> {
    if !stop::anything_left(instance)? {
        println!("there is no cluster; `cargo xtask cluster up` starts it");
        return Ok(());
    }
    for name in Components::NAMES {
        match processes::running(instance, name) {
            Some(pid) => println!("{name:<24} process {pid}"),
            None => println!("{name:<24} not running, see {}", instance.log(name).display()),
        }
    }
    if authority(instance).expires_soon() {
        println!(
            "{:<24} within a day of their end: `cargo xtask cluster up` makes a new cluster",
            "certificates"
        );
    }
    println!("{:<24} {}", "control group", instance.control_group());
    println!("{:<24} {}", "network namespace", instance.network_namespace());
    println!("{:<24} {}", "kubeconfig", instance.kubeconfig().display());
    match start::kubectl(instance, &["get", "node", "--output=wide"]) {
        Ok(nodes) => print!("{nodes}"),
        Err(error) => println!("{:<24} does not answer: {error:#}", "the API server"),
    }
    Ok(())
}

/// Fails if the cluster of someone else's kubeconfig does not answer.
pub(super) fn check_given(kubeconfig: &OsStr) -> Result<()> {
    command::output(
        command::command(programs::program("kubectl")?)
            .env("KUBECONFIG", kubeconfig)
            .args(["get", "--raw", "/readyz", "--request-timeout=10s"]),
    )
    .map(drop)
    .with_context(|| {
        format!(
            "the cluster of KUBECONFIG={} does not answer",
            kubeconfig.display()
        )
    })
}
