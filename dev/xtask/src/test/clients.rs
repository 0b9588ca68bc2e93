//! The clients of others with which tests call the gateway: AWS's SDKs, as their users install them, at the versions that
//! `tests/clients` pins.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use crate::cluster::{self, Kept, Making};

/// Folder of the pins, and of the programs that use the clients.
const FOLDER: &str = "tests/clients";
const REQUIREMENTS: &str = "requirements.txt";
const PACKAGES: [&str; 2] = ["package.json", "package-lock.json"];

/// The installed clients.
pub(super) struct Clients {
    /// A Python that has boto3 and its like.
    pub(super) python: PathBuf,
    /// The folder `node_modules` with the SDK for JavaScript.
    pub(super) node_modules: PathBuf,
}

impl Clients {
    /// Installs them if no checkout of this machine has done so. pip and npm take them from wherever this machine's user has them look.
    pub(super) fn prepare() -> Result<Self> {
        Ok(Self {
            python: python()?.join("bin/python"),
            node_modules: javascript()?.join("node_modules"),
        })
    }
}

fn pins(file: &str) -> PathBuf {
    crate::checkout().join(FOLDER).join(file)
}

/// An environment of its own: a virtual environment's Python finds its packages beside itself, so that it may be moved.
fn python() -> Result<PathBuf> {
    let version = version_of("python3", "Python 3.11 or newer")?;
    let kept = Kept {
        shelf: "clients",
        name: "python",
        hash: cluster::hash(&[version.as_bytes(), &fs::read(pins(REQUIREMENTS))?]),
    };
    kept.provide(|making| {
        eprintln!("installing boto3 and other clients (about 1 minute)");
        making.run(
            Command::new("python3").args(["-m", "venv"]).arg(making.folder),
            "making a virtual environment (on Debian it needs the package python3-venv)",
        )?;
        making.run(
            Command::new(making.folder.join("bin/python"))
                .args(["-m", "pip", "install", "--require-hashes", "--only-binary=:all:"])
                .args(["--no-input", "--requirement"])
                .arg(pins(REQUIREMENTS)),
            "installing Python packages",
        )
    })
}

fn javascript() -> Result<PathBuf> {
    let version = version_of("node", "Node.js 20 or newer")?;
    let [package, lock] = PACKAGES.map(pins);
    let kept = Kept {
        shelf: "clients",
        name: "javascript",
        hash: cluster::hash(&[version.as_bytes(), &fs::read(&package)?, &fs::read(&lock)?]),
    };
    let copy = |making: &Making<'_>| {
        for file in PACKAGES {
            fs::copy(pins(file), making.folder.join(file))?;
        }
        anyhow::Ok(())
    };
    kept.provide(|making| {
        eprintln!("installing the AWS SDK for JavaScript");
        copy(making)?;
        // Install scripts stay off: no package here needs one.
        making.run(
            Command::new("npm")
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
                .current_dir(making.folder),
            "installing JavaScript packages",
        )
    })
}

/// What a program says of its version; what is built for one version need not run with another.
fn version_of(program: &str, what: &str) -> Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .with_context(|| format!("tests run clients with {what}: there is no `{program}` on the PATH"))?;
    ensure!(
        output.status.success(),
        "`{program} --version` failed ({})",
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_pinned_with_its_hash() {
        let text = fs::read_to_string(pins(REQUIREMENTS)).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let packages: Vec<_> = lines.iter().filter(|line| !line.starts_with(' ')).collect();
        assert!(packages.len() > 4);
        assert!(packages.iter().all(|line| line.contains("==")), "{packages:?}");
        assert!(packages.iter().all(|line| line.ends_with('\\')), "{packages:?}");
    }
}
