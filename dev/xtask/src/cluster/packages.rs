//! What the cluster takes from Debian.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::{cache, command, progress};

/// A program of the system and the Debian package that brings it. Programs are looked for instead of packages: a machine may have
/// containerd from elsewhere, and Debian's package would then be in its way.
const REQUIREMENTS: [(&str, &str); 10] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("ipset", "ipset"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
    ("mount", "mount"),
    ("openssl", "openssl"),
];

/// Where Debian, and where everyone else, puts the network plugins.
const NETWORK_PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// Installs what is missing, after saying so.
pub(super) fn install_missing() -> Result<()> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if find("apt-get").is_none() {
        bail!(
            "the cluster needs the programs of these Debian packages, and there is no apt-get to install them: {list}"
        );
    }
    eprintln!("installing Debian packages: {list}");
    // A machine that was set up long ago knows only versions that the mirror no longer has; a bare one knows none.
    if apt_get(&install_arguments(&missing)).is_err() {
        apt_get(&["update"])?;
        apt_get(&install_arguments(&missing))?;
    }
    let still_missing = self::missing();
    anyhow::ensure!(
        still_missing.is_empty(),
        "after their installation these are still missing: {}",
        still_missing.join(" ")
    );
    Ok(())
}

fn missing() -> Vec<&'static str> {
    let mut missing: Vec<_> = REQUIREMENTS
        .into_iter()
        .filter(|(program, _)| find(program).is_none())
        .map(|(_, package)| package)
        .collect();
    if network_plugins().is_err() {
        missing.push("containernetworking-plugins");
    }
    if static_busybox().is_err() {
        missing.push("busybox-static");
    }
    missing.dedup();
    missing
}

/// Removing packages is nothing that a development command may do to a machine.
fn install_arguments<'a>(packages: &[&'a str]) -> Vec<&'a str> {
    ["install", "--yes", "--no-install-recommends", "--no-remove"]
        .into_iter()
        .chain(packages.iter().copied())
        .collect()
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let log = cache::folder()?.join("apt-get.log");
    let mut command = command::command("apt-get");
    progress::run(
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"),
        "running apt-get",
        &log,
    )
}

/// The folder of the network plugins.
pub(super) fn network_plugins() -> Result<&'static str> {
    NETWORK_PLUGINS
        .into_iter()
        .find(|folder| {
            ["bridge", "host-local", "portmap", "loopback"]
                .iter()
                .all(|name| Path::new(folder).join(name).exists())
        })
        .context("the network plugins are not installed")
}

/// A busybox that needs no libraries, so that an image can consist of it alone.
pub(super) fn static_busybox() -> Result<PathBuf> {
    let path = find("busybox").context("busybox is not installed")?;
    anyhow::ensure!(
        !names_an_interpreter(&fs::read(&path)?),
        "{} is not statically linked",
        path.display()
    );
    Ok(path)
}

/// Whether a 64-bit little-endian ELF file has a program header of type `PT_INTERP`, which is what makes it dynamically linked.
fn names_an_interpreter(elf: &[u8]) -> bool {
    const INTERPRETER: u32 = 3;
    let number = |offset: usize, length: usize| -> usize {
        let bytes = elf.get(offset..offset + length).unwrap_or_default();
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| (sum << 8) | usize::from(*byte))
    };
    let (table, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    (0..count).any(|index| number(table.saturating_add(index * size), 4) == INTERPRETER as usize)
}

fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&command::search_path())
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header that is followed by program headers of these types.
    fn elf(types: &[u8]) -> Vec<u8> {
        let mut file = vec![0_u8; 0x40];
        file[0x20] = 0x40;
        file[0x36] = 56;
        file[0x38] = u8::try_from(types.len()).unwrap();
        for kind in types {
            let mut header = [0_u8; 56];
            header[0] = *kind;
            file.extend(header);
        }
        file
    }

    #[test]
    fn a_program_that_names_an_interpreter_is_not_static() {
        assert!(!names_an_interpreter(&elf(&[1, 1, 4])));
        assert!(names_an_interpreter(&elf(&[6, 3, 1])));
        assert!(!names_an_interpreter(b"#!/bin/sh"));
    }

    #[test]
    fn no_package_is_ever_removed() {
        assert!(install_arguments(&["runc"]).contains(&"--no-remove"));
    }
}
