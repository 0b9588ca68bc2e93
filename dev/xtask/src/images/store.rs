//! Where images are kept, and buildah's view of it. Everything is outside the checkout and shared by all checkouts
//! of a machine; none of it is in the machine's own container storage.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::inputs::Inputs;

/// Images without a name are the layers that make a repeated build quick. Beyond this many, most of them belong to
/// builds that will not be repeated.
const UNNAMED_IMAGES: usize = 80;

/// A folder with all that building images leaves behind. Deleting it costs only time.
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    /// `$XDG_CACHE_HOME/codeworkspace-dev`, or below `~/.cache`.
    pub(super) fn of_this_user() -> Result<Self> {
        let cache = match std::env::var_os("XDG_CACHE_HOME").filter(|path| Path::new(path).is_absolute()) {
            Some(path) => PathBuf::from(path),
            None => std::env::home_dir()
                .context("neither XDG_CACHE_HOME nor HOME is set")?
                .join(".cache"),
        };
        Ok(Self {
            folder: cache.join("codeworkspace-dev"),
        })
    }

    #[cfg(test)]
    pub(super) fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    pub(super) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.folder.join(relative)
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.path("log").join(format!("{name}.log"))
    }

    /// Makes the store ready, and removes what an interrupted build left in it. Only for the holder of the lock.
    pub(super) fn prepare(&self) -> Result<()> {
        let temporary = self.path("tmp");
        fs::create_dir_all(&temporary)?;
        fs::create_dir_all(self.path("contexts/empty"))?;
        fs::write(self.configuration(), self.configuration_text())?;
        output(self.buildah(&["rm", "--all"]))?;
        for entry in fs::read_dir(&temporary)? {
            let path = entry?.path();
            // buildah's cache mounts live here too, and are what makes a second build of the operator quick.
            if path.file_name().is_some_and(|name| name != "buildah-cache") {
                if path.is_dir() {
                    fs::remove_dir_all(&path)?;
                } else {
                    fs::remove_file(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Drops the layers of past builds when there are many.
    pub(super) fn prune(&self) -> Result<()> {
        let unnamed = output(self.buildah(&["images", "--quiet", "--filter", "dangling=true"]))?;
        if unnamed.lines().count() > UNNAMED_IMAGES {
            output(self.buildah(&["rmi", "--prune"]))?;
        }
        Ok(())
    }

    /// Removes all images and what they were made of. Caches of cargo stay: they are not what grows old.
    pub(super) fn clear(&self) -> Result<()> {
        output(self.buildah(&["rmi", "--all", "--force"]))?;
        for folder in ["contexts", "images"] {
            match fs::remove_dir_all(self.path(folder)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        self.prepare()
    }

    pub(super) fn has_image(&self, reference: &str) -> bool {
        output(self.buildah(&[
            "inspect",
            "--type",
            "image",
            "--format",
            "{{.FromImageID}}",
            reference,
        ]))
        .is_ok()
    }

    /// buildah on this store.
    pub(super) fn buildah(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("buildah");
        command.args(arguments);
        self.confine(&mut command);
        command
    }

    /// Keeps a program's containers and temporary files in the store.
    pub(super) fn confine(&self, command: &mut Command) {
        command
            .env("CONTAINERS_STORAGE_CONF", self.configuration())
            .env("TMPDIR", self.path("tmp"));
    }

    fn configuration(&self) -> PathBuf {
        self.path("storage.conf")
    }

    /// The run root tells what is mounted. It must be gone after a restart of the machine, as the mounts are.
    fn configuration_text(&self) -> String {
        let graph = self.path("containers");
        let run = Inputs::default().add(graph.as_os_str().as_encoded_bytes()).hash();
        format!(
            "[storage]\ndriver = \"overlay\"\ngraphroot = \"{}\"\nrunroot = \"/run/codeworkspace-dev/images-{run}\"\n",
            graph.display()
        )
    }
}

/// Runs a short command and gives its standard output.
pub(super) fn output(mut command: Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("`{program}` could not be started"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("`{program}` failed ({}): {}", output.status, error.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
