//! The images that our Dockerfiles start from, made on this machine: no image registry is needed. Each is named by
//! the hash of what it is made of.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::host;
use super::inputs::Inputs;
use super::store;
use super::workshop::{Build, Workshop};

const DEBIAN: &str = "debian:trixie-slim";

/// The official slim image leaves out the same documentation, and does not wait for the disk either.
const MMDEBSTRAP: [&str; 10] = [
    "--mode=root",
    "--variant=minbase",
    "--format=tar",
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
    // Both are copied from this machine otherwise.
    "--customize-hook=: > \"$1/etc/resolv.conf\"; echo localhost > \"$1/etc/hostname\"",
];

/// The base images as this machine would make them.
#[derive(Debug)]
pub(super) struct Bases {
    debian_hash: String,
    trusting_hash: String,
    rust_hash: String,
    /// What Dockerfiles call the image with this machine's toolchain.
    rust: String,
}

impl Bases {
    /// Computes the names. Makes nothing.
    pub(super) fn of_this_machine() -> Result<Self> {
        let version = rustc(&["-vV"])?;
        let recipe = |name| fs::read(dockerfile(name));
        let debian = MMDEBSTRAP.iter().fold(Inputs::default(), Inputs::add);
        let debian = debian.add(recipe("debian")?).add(std::env::consts::ARCH);
        // A machine without authorities gets them, and with them its final hash, when its packages are installed.
        let authorities = fs::read(host::authorities()).unwrap_or_default();
        let trusting = debian.clone().add(recipe("trusting")?).add(authorities);
        let rust = trusting.clone().add(recipe("rust")?).add(&version);
        Ok(Self {
            debian_hash: debian.hash(),
            trusting_hash: trusting.hash(),
            rust_hash: rust.hash(),
            rust: official_name(&version)?,
        })
    }

    /// The local image that takes the place of `base`, as a Dockerfile names it.
    pub(super) fn reference(&self, base: &str) -> Result<String> {
        if base == DEBIAN {
            return Ok(reference("debian", &self.debian_hash));
        }
        if base == self.rust {
            return Ok(reference("rust", &self.rust_hash));
        }
        bail!(
            "there is no local stand-in for `{base}`: without a registry there are only `{DEBIAN}` and `{}`",
            self.rust
        );
    }

    /// The base for build stages that download over TLS.
    pub(super) fn trusting_reference(&self) -> String {
        reference("trusting", &self.trusting_hash)
    }

    /// Makes what is needed for `base` and is not there yet.
    pub(super) fn make(&self, base: &str, workshop: &Workshop) -> Result<()> {
        if base == DEBIAN {
            self.make_debian(workshop)
        } else {
            self.make_rust(workshop)
        }
    }

    fn make_debian(&self, workshop: &Workshop) -> Result<()> {
        let tag = self.reference(DEBIAN)?;
        if workshop.store.has_image(&tag) {
            return Ok(());
        }
        let context = workshop
            .store
            .path(format!("contexts/debian-{}", self.debian_hash));
        let root = context.join("rootfs.tar");
        if !root.exists() {
            fs::create_dir_all(&context)?;
            let partial = workshop.store.path("tmp/rootfs.tar");
            // With mounts of its own: none outlives an interruption, to be followed when its folder is deleted.
            let mut command = Command::new("unshare");
            command
                .args(["--mount", "--propagation", "private", "mmdebstrap"])
                .args(MMDEBSTRAP);
            command.arg("trixie").arg(&partial);
            workshop.run("base debian", command)?;
            fs::rename(&partial, &root)?;
        }
        workshop.build(&Build {
            name: "base debian",
            dockerfile: &dockerfile("debian"),
            context: &context,
            tag: &tag,
            contexts: Vec::new(),
            arguments: Vec::new(),
        })?;
        Ok(())
    }

    /// Makes the base for build stages that download over TLS.
    pub(super) fn make_trusting(&self, workshop: &Workshop) -> Result<()> {
        self.make_debian(workshop)?;
        let tag = self.trusting_reference();
        if workshop.store.has_image(&tag) {
            return Ok(());
        }
        let context = workshop.store.path("contexts/trusting");
        fs::create_dir_all(&context)?;
        fs::copy(host::authorities(), context.join("authorities.crt"))?;
        workshop.build(&Build {
            name: "base trusting",
            dockerfile: &dockerfile("trusting"),
            context: &context,
            tag: &tag,
            contexts: vec![(DEBIAN.to_owned(), image(&self.reference(DEBIAN)?))],
            arguments: Vec::new(),
        })?;
        Ok(())
    }

    fn make_rust(&self, workshop: &Workshop) -> Result<()> {
        self.make_trusting(workshop)?;
        let tag = self.reference(&self.rust)?;
        if workshop.store.has_image(&tag) {
            return Ok(());
        }
        workshop.build(&Build {
            name: "base rust",
            dockerfile: &dockerfile("rust"),
            context: &workshop.store.path("contexts/empty"),
            tag: &tag,
            contexts: vec![
                ("trusting".to_owned(), image(&self.trusting_reference())),
                (
                    "toolchain".to_owned(),
                    rustc(&["--print", "sysroot"])?.trim().to_owned(),
                ),
            ],
            arguments: Vec::new(),
        })?;
        Ok(())
    }
}

/// A local image in the form in which buildah takes it as the stand-in for another.
pub(super) fn image(reference: &str) -> String {
    format!("container-image://{reference}")
}

fn reference(name: &str, hash: &str) -> String {
    format!("localhost/codeworkspace-base/{name}:{hash}")
}

fn dockerfile(name: &str) -> PathBuf {
    crate::checkout().join(format!("dev/images/{name}.Dockerfile"))
}

fn rustc(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("rustc");
    command.args(arguments).current_dir(crate::checkout());
    store::output(command)
}

/// The tag of the official image that has the toolchain which says this of itself with `rustc -vV`.
fn official_name(version: &str) -> Result<String> {
    let release = version.lines().find_map(|line| line.strip_prefix("release: "));
    let release = release.context("`rustc -vV` names no release")?;
    let (minor, _) = release
        .rsplit_once('.')
        .with_context(|| format!("rustc has the odd release `{release}`"))?;
    Ok(format!("rust:{minor}-trixie"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bases() -> Bases {
        Bases {
            debian_hash: "0d0d".into(),
            trusting_hash: "0c0c".into(),
            rust_hash: "0b0b".into(),
            rust: "rust:1.95-trixie".into(),
        }
    }

    #[test]
    fn stand_ins_are_named_by_what_they_are_made_of() {
        assert_eq!(
            bases().reference("debian:trixie-slim").unwrap(),
            "localhost/codeworkspace-base/debian:0d0d"
        );
        assert_eq!(
            bases().reference("rust:1.95-trixie").unwrap(),
            "localhost/codeworkspace-base/rust:0b0b"
        );
        assert_eq!(
            bases().trusting_reference(),
            "localhost/codeworkspace-base/trusting:0c0c"
        );
    }

    #[test]
    fn a_base_without_stand_in_is_refused_with_what_there_is() {
        let error = bases().reference("rust:1.96-trixie").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no local stand-in for `rust:1.96-trixie`: without a registry there are only \
             `debian:trixie-slim` and `rust:1.95-trixie`"
        );
    }

    #[test]
    fn the_toolchain_tells_which_official_image_it_stands_in_for() {
        let version =
            "rustc 1.95.0 (59807616e 2026-04-14)\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\n";
        assert_eq!(official_name(version).unwrap(), "rust:1.95-trixie");
        assert!(official_name("rustc").is_err());
    }
}
