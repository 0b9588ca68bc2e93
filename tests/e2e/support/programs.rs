//! Programs that stories run: kubectl and helm as users do, and the one that asks the kstatus library.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// The root of the checkout.
pub fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a program said.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// The standard output of a program that must succeed.
    pub fn success(self) -> Result<String> {
        ensure!(
            self.code == Some(0),
            "exit code {:?}: {}{}",
            self.code,
            self.stdout,
            self.stderr
        );
        Ok(self.stdout)
    }
}

/// Runs kubectl.
pub fn kubectl(arguments: &[&str]) -> Result<Finished> {
    run("CODEWORKSPACE_KUBECTL", "kubectl", arguments, "")
}

/// Runs helm.
pub fn helm(arguments: &[&str]) -> Result<Finished> {
    run("CODEWORKSPACE_HELM", "helm", arguments, "")
}

/// Asks the real kstatus library about objects, one JSON object a line; gives its verdict on each.
pub fn kstatus(objects: &[String]) -> Result<Vec<String>> {
    let answers = run("CODEWORKSPACE_KSTATUS", "kstatus", &[], &objects.join("\n"))?.success()?;
    Ok(answers.lines().map(str::to_owned).collect())
}

fn run(variable: &str, name: &str, arguments: &[&str], input: &str) -> Result<Finished> {
    let program = std::env::var_os(variable).map_or_else(|| PathBuf::from(name), PathBuf::from);
    let mut child = Command::new(&program)
        .args(arguments)
        .current_dir(checkout())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| {
            format!(
                "cannot start {}: run `cargo xtask test e2e`, or set {variable}",
                program.display()
            )
        })?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    Ok(Finished {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout)?,
        stderr: String::from_utf8(output.stderr)?,
    })
}
