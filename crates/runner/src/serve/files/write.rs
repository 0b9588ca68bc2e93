//! Writing files: all of them, or none.

use std::collections::BTreeMap;
use std::io::{Read, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use codeworkspace_protocol::session::{ErrorCode, SessionError, WrittenFiles};
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;
use tar::EntryType;

use super::fault::{fault, io_fault};
use super::jail::Root;
use super::path::SessionPath;
use super::stage::{Journal, Stage};

const CHUNK_BYTES: usize = 64 * 1024;

/// Files that are complete and wait for their names.
pub(super) struct Delivery {
    root: Arc<Root>,
    stage: Stage,
    /// Names in the stage by the paths that they shall have.
    files: BTreeMap<SessionPath, String>,
    bytes: u64,
}

impl Delivery {
    pub(super) fn begin(root: &Arc<Root>) -> Result<Self, SessionError> {
        Ok(Self {
            stage: Stage::open(root).map_err(|error| fault(None, error))?,
            root: Arc::clone(root),
            files: BTreeMap::new(),
            bytes: 0,
        })
    }

    /// Takes one file's contents in; `size` is what was announced, if anything was.
    pub(super) fn take(
        &mut self,
        path: SessionPath,
        executable: bool,
        size: Option<u64>,
        mut contents: impl Read,
    ) -> Result<(), SessionError> {
        if self.files.contains_key(&path) {
            return Err(invalid(format!("`{path}` comes twice")));
        }
        let (name, mut file) = self
            .stage
            .file(executable)
            .map_err(|error| fault(Some(&path), error))?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut taken = 0;
        loop {
            let count = match contents.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(invalid(format!("`{path}` cannot be read to its end: {error}"))),
            };
            file.write_all(&chunk[..count])
                .map_err(|error| io_fault(&path, &error))?;
            taken += count as u64;
        }
        if size.is_some_and(|size| size != taken) {
            return Err(invalid(format!("`{path}` is not complete")));
        }
        self.bytes += taken;
        self.files.insert(path, name);
        Ok(())
    }

    /// Gives every file its name, or none of them.
    pub(super) fn commit(self) -> Result<WrittenFiles, SessionError> {
        self.commit_after_check(|| ())
    }

    /// The same; `checked` is called between looking and doing, where code in the session may act.
    pub(super) fn commit_after_check(mut self, checked: impl FnOnce()) -> Result<WrittenFiles, SessionError> {
        for path in self.files.keys() {
            self.check(path)?;
        }
        checked();
        let written = WrittenFiles {
            files: self.files.len() as u64,
            bytes: self.bytes,
        };
        let mut journal = Journal::default();
        for (path, staged) in std::mem::take(&mut self.files) {
            if let Err(error) = self.place(&path, &staged, &mut journal) {
                journal.undo(&mut self.stage);
                return Err(fault(Some(&path), error));
            }
        }
        Ok(written)
    }

    /// Finds what would fail, before anything has changed.
    fn check(&self, path: &SessionPath) -> Result<(), SessionError> {
        let mut above = path.folder();
        while let Some(folder) = above {
            if self.files.contains_key(&folder) {
                return Err(SessionError::new(
                    ErrorCode::WrongKind,
                    format!("`{folder}` would be a file, and the folder of `{path}`"),
                ));
            }
            above = folder.folder();
        }
        match self.root.folder(path.folder().as_ref()) {
            Ok(folder) => match statat(folder, path.name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                    Err(fault(Some(path), Errno::ISDIR))
                }
                Ok(_) | Err(Errno::NOENT) => Ok(()),
                Err(error) => Err(fault(Some(path), error)),
            },
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(fault(Some(path), error)),
        }
    }

    fn place(&mut self, path: &SessionPath, staged: &str, journal: &mut Journal) -> Result<(), Errno> {
        let folder = self
            .root
            .make_folder(path.folder().as_ref(), |made| journal.made(made))?;
        let before = self.stage.place(staged, folder.as_fd(), path.name())?;
        journal.placed(path.clone(), before);
        Ok(())
    }
}

/// Writes the files of a tar stream.
pub(in crate::serve) fn write_tar(root: &Arc<Root>, stream: impl Read) -> Result<WrittenFiles, SessionError> {
    let mut delivery = Delivery::begin(root)?;
    let mut archive = tar::Archive::new(stream);
    let unreadable = |error: std::io::Error| invalid(format!("the tar stream cannot be read: {error}"));
    for entry in archive.entries().map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = std::str::from_utf8(&entry.path_bytes())
            .map_err(|_| SessionError::new(ErrorCode::InvalidPath, "a path in the tar stream is not UTF-8"))
            .and_then(SessionPath::parse_inner)?;
        match entry.header().entry_type() {
            EntryType::Regular => {}
            EntryType::XGlobalHeader => continue,
            _ => {
                return Err(invalid(format!(
                    "`{path}` is no regular file; only those are written"
                )));
            }
        }
        let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
        let size = entry.size();
        delivery.take(path, executable, Some(size), entry)?;
    }
    delivery.commit()
}

/// Writes one file.
pub(in crate::serve) fn write_file(
    root: &Arc<Root>,
    path: SessionPath,
    contents: impl Read,
) -> Result<WrittenFiles, SessionError> {
    let mut delivery = Delivery::begin(root)?;
    delivery.take(path, false, None, contents)?;
    delivery.commit()
}

fn invalid(message: String) -> SessionError {
    SessionError::new(ErrorCode::InvalidRequest, message)
}
