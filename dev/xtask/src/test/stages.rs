//! What each stage runs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use super::Arguments;
use super::clients::Clients;
use crate::cluster::{self, ApiServer};
use crate::images;
use crate::installation::{Installation, Purpose};

/// Tests on the cluster mostly wait for pods, so more of them run at once than there are processors.
const E2E_THREADS: &str = "--test-threads=8";
/// Tests too slow for each push live in modules of this name.
const LONG: &str = "long::";

/// The format of all code.
pub(super) fn format(_: &Arguments) -> Result<()> {
    cargo(&["fmt", "--all", "--check"], &[])
}

/// The lints of all code.
pub(super) fn lint(_: &Arguments) -> Result<()> {
    cargo(
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    )
}

/// Every test that needs nothing but this machine.
pub(super) fn unit(arguments: &Arguments) -> Result<()> {
    let test = |options: &[&str], of_runner: &[&str]| {
        let mut words = vec!["test", "--no-fail-fast"];
        words.extend(options);
        // A sign for each of the many tests; of those that fail, everything.
        words.extend(["--", "--quiet"]);
        words.extend(of_runner);
        words.extend(arguments.runner.iter().map(String::as_str));
        cargo(&words, &[])
    };
    test(&["--workspace"], &[])?;
    if arguments.long {
        // The tests of the other tiers are ignored here too, and are in files of their own.
        test(
            &["--workspace", "--exclude=codeworkspace-operator"],
            &["--ignored", LONG],
        )?;
        test(
            &["--package=codeworkspace-operator", "--lib"],
            &["--ignored", LONG],
        )?;
    }
    Ok(())
}

/// The kernels of sessions, inside the image that was built from this checkout.
pub(super) fn kernels(arguments: &Arguments) -> Result<()> {
    let built = images::build(&["interpreter"], images::Options::default())?;
    let image = built.first().context("nothing was built")?;
    let script = crate::checkout().join("images/interpreter/tests/in-image");
    let status = Command::new(&script)
        .arg(&image.archive)
        .args(&arguments.runner)
        .status()
        .with_context(|| script.display().to_string())?;
    ensure!(status.success(), "{} failed: {status}", script.display());
    Ok(())
}

/// Tests against etcd and an API server that are started for them.
pub(super) fn api(arguments: &Arguments) -> Result<()> {
    let server = ApiServer::start()?;
    let environment = [
        ("KUBECONFIG", server.kubeconfig()),
        ("CODEWORKSPACE_HELM", cluster::program("helm")?),
        ("CODEWORKSPACE_KUBECTL", cluster::program("kubectl")?),
    ];
    cargo(&ignored("api", arguments, &[]), &environment)
}

/// Tests on the cluster, against the operator that the charts installed.
pub(super) fn e2e(arguments: &Arguments) -> Result<()> {
    let installation = Installation::install(&arguments.installation, Purpose::Test)?;
    let tools = installation.tools();
    remove_namespaces_of_earlier_tests(&installation)?;
    let diagnostics = crate::checkout().join("target/e2e");
    if diagnostics.exists() {
        fs::remove_dir_all(&diagnostics)?;
    }
    let clients = Clients::prepare()?;
    let environment = [
        ("KUBECONFIG", tools.kubeconfig().to_owned()),
        ("CODEWORKSPACE_CLIENT_PYTHON", clients.python),
        ("CODEWORKSPACE_CLIENT_NODE_MODULES", clients.node_modules),
        ("CODEWORKSPACE_HELM", tools.helm_path().to_owned()),
        ("CODEWORKSPACE_KUBECTL", tools.kubectl_path().to_owned()),
        ("CODEWORKSPACE_KSTATUS", kstatus()?),
        ("CODEWORKSPACE_DIAGNOSTICS", diagnostics),
    ];
    let outcome = cargo(&ignored("e2e", arguments, &[E2E_THREADS]), &environment);
    let left = installation.leave();
    outcome.and(left)
}

/// The arguments of cargo that run the tests of one file that are left out otherwise.
fn ignored<'a>(file: &'a str, arguments: &'a Arguments, of_runner: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["test", "--test", file, "--", "--ignored"];
    words.extend(of_runner);
    if !arguments.long {
        words.extend(["--skip", LONG]);
    }
    words.extend(arguments.runner.iter().map(String::as_str));
    words
}

/// Tests leave their namespaces behind when they fail, for people to look at.
fn remove_namespaces_of_earlier_tests(installation: &Installation) -> Result<()> {
    let selector = "--selector=codeworkspace.dev/e2e";
    installation
        .tools()
        .kubectl(&["delete", "namespaces", selector])
        .map(drop)
}

/// Builds the program that asks the real kstatus library.
fn kstatus() -> Result<PathBuf> {
    let program = crate::checkout().join("target/kstatus");
    let status = Command::new("go")
        .args(["build", "-mod=readonly", "-buildvcs=false", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(crate::checkout().join("tests/kstatus"))
        .env("CGO_ENABLED", "0")
        .status()
        .context("`go` builds tests/kstatus and is not to be found: install it from https://go.dev/dl")?;
    ensure!(status.success(), "building tests/kstatus failed ({status})");
    Ok(program)
}

/// Runs cargo in the checkout. Its output is the tests' own and goes where ours goes.
fn cargo(arguments: &[&str], environment: &[(&str, PathBuf)]) -> Result<()> {
    println!("cargo {}", arguments.join(" "));
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let status = Command::new(program)
        .args(arguments)
        .current_dir(crate::checkout())
        .env_remove("KUBECONFIG")
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .status()
        .context("cargo could not be started")?;
    ensure!(status.success(), "cargo {} ({status})", arguments.join(" "));
    Ok(())
}
