//! Kernelspecs: how an installed kernel is started (jupyter_client, "Kernel specs").

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Where kernels are looked for beside `JUPYTER_PATH`: Jupyter's system directories.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/local/share/jupyter", "/usr/share/jupyter"];

/// How a kernel is asked to stop what it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum InterruptMode {
    /// SIGINT to its process group.
    #[default]
    Signal,
    /// An `interrupt_request` on its control channel.
    Message,
}

/// One kernelspec; members that only user interfaces need are left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct KernelSpec {
    pub(super) argv: Vec<String>,
    pub(super) language: String,
    #[serde(default)]
    pub(super) interrupt_mode: InterruptMode,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(skip)]
    folder: PathBuf,
}

impl KernelSpec {
    /// Finds the kernelspec `name`, first in `jupyter_path` (folders with colons between them).
    pub(super) fn find(name: &str, jupyter_path: Option<&OsStr>) -> io::Result<Self> {
        let folders: Vec<PathBuf> = jupyter_path
            .into_iter()
            .flat_map(std::env::split_paths)
            .filter(|folder| folder.is_absolute())
            .chain(SYSTEM_FOLDERS.map(PathBuf::from))
            .map(|folder| folder.join("kernels").join(name))
            .collect();
        for folder in &folders {
            match fs_err::read(folder.join("kernel.json")) {
                Ok(text) => return Self::read(&text, folder),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let looked: Vec<_> = folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        Err(io::Error::other(format!(
            "the image has no kernelspec `{name}`; looked at {}",
            looked.join(", ")
        )))
    }

    fn read(text: &[u8], folder: &Path) -> io::Result<Self> {
        let wrong =
            |what: String| io::Error::other(format!("{}: {what}", folder.join("kernel.json").display()));
        let mut spec: Self = serde_json::from_slice(text).map_err(|error| wrong(error.to_string()))?;
        if spec.argv.first().is_none_or(String::is_empty) {
            return Err(wrong("`argv` names no program".to_owned()));
        }
        folder.clone_into(&mut spec.folder);
        Ok(spec)
    }

    /// The command line of a kernel that reads `connection_file`.
    pub(super) fn command(&self, connection_file: &Path) -> Vec<String> {
        let connection_file = connection_file.display().to_string();
        let folder = self.folder.display().to_string();
        self.argv
            .iter()
            .map(|word| {
                word.replace("{connection_file}", &connection_file)
                    .replace("{resource_dir}", &folder)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(name: &str, text: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("kernels").join(name);
        fs_err::create_dir_all(&folder).unwrap();
        fs_err::write(folder.join("kernel.json"), text).unwrap();
        directory
    }

    #[test]
    fn a_kernelspec_is_found_and_its_command_filled_in() {
        let text = r#"{
            "argv": ["/opt/{resource_dir}/k", "-f", "{connection_file}", "{other}"], "display_name": "K", "language": "python",
            "interrupt_mode": "message", "env": {"A": "b"}, "metadata": {"debugger": true}
        }"#;
        let directory = installed("mine", text);
        let path = std::env::join_paths([Path::new("/nonexistent"), directory.path()]).unwrap();
        let spec = KernelSpec::find("mine", Some(&path)).unwrap();
        assert_eq!(spec.interrupt_mode, InterruptMode::Message);
        assert_eq!(spec.env, BTreeMap::from([("A".to_owned(), "b".to_owned())]));
        let folder = directory.path().join("kernels/mine");
        assert_eq!(
            spec.command(Path::new("/tmp/c.json")),
            [
                &format!("/opt/{}/k", folder.display()),
                "-f",
                "/tmp/c.json",
                "{other}"
            ]
        );
    }

    #[test]
    fn a_missing_or_unusable_kernelspec_is_named() {
        let none = KernelSpec::find("no-such-kernel", None).unwrap_err().to_string();
        assert_eq!(
            none,
            "the image has no kernelspec `no-such-kernel`; looked at /usr/local/share/jupyter/kernels/no-such-kernel, \
             /usr/share/jupyter/kernels/no-such-kernel"
        );
        for (text, why) in [
            ("{", "EOF"),
            (r#"{"argv": [], "language": "x"}"#, "names no program"),
            (r#"{"argv": ["k"]}"#, "language"),
        ] {
            let directory = installed("broken", text);
            let error = KernelSpec::find("broken", Some(directory.path().as_os_str()))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(why) && error.contains("broken/kernel.json"),
                "{error}"
            );
        }
    }
}
