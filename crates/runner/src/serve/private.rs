//! Files that children are started from: they hold keys and commands.

use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use codeworkspace_protocol::layout;
use fs_err::OpenOptions;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use uuid::Uuid;

/// A folder that only this user id can look into. Code in the session has that id too and may remove it, so it is made again when it is
/// missing.
#[derive(Debug, Clone)]
pub(super) struct PrivateFolder(PathBuf);

/// A file in it, which goes with this.
#[derive(Debug)]
pub(super) struct PrivateFile(PathBuf);

impl PrivateFolder {
    /// A new one in the container's scratch directory.
    pub(super) fn create() -> io::Result<Self> {
        let name = format!(".codeworkspace-{}", Uuid::new_v4());
        Self::create_at(Path::new(layout::TEMPORARY_DIRECTORY).join(name))
    }

    fn create_at(path: PathBuf) -> io::Result<Self> {
        let folder = Self(path);
        folder.ensure()?;
        Ok(folder)
    }

    fn ensure(&self) -> io::Result<()> {
        match std::fs::DirBuilder::new().mode(0o700).create(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// A new file with a name of its own.
    pub(super) fn file(&self, extension: &str, contents: &[u8]) -> io::Result<PrivateFile> {
        self.ensure()?;
        let file = PrivateFile(self.0.join(format!("{}.{extension}", Uuid::new_v4())));
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&file.0)?
            .write_all(contents)?;
        Ok(file)
    }

    pub(super) fn remove(&self) {
        // What is left of it is the pod's memory.
        let _ = fs_err::remove_dir_all(&self.0);
    }
}

impl PrivateFile {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // It may never have been written, or be gone already.
        let _ = fs_err::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_are_closed_to_others_and_go_when_they_are_not_needed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("private");
        let folder = PrivateFolder::create_at(path.clone()).unwrap();
        let file = folder.file("sh", b"true").unwrap();
        let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(file.path())), (0o700, 0o600));
        drop(file);
        assert_eq!(fs_err::read_dir(&path).unwrap().count(), 0);
        folder.remove();
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_was_removed_is_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("private");
        let folder = PrivateFolder::create_at(path.clone()).unwrap();
        fs_err::remove_dir(&path).unwrap();
        let file = folder.file("json", b"{}").unwrap();
        assert_eq!(fs_err::read(file.path()).unwrap(), b"{}");
    }
}
