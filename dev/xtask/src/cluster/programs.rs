//! The programs that the cluster consists of, built from Go modules: there is neither a registry nor a download site that every machine
//! reaches, but a Go module proxy is part of every Go installation.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;
use sha2::{Digest, Sha256};

use super::cache::{Kept, Making};
use super::command;
use super::hexadecimal::hexadecimal;

/// A Go module of `dev/cluster/programs` and the program that it builds.
struct Module {
    /// The folder of its `go.mod`.
    folder: &'static str,
    /// What to build: the module itself, or the program that it requires as a tool.
    package: &'static str,
    /// The name of the built file.
    binary: &'static str,
    /// Names under which the file does different things.
    links: &'static [&'static str],
    /// How long a build takes with an empty Go cache, on two cores.
    minutes: &'static str,
}

const KUBERNETES: Module = Module {
    folder: "kubernetes",
    package: ".",
    binary: "kube",
    links: &[
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubelet",
        "kube-proxy",
        "kubectl",
    ],
    minutes: "7 minutes",
};
const ETCD: Module = Module {
    folder: "etcd",
    package: "go.etcd.io/etcd/server/v3",
    binary: "etcd",
    links: &[],
    minutes: "1 minute",
};
const COREDNS: Module = Module {
    folder: "coredns",
    package: ".",
    binary: "coredns",
    links: &[],
    minutes: "1 minute",
};
const KUBE_ROUTER: Module = Module {
    folder: "kube-router",
    package: "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
    binary: "kube-router",
    links: &[],
    minutes: "2 minutes",
};
const HELM: Module = Module {
    folder: "helm",
    package: "helm.sh/helm/v3/cmd/helm",
    binary: "helm",
    links: &[],
    minutes: "3 minutes",
};

const MODULES: [&Module; 5] = [&KUBERNETES, &ETCD, &COREDNS, &KUBE_ROUTER, &HELM];

/// The path of a program, which is built if no checkout on this machine built it before.
pub(super) fn program(name: &str) -> Result<PathBuf> {
    let module = MODULES
        .into_iter()
        .find(|module| module.binary == name || module.links.contains(&name))
        .with_context(|| format!("no module of dev/cluster/programs builds `{name}`"))?;
    Ok(module.built()?.join(name))
}

/// A command that runs kubectl with `kubeconfig`. What it caches goes next to that file and not into the user's home.
pub(super) fn kubectl(kubeconfig: &Path) -> Result<Command> {
    let mut command = command::command(program("kubectl")?);
    command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .env("KUBECACHEDIR", kubeconfig.with_extension("cache"));
    // A proxy cannot reach this machine's own clusters.
    command.env("NO_PROXY", "*");
    Ok(command)
}

impl Module {
    fn sources(&self) -> PathBuf {
        crate::checkout().join("dev/cluster/programs").join(self.folder)
    }

    /// The folder that holds the built program.
    fn built(&self) -> Result<PathBuf> {
        let flags = self.linker_flags()?;
        let kept = Kept {
            shelf: "programs",
            name: self.binary,
            hash: self.hash(&flags)?,
        };
        kept.provide(|making| self.build(making, &flags))
    }

    fn build(&self, making: &Making<'_>, flags: &str) -> Result<()> {
        eprintln!(
            "building {} (about {} with an empty Go cache)",
            self.binary, self.minutes
        );
        let mut go = command::command("go");
        go.args([
            "build",
            "-trimpath",
            "-mod=readonly",
            "-buildvcs=false",
            "-ldflags",
            flags,
            "-o",
        ])
        .arg(making.folder.join(self.binary))
        .arg(self.package)
        .current_dir(self.sources())
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off");
        making
            .run(&mut go, &format!("building {}", self.binary))
            .with_context(|| {
                "the cluster's programs are built with Go 1.26 or newer (`go` on the PATH, from https://go.dev/dl)"
            })?;
        for link in self.links {
            fs::os::unix::fs::symlink(self.binary, making.folder.join(link))?;
        }
        Ok(())
    }

    /// The version that Kubernetes' programs report. Components refuse to work with a peer that claims version 0.0.
    fn linker_flags(&self) -> Result<String> {
        let strip = "-s -w";
        if self.folder != KUBERNETES.folder {
            return Ok(strip.to_owned());
        }
        let version = required_version(
            &fs::read_to_string(self.sources().join("go.mod"))?,
            "k8s.io/kubernetes",
        )?;
        let mut numbers = version.trim_start_matches('v').split('.');
        let (major, minor) = (
            numbers.next().unwrap_or_default(),
            numbers.next().unwrap_or_default(),
        );
        let component = "k8s.io/component-base/version";
        Ok(format!(
            "{strip} -X {component}.gitVersion={version} -X {component}.gitMajor={major} -X {component}.gitMinor={minor} \
             -X {component}.gitTreeState=clean -X k8s.io/client-go/pkg/version.gitVersion={version}"
        ))
    }

    /// Identifies what a build consists of: the module's files, the flags and the platform. The Go version is left out on purpose, so that
    /// a machine whose cache was filled elsewhere needs no Go.
    fn hash(&self, flags: &str) -> Result<String> {
        let mut files: Vec<_> = fs::read_dir(self.sources())?.collect::<std::io::Result<_>>()?;
        files.sort_by_key(fs_err::DirEntry::file_name);
        let mut hash = Sha256::new();
        for text in [self.package, flags, std::env::consts::OS, std::env::consts::ARCH] {
            hash.update(text);
            hash.update([0]);
        }
        for file in files {
            hash.update(file.file_name().as_encoded_bytes());
            let mut contents = Vec::new();
            fs::File::open(file.path())?.read_to_end(&mut contents)?;
            hash.update(Sha256::digest(&contents));
        }
        Ok(hexadecimal(&hash.finalize()[..6]))
    }
}

/// The version of a module that `go.mod` requires.
fn required_version(go_mod: &str, module: &str) -> Result<String> {
    go_mod
        .lines()
        .filter_map(|line| {
            line.trim()
                .strip_prefix("require ")
                .unwrap_or(line.trim())
                .split_once(' ')
        })
        .find_map(|(name, version)| {
            (name == module).then(|| version.split(' ').next().unwrap_or(version).to_owned())
        })
        .with_context(|| format!("go.mod does not require {module}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_comes_from_the_go_module() {
        let go_mod =
            "module x\n\nrequire (\n\tk8s.io/kubectl v0.34.4\n\tk8s.io/kubernetes v1.34.4 // indirect\n)\n";
        assert_eq!(required_version(go_mod, "k8s.io/kubernetes").unwrap(), "v1.34.4");
        assert_eq!(
            required_version("require k8s.io/kubernetes v1.35.0", "k8s.io/kubernetes").unwrap(),
            "v1.35.0"
        );
        assert!(required_version(go_mod, "k8s.io/kube").is_err());
    }

    #[test]
    fn kubernetes_reports_its_own_version() {
        let flags = KUBERNETES.linker_flags().unwrap();
        assert!(flags.contains("gitMajor=1 "), "{flags}");
        assert!(!flags.contains("=v0"), "{flags}");
    }

    #[test]
    fn the_place_of_a_program_changes_with_what_it_is_built_from() {
        assert_eq!(ETCD.hash("-s -w").unwrap(), ETCD.hash("-s -w").unwrap());
        assert_ne!(ETCD.hash("-s -w").unwrap(), ETCD.hash("-s").unwrap());
        assert_ne!(ETCD.hash("-s -w").unwrap(), HELM.hash("-s -w").unwrap());
    }

    #[test]
    fn an_unknown_program_is_refused_by_name() {
        let error = program("kubeadm").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no module of dev/cluster/programs builds `kubeadm`"
        );
    }
}
