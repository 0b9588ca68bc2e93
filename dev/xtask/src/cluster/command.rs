//! Running other programs, with errors that carry what they said.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use fs_err as fs;

/// A command that finds the system's programs also where a user's `PATH` lacks the `sbin` folders.
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", search_path()).stdin(Stdio::null());
    command
}

/// `PATH` and the `sbin` folders.
pub(super) fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
}

/// Runs `program` with `arguments` to its end and gives its standard output.
pub(super) fn run<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) -> Result<String> {
    output(command(program).args(arguments))
}

/// Runs a command to its end and gives its standard output. A failure carries its error output.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("{} could not be started", shown(command)))?;
    finish(command, &output)
}

fn finish(command: &Command, output: &std::process::Output) -> Result<String> {
    if !output.status.success() {
        bail!(
            "{} failed ({}): {}",
            shown(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one line for messages.
fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The last lines of a log.
pub(super) fn tail(log: &Path) -> String {
    let text = fs::read(log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}
