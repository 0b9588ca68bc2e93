//! The volume that the bundle is unpacked into.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use codeworkspace_bundle::{BundlePath, Entry};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmodat, mkdirat, openat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;
use thiserror::Error;

/// Group-writable, so that a body in the volume's group (the pod's `fsGroup`) can change what it was given. Folders inherit the
/// set-group-ID bit that kubelet puts on the volume.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o775);
const FILE_MODE: Mode = Mode::from_raw_mode(0o664);
const EXECUTABLE_MODE: Mode = Mode::from_raw_mode(0o775);

/// No name in a volume is ever resolved through a link: a bundle may hold links, and a body may have left some.
const OPEN_FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const CREATE_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Why a volume could not be used.
#[derive(Debug, Error)]
pub(crate) enum VolumeError {
    #[error("the folder {} that takes the bundle cannot be opened: {error}; mount a volume there", path.display())]
    Open { path: PathBuf, error: Errno },
    #[error("what {} held before cannot be removed: {error}", path.display())]
    Clear { path: PathBuf, error: Errno },
    #[error(
        "the volume at {} is full: `{entry}` ({bytes} bytes) does not fit; give the volume more room or make the bundle smaller",
        path.display()
    )]
    Full {
        path: PathBuf,
        entry: BundlePath,
        bytes: u64,
    },
    #[error("`{entry}` cannot be written to {}: {error}", path.display())]
    Write {
        path: PathBuf,
        entry: BundlePath,
        error: Errno,
    },
}

/// An open volume, used by this process alone.
pub(crate) struct Volume {
    path: PathBuf,
    root: OwnedFd,
    /// The folder written to last: a bundle's paths are sorted, so the next file is mostly beside the one before.
    last_folder: Option<(String, OwnedFd)>,
}

impl Volume {
    pub(crate) fn open(path: &Path) -> Result<Self, VolumeError> {
        let flags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
        let root = openat(CWD, path, flags, Mode::empty()).map_err(|error| VolumeError::Open {
            path: path.to_owned(),
            error,
        })?;
        Ok(Self::within(root, path))
    }

    /// A folder that is open already; `path` is what messages call it.
    pub(crate) fn within(root: OwnedFd, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            root,
            last_folder: None,
        }
    }

    /// Removes everything, whatever a body has left there: links, folders without permissions, folders nested too deeply for
    /// recursion.
    pub(crate) fn clear(&mut self) -> Result<(), VolumeError> {
        self.last_folder = None;
        clear(self.root.as_fd()).map_err(|error| VolumeError::Clear {
            path: self.path.clone(),
            error,
        })
    }

    /// Writes one entry of a bundle, with the folders above it.
    pub(crate) fn write(&mut self, path: &BundlePath, entry: &Entry) -> Result<(), VolumeError> {
        self.try_write(path, entry).map_err(|error| match error {
            Errno::NOSPC | Errno::DQUOT => VolumeError::Full {
                path: self.path.clone(),
                entry: path.clone(),
                bytes: entry.content_bytes(),
            },
            error => VolumeError::Write {
                path: self.path.clone(),
                entry: path.clone(),
                error,
            },
        })
    }

    fn try_write(&mut self, path: &BundlePath, entry: &Entry) -> Result<(), Errno> {
        let name = path.file_name();
        let folder = self.folder(path)?;
        match entry {
            Entry::Link { target } => symlinkat(target.as_str(), folder, name),
            Entry::File { contents, executable } => {
                let mode = if *executable { EXECUTABLE_MODE } else { FILE_MODE };
                let mut file = File::from(openat(folder, name, CREATE_FILE, mode)?);
                file.write_all(contents)
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            }
        }
    }

    fn folder(&mut self, path: &BundlePath) -> Result<BorrowedFd<'_>, Errno> {
        let Some(folder) = path.folder() else {
            return Ok(self.root.as_fd());
        };
        if self.last_folder.as_ref().is_none_or(|(last, _)| last != folder) {
            let mut opened: Option<OwnedFd> = None;
            for segment in folder.split('/') {
                let above = opened.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
                match mkdirat(above, segment, FOLDER_MODE) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
                let below = openat(above, segment, OPEN_FOLDER, Mode::empty())?;
                opened = Some(below);
            }
            self.last_folder = opened.map(|opened| (folder.to_owned(), opened));
        }
        Ok(self
            .last_folder
            .as_ref()
            .map_or(self.root.as_fd(), |(_, folder)| folder.as_fd()))
    }
}

/// Empties a folder without recursion: folders that are not empty are moved up to `root` first, so that neither the stack nor
/// the number of open files depends on how deep they are.
pub(crate) fn clear(root: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut moved = 0;
    loop {
        let names = names(root)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if remove(root, &name)? == Removed::NotEmpty {
                flatten(root, &name, &mut moved)?;
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Removed {
    Yes,
    NotEmpty,
}

fn remove(folder: BorrowedFd<'_>, name: &Path) -> Result<Removed, Errno> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) => return Ok(Removed::Yes),
        Err(Errno::ISDIR) => {}
        Err(error) => return Err(error),
    }
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(Removed::Yes),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Removed::NotEmpty),
        Err(error) => Err(error),
    }
}

/// Empties the folder `name` of `root` by removing what it holds, or moving it beside the folder.
fn flatten(root: BorrowedFd<'_>, name: &Path, moved: &mut u64) -> Result<(), Errno> {
    let folder = open_whatever_its_mode(root, name)?;
    for child in names(folder.as_fd())? {
        if remove(folder.as_fd(), &child)? == Removed::Yes {
            continue;
        }
        // Moving a folder changes its `..`, for which it must be writable itself.
        open_whatever_its_mode(folder.as_fd(), &child)?;
        loop {
            *moved += 1;
            match renameat(&folder, &child, root, format!(".removed-{moved}")) {
                Ok(()) => break,
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Opens a folder that may have no permissions left. It is one and no link, since it could not be unlinked.
fn open_whatever_its_mode(folder: BorrowedFd<'_>, name: &Path) -> Result<OwnedFd, Errno> {
    // A folder of somebody else cannot be changed, but may be usable as it is.
    let _ = chmodat(folder, name, Mode::RWXU, AtFlags::empty());
    openat(folder, name, OPEN_FOLDER, Mode::empty())
}

/// The names in a folder, in no particular order.
pub(crate) fn names(folder: BorrowedFd<'_>) -> Result<Vec<PathBuf>, Errno> {
    use std::os::unix::ffi::OsStrExt;
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(PathBuf::from(std::ffi::OsStr::from_bytes(name)));
        }
    }
    Ok(names)
}
