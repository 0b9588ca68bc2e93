//! Reading, listing and removing files.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use codeworkspace_protocol::session::{ErrorCode, FileEntry, FileKind, SessionError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, statat};
use rustix::io::Errno;

use super::fault::fault;
use super::jail::Root;
use super::path::SessionPath;
use super::stage::{Journal, STAGE_PREFIX, Stage};
use crate::volume::names;

/// Entries of one folder that are listed.
const MAX_ENTRIES: usize = 100_000;

/// Opens a regular file, and tells its size.
pub(in crate::serve) fn open_file(root: &Root, path: &SessionPath) -> Result<(File, u64), SessionError> {
    let failed = |error| fault(Some(path), error);
    // Opening a pipe would wait for a writer.
    let opened = root
        .open_at(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
        .map_err(failed)?;
    let stat = fstat(&opened).map_err(failed)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((
            File::from(opened),
            u64::try_from(stat.st_size).unwrap_or_default(),
        )),
        FileType::Directory => Err(failed(Errno::ISDIR)),
        _ => Err(SessionError::new(
            ErrorCode::WrongKind,
            format!("`{path}` is no regular file"),
        )),
    }
}

/// The entries of a folder, sorted by name.
pub(in crate::serve) fn list(
    root: &Root,
    path: Option<&SessionPath>,
) -> Result<Vec<FileEntry>, SessionError> {
    let failed = |error| fault(path, error);
    let folder = root.folder(path).map_err(failed)?;
    let mut names = names(folder.as_fd()).map_err(failed)?;
    names.retain(|name| !name.as_os_str().as_bytes().starts_with(STAGE_PREFIX.as_bytes()));
    names.sort();
    if names.len() > MAX_ENTRIES {
        return Err(SessionError::new(
            ErrorCode::NoSpace,
            format!(
                "{} has {} entries, more than the {MAX_ENTRIES} that can be listed",
                path.map_or("the session's root", SessionPath::as_str),
                names.len()
            ),
        ));
    }
    let mut entries = Vec::with_capacity(names.len());
    for name in names {
        let stat = match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // It was removed meanwhile.
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(failed(error)),
        };
        let (kind, size) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => (FileKind::File, u64::try_from(stat.st_size).unwrap_or_default()),
            FileType::Directory => (FileKind::Folder, 0),
            FileType::Symlink => (FileKind::Link, 0),
            _ => (FileKind::Other, 0),
        };
        entries.push(FileEntry {
            path: SessionPath::join(path, &name.to_string_lossy())
                .as_str()
                .to_owned(),
            kind,
            size,
        });
    }
    Ok(entries)
}

/// Removes files, and folders with what is in them: all, or none.
pub(in crate::serve) fn remove(root: &Arc<Root>, mut paths: Vec<SessionPath>) -> Result<(), SessionError> {
    paths.sort();
    paths.dedup();
    for path in &paths {
        let folder = root
            .folder(path.folder().as_ref())
            .map_err(|error| fault(Some(path), error))?;
        statat(folder, path.name(), AtFlags::SYMLINK_NOFOLLOW).map_err(|error| fault(Some(path), error))?;
    }
    let all = paths.clone();
    paths.retain(|path| !all.iter().any(|other| path.is_below(other)));
    let mut stage = Stage::open(root).map_err(|error| fault(None, error))?;
    let mut journal = Journal::default();
    for path in paths {
        let taken = root
            .folder(path.folder().as_ref())
            .and_then(|folder| stage.take(folder.as_fd(), path.name(), |_| true));
        match taken {
            Ok(kept) => journal.took(path, kept),
            Err(error) => {
                journal.undo(&mut stage);
                return Err(fault(Some(&path), error));
            }
        }
    }
    Ok(())
}
