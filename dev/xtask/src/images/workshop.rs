//! What every build works with: the store, the terminal and the lock.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;
use rustix::process::{Resource, Rlimit, getrlimit};

use super::host::Lock;
use super::progress::Progress;
use super::store::{self, Store};

/// The store while nobody else builds in it.
pub(super) struct Workshop {
    pub(super) store: Store,
    pub(super) progress: Progress,
    lock: Lock,
}

/// One build from a Dockerfile.
pub(super) struct Build<'a> {
    /// What to call it on the terminal.
    pub(super) name: &'a str,
    pub(super) dockerfile: &'a Path,
    pub(super) context: &'a Path,
    pub(super) tag: &'a str,
    /// Stand-ins: what the Dockerfile calls an image or a folder, and where buildah finds it.
    pub(super) contexts: Vec<(String, String)>,
    /// Build arguments.
    pub(super) arguments: Vec<(String, String)>,
}

impl Workshop {
    /// Waits for other builds on this machine and removes what an interrupted one left.
    pub(super) fn open(store: Store) -> Result<Self> {
        let lock = Lock::take(&store.path("images.lock"))?;
        store.prepare()?;
        Ok(Self {
            store,
            progress: Progress::start(),
            lock,
        })
    }

    /// Runs a long program.
    pub(super) fn run(&self, name: &str, mut command: Command) -> Result<()> {
        self.lock.share(&mut command)?;
        self.store.confine(&mut command);
        self.progress
            .run(name, command, &self.store.log(&name.replace(' ', "-")))
    }

    /// Builds an image and gives its identifier: 64 hexadecimal digits, which follow from its content and configuration.
    pub(super) fn build(&self, build: &Build<'_>) -> Result<String> {
        let id_file = self.store.path("tmp/image-id");
        unless_sealing_failed(|| self.run(build.name, self.build_command(build, &id_file)))?;
        let id = fs::read_to_string(&id_file)?;
        let id = id
            .trim()
            .strip_prefix("sha256:")
            .context("buildah wrote an odd image identifier")?;
        Ok(id.to_owned())
    }

    fn build_command(&self, build: &Build<'_>, id_file: &Path) -> Command {
        // Layers are kept and reused, nothing is pulled, and the format is the one that `docker save` archives hold.
        let mut command = self
            .store
            .buildah(&["bud", "--layers", "--pull=never", "--isolation=chroot"]);
        command.args(["--format=docker", "--tag", build.tag]);
        for (name, resource) in [("nofile", Resource::Nofile), ("nproc", Resource::Nproc)] {
            command.arg(format!("--ulimit={}", limit(name, &getrlimit(resource))));
        }
        command
            .arg("--file")
            .arg(build.dockerfile)
            .arg("--iidfile")
            .arg(id_file);
        for (name, source) in &build.contexts {
            command.arg("--build-context").arg(format!("{name}={source}"));
        }
        for (name, value) in &build.arguments {
            command.arg("--build-arg").arg(format!("{name}={value}"));
        }
        command.arg(build.context);
        command
    }

    /// Writes an image as an archive of `docker save`'s kind, in which it is called `reference`.
    pub(super) fn save(&self, id: &str, reference: &str, archive: &Path) -> Result<()> {
        let partial = self.store.path("tmp/archive.tar");
        let destination = format!("docker-archive:{}:{reference}", partial.display());
        let mut command = self.store.buildah(&["push", "--quiet", id, &destination]);
        self.lock.share(&mut command)?;
        store::output(command)?;
        if let Some(folder) = archive.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(&partial, archive)?;
        Ok(())
    }
}

/// Builds again when buildah could not start a step for a reason that passes. Before each step it copies itself into memory
/// and seals the copy; the kernel refuses the seal while a page of it is still in use elsewhere (`EBUSY`, see `F_SEAL_WRITE` in
/// fcntl(2)), as happens on a busy machine. The steps before are in the cache.
fn unless_sealing_failed(mut build: impl FnMut() -> Result<()>) -> Result<()> {
    const REFUSED_SEAL: &str = "sealing memfd copy: Device or resource busy";
    const ATTEMPTS: usize = 4;
    for _ in 1..ATTEMPTS {
        match build() {
            Err(error) if error.to_string().contains(REFUSED_SEAL) => {}
            done => return done,
        }
    }
    build()
}

/// A limit for the steps of a build that need not be raised for them. Newer versions of buildah raise limits unless told
/// otherwise, older ones lower their own first, and not every container's root may raise one.
fn limit(name: &str, own: &Rlimit) -> String {
    const ENOUGH: u64 = 16_384;
    let limit = own.maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    format!("{name}={limit}:{limit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_seal_is_tried_again_and_nothing_else_is() {
        let attempts = |messages: &[&str]| {
            let mut count = 0;
            let result = unless_sealing_failed(|| {
                count += 1;
                messages
                    .get(count - 1)
                    .map_or(Ok(()), |message| Err(anyhow::anyhow!("operator: {message}")))
            });
            (count, result.map_err(|error| error.to_string()))
        };
        let seal = "Close_Fd sealing memfd copy: Device or resource busy";
        assert_eq!(attempts(&[]), (1, Ok(())));
        assert_eq!(attempts(&[seal, seal]), (3, Ok(())));
        assert_eq!(
            attempts(&["no space left"]),
            (1, Err("operator: no space left".into()))
        );
        assert_eq!(attempts(&[seal; 9]), (4, Err(format!("operator: {seal}"))));
    }

    #[test]
    fn the_steps_of_a_build_never_need_a_higher_limit() {
        let own = |maximum| Rlimit {
            current: None,
            maximum,
        };
        assert_eq!(limit("nofile", &own(Some(4096))), "nofile=4096:4096");
        assert_eq!(limit("nofile", &own(Some(1_048_576))), "nofile=16384:16384");
        assert_eq!(limit("nproc", &own(None)), "nproc=16384:16384");
    }
}
