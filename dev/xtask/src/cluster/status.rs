//! `cluster status`.

use std::ffi::OsStr;

use anyhow::{Context, Result};

use super::components::{Components, authority};
use super::instance::Instance;
use super::{command, processes, programs, start, stop};

/// Describes each component, and what the API server says about the node.
pub(super) fn describe(instance: &Instance) -> Result<String> {
    if !stop::anything_left(instance)? {
        return Ok("there is no cluster; `cargo xtask cluster up` starts it".to_owned());
    }
    let mut lines = Vec::new();
    let mut line = |name: &str, state: String| lines.push(format!("{name:<24} {state}"));
    for name in Components::NAMES {
        let state = processes::running(instance, name).map_or_else(
            || format!("not running, see {}", instance.log(name).display()),
            |pid| format!("process {pid}"),
        );
        line(name, state);
    }
    if authority(instance).expires_soon() {
        line("certificates", "missing or about to expire".to_owned());
    }
    line("control group", instance.control_group());
    line(
        "network namespace",
        instance.network_namespace().display().to_string(),
    );
    line("kubeconfig", instance.kubeconfig().display().to_string());
    match start::kubectl(instance, &["get", "node", "--output=wide"]) {
        Ok(nodes) => lines.push(nodes.trim_end().to_owned()),
        Err(error) => line("the API server", format!("does not answer: {error:#}")),
    }
    Ok(lines.join("\n"))
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
