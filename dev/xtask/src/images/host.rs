//! What building images needs of the machine.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::store;

const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A file of the system and the Debian package that brings it.
const REQUIREMENTS: [(&str, &str); 5] = [
    ("/usr/bin/buildah", "buildah"),
    // Newer versions of buildah do not start without it, although builds here use the machine's network.
    ("/usr/lib/podman/netavark", "netavark"),
    ("/usr/bin/mmdebstrap", "mmdebstrap"),
    (
        "/usr/share/keyrings/debian-archive-keyring.gpg",
        "debian-archive-keyring",
    ),
    (AUTHORITIES, "ca-certificates"),
];

/// Refuses machines on which this cannot work, and installs what is missing after saying so.
pub(super) fn prepare() -> Result<()> {
    if !cfg!(target_os = "linux") || fs::metadata("/proc/self")?.uid() != 0 {
        bail!(
            "building without a container engine needs Linux and root: use `docker build` with the Dockerfiles, see docs/images.md"
        );
    }
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("installing Debian packages: {}", missing.join(" "));
    // The lists of a fresh machine are empty, and those of an old one name files that are gone.
    if apt_get(&["install"], &missing).is_err() {
        apt_get(&["update"], &[])?;
        apt_get(&["install"], &missing)?;
    }
    Ok(())
}

fn missing() -> Vec<&'static str> {
    REQUIREMENTS
        .into_iter()
        .filter(|(file, _)| !Path::new(file).exists())
        .map(|(_, package)| package)
        .collect()
}

fn apt_get(action: &[&str], packages: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command
        .args(["--yes", "--quiet", "--no-install-recommends", "--no-remove"])
        .args(action)
        .args(packages);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    store::output(command)
        .map(drop)
        .context("installing Debian packages")
}

/// The certificate authorities that this machine trusts.
pub(super) fn authorities() -> PathBuf {
    std::env::var_os("SSL_CERT_FILE").map_or_else(|| AUTHORITIES.into(), PathBuf::from)
}

/// Held while images are built. Every program that a build starts gets it as its standard input and so holds it
/// too: when this program is killed, the next one waits until what it started has ended.
pub(super) struct Lock(File);

impl Lock {
    pub(super) fn take(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(path)?
            .into_parts()
            .0;
        if file.try_lock().is_err() {
            eprintln!("waiting for another build of images on this machine");
            file.lock()
                .with_context(|| format!("locking {}", path.display()))?;
        }
        Ok(Self(file))
    }

    /// Lets `command` hold the lock for as long as it runs.
    pub(super) fn share(&self, command: &mut Command) -> Result<()> {
        command.stdin(self.0.try_clone()?);
        Ok(())
    }
}
