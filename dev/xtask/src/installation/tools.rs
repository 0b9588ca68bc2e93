//! kubectl and helm, the programs that its users install the product with, pointed at one cluster.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cluster;

/// Both programs and the cluster that they talk to.
#[derive(Debug)]
pub(crate) struct Tools {
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    helm: PathBuf,
}

impl Tools {
    /// Builds the programs if no checkout on this machine built them before.
    pub(crate) fn new(kubeconfig: PathBuf) -> Result<Self> {
        Ok(Self {
            kubeconfig,
            kubectl: cluster::program("kubectl")?,
            helm: cluster::program("helm")?,
        })
    }

    /// The value for `KUBECONFIG`.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// kubectl as a file.
    pub(crate) fn kubectl_path(&self) -> &Path {
        &self.kubectl
    }

    /// helm as a file.
    pub(crate) fn helm_path(&self) -> &Path {
        &self.helm
    }

    /// Runs kubectl to its end and gives its standard output.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        output(self.command(&self.kubectl, arguments), None)
    }

    /// Runs helm to its end and gives its standard output.
    pub(crate) fn helm(&self, arguments: &[&str]) -> Result<String> {
        output(self.command(&self.helm, arguments), None)
    }

    /// Applies objects, server-side: last-applied annotations would double the size of each.
    pub(crate) fn apply(&self, objects: &[Value]) -> Result<()> {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let arguments = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=xtask",
            "--filename=-",
        ];
        output(self.command(&self.kubectl, &arguments), Some(&list.to_string()))?;
        Ok(())
    }

    /// Reads objects as kubectl prints them in JSON.
    pub(crate) fn get(&self, arguments: &[&str]) -> Result<Value> {
        let arguments: Vec<_> = ["get", "--output=json"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        serde_json::from_str(&self.kubectl(&arguments)?).context("kubectl did not print JSON")
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        command
    }
}

/// Runs a command to its end and gives its standard output. A failure carries its error output.
fn output(mut command: Command, input: Option<&str>) -> Result<String> {
    command
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let name = shown(&command);
    let mut child = command
        .spawn()
        .with_context(|| format!("{name} could not be started"))?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A program that ends early closes the pipe; its own words then say why.
        stdin.write_all(input.as_bytes()).ok();
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!(
            "{name} failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one line for messages, without the long path of its program.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_quoted_with_its_own_words() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such release >&2; exit 3"]);
        let error = output(command, None).unwrap_err().to_string();
        assert_eq!(
            error,
            "sh -c echo no such release >&2; exit 3 failed (exit status: 3): no such release"
        );
    }

    #[test]
    fn input_reaches_the_program() {
        assert_eq!(output(Command::new("cat"), Some("objects")).unwrap(), "objects");
    }
}
