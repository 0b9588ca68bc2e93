//! Reads a folder whose owner may be hostile, and may change it at the same time.
//!
//! Every name is opened below the folder that it stands in and never through a link. What was listed must be what is opened, and
//! still the same when it has been read; else the reading fails, since a mixture of two states is a state that never was.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use codeworkspace_bundle::{BundlePath, BundleSizeError, BundleWriter, link_destination};
use codeworkspace_protocol::{FinishedReading, ReadArguments, ReadFailure, RefusedLinks};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::Stop;

/// No name in a volume is ever resolved through a link.
const OPEN_FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A named pipe that took a file's place must not block.
const OPEN_FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// What decides whether a file is a script: see the rule for sources without file modes.
const SCRIPT: &[u8] = b"#!";
/// Holds a repository's history, or its whole configuration, and never its files.
const GIT: &[u8] = b".git";
/// What a file system's repair puts at the top of a volume.
const LOST_AND_FOUND: &[u8] = b"lost+found";
/// Skipped links that are kept for the report, which names fewer.
const MAX_SKIPPED: usize = 16;

/// What a folder has, as it was listed.
struct Listed {
    name: CString,
    path: BundlePath,
    stat: Stat,
    kind: FileType,
}

impl Listed {
    /// A bundle is sorted by whole paths, in which a folder's name is followed by a slash.
    fn key(&self) -> (&[u8], &[u8]) {
        let after: &[u8] = if self.kind == FileType::Directory {
            b"/"
        } else {
            b""
        };
        (self.name.as_bytes(), after)
    }
}

/// A walk through a volume.
pub(super) struct Walk<W: Write> {
    bundle: BundleWriter<W>,
    links: RefusedLinks,
    most: u64,
    entries: u64,
    folders: u64,
    skipped: Vec<String>,
    skipped_total: u64,
}

impl<W: Write> Walk<W> {
    pub(super) fn new(bundle: BundleWriter<W>, arguments: &ReadArguments) -> Self {
        Self {
            bundle,
            links: arguments.links,
            most: arguments.max_entries,
            entries: 0,
            folders: 0,
            skipped: Vec::new(),
            skipped_total: 0,
        }
    }

    /// Sends the files of the volume, or of a folder of it.
    pub(super) fn volume(&mut self, folder: &str, below: Option<&str>) -> Result<(), Stop> {
        let flags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
        let mut root = openat(CWD, folder, flags, Mode::empty())
            .map_err(|error| stop(error, "the volume", ReadFailure::Unreadable))?;
        for segment in below.iter().flat_map(|below| below.split('/')) {
            root = openat(&root, segment, OPEN_FOLDER, Mode::empty()).map_err(|error| match error {
                Errno::NOTDIR | Errno::LOOP => Stop::failed(
                    ReadFailure::NotFound,
                    format!(
                        "`{segment}` of the folder's path is no folder, or a link, which is not followed"
                    ),
                ),
                error => stop(error, &format!("the folder `{segment}`"), ReadFailure::NotFound),
            })?;
        }
        self.folder(root.as_fd(), None, below.is_none())
    }

    /// What was read in all, once the volume was sent.
    pub(super) fn finish(self) -> Result<FinishedReading, Stop> {
        let (digest, _) = self.bundle.finish()?;
        Ok(FinishedReading {
            digest: digest.to_string(),
            skipped: self.skipped,
            skipped_total: self.skipped_total,
        })
    }

    /// Depth is bounded by the length that a path may have, so neither stack nor open files can run out.
    fn folder(
        &mut self,
        folder: BorrowedFd<'_>,
        path: Option<&BundlePath>,
        is_top: bool,
    ) -> Result<(), Stop> {
        let name = path.map_or_else(|| "the volume's folder".to_owned(), |path| format!("`{path}`"));
        let unreadable = |error| stop(error, &name, ReadFailure::Changed);
        let before = fstat(folder).map_err(unreadable)?;
        for listed in self.list(folder, path, is_top)? {
            match listed.kind {
                FileType::RegularFile => self.file(folder, &listed)?,
                FileType::Symlink => self.link(folder, &listed)?,
                _ => {
                    let opened = open(folder, &listed, OPEN_FOLDER)?;
                    self.folder(opened.as_fd(), Some(&listed.path), false)?;
                }
            }
        }
        if is_same(&before, &fstat(folder).map_err(unreadable)?) {
            Ok(())
        } else {
            Err(changed(&name))
        }
    }

    /// Names with what they stand for, in the order of a bundle. The limits hold for names already: a folder may have millions.
    fn list(
        &mut self,
        folder: BorrowedFd<'_>,
        above: Option<&BundlePath>,
        is_top: bool,
    ) -> Result<Vec<Listed>, Stop> {
        let mut found = Vec::new();
        let unreadable = |error| {
            let name = above.map_or_else(|| "the volume's folder".to_owned(), |path| format!("`{path}`"));
            stop(error, &name, ReadFailure::Changed)
        };
        for entry in Dir::read_from(folder).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name().to_owned();
            if matches!(name.as_bytes(), b"." | b".." | GIT) {
                continue;
            }
            let shown = shown(above, name.as_bytes());
            let stat = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| stop(error, &shown, ReadFailure::Changed))?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            if is_top && name.as_bytes() == LOST_AND_FOUND && kind == FileType::Directory {
                continue;
            }
            self.count(kind, &shown)?;
            let path = path(above, name.as_bytes(), &shown)?;
            found.push(Listed {
                name,
                path,
                stat,
                kind,
            });
        }
        found.sort_by(|one, other| {
            let ((one, one_end), (other, other_end)) = (one.key(), other.key());
            one.iter().chain(one_end).cmp(other.iter().chain(other_end))
        });
        Ok(found)
    }

    /// Counts a name, and refuses what is neither file, link nor folder.
    fn count(&mut self, kind: FileType, shown: &str) -> Result<(), Stop> {
        let what = match kind {
            FileType::RegularFile | FileType::Symlink => {
                self.entries += 1;
                if self.entries > self.most {
                    let (entries, limit) = (self.entries, self.most);
                    return Err(BundleSizeError::Entries { entries, limit }.into());
                }
                return Ok(());
            }
            FileType::Directory => {
                self.folders += 1;
                if self.folders > self.most {
                    let message = format!("there are more than {} folders", self.most);
                    return Err(Stop::failed(ReadFailure::TooLarge, message));
                }
                return Ok(());
            }
            FileType::Fifo => "a named pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Unknown => "of an unknown kind",
        };
        let message = format!("{shown} is {what}; only files, folders and links can be read");
        Err(Stop::failed(ReadFailure::Refused, message))
    }

    fn file(&mut self, folder: BorrowedFd<'_>, listed: &Listed) -> Result<(), Stop> {
        let file = File::from(open(folder, listed, OPEN_FILE)?);
        let name = format!("`{}`", listed.path);
        let unreadable = |error: io::Error| {
            let error = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            stop(error, &name, ReadFailure::Unreadable)
        };
        let bytes = u64::try_from(listed.stat.st_size).unwrap_or_default();
        let mut start = Vec::new();
        (&file)
            .take(SCRIPT.len() as u64)
            .read_to_end(&mut start)
            .map_err(unreadable)?;
        let executable = start == SCRIPT;
        self.bundle
            .file(&listed.path, executable, bytes, start.chain(&file))?;
        let after = fstat(&file).map_err(|error| stop(error, &name, ReadFailure::Unreadable))?;
        if is_same(&listed.stat, &after) {
            Ok(())
        } else {
            Err(changed(&name))
        }
    }

    fn link(&mut self, folder: BorrowedFd<'_>, listed: &Listed) -> Result<(), Stop> {
        let name = format!("`{}`", listed.path);
        let gone = |error| stop(error, &name, ReadFailure::Changed);
        let target = readlinkat(folder, &listed.name, Vec::new()).map_err(gone)?;
        let after = statat(folder, &listed.name, AtFlags::SYMLINK_NOFOLLOW).map_err(gone)?;
        if !is_same(&listed.stat, &after) {
            return Err(changed(&name));
        }
        let refused = match target.to_str() {
            Ok(target) => match link_destination(&listed.path, target) {
                Ok(_) => return Ok(self.bundle.link(&listed.path, target)?),
                Err(error) => error.to_string(),
            },
            Err(_) => format!("link {name} has a target that is not UTF-8"),
        };
        match self.links {
            RefusedLinks::Fail => Err(Stop::failed(ReadFailure::Refused, refused)),
            RefusedLinks::Skip => {
                self.skipped_total += 1;
                if self.skipped.len() < MAX_SKIPPED {
                    self.skipped.push(refused);
                }
                Ok(())
            }
        }
    }
}

/// Opens what was listed, and nothing that has taken its place since.
fn open(folder: BorrowedFd<'_>, listed: &Listed, flags: OFlags) -> Result<OwnedFd, Stop> {
    let name = format!("`{}`", listed.path);
    let opened = openat(folder, &listed.name, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP => changed(&name),
        error => stop(error, &name, ReadFailure::Changed),
    })?;
    let now = fstat(&opened).map_err(|error| stop(error, &name, ReadFailure::Changed))?;
    if is_same(&listed.stat, &now) {
        Ok(opened)
    } else {
        Err(changed(&name))
    }
}

/// Whether two looks saw the same thing in the same state. Reading changes nothing of this.
fn is_same(one: &Stat, other: &Stat) -> bool {
    let state = |stat: &Stat| {
        (
            (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_size),
            (
                stat.st_mtime,
                stat.st_mtime_nsec,
                stat.st_ctime,
                stat.st_ctime_nsec,
            ),
        )
    };
    state(one) == state(other)
}

fn changed(name: &str) -> Stop {
    Stop::failed(ReadFailure::Changed, format!("{name} changed while it was read"))
}

/// What an error of the system means; `missing` is what it means that something is not there.
fn stop(error: Errno, name: &str, missing: ReadFailure) -> Stop {
    match error {
        Errno::NOENT if missing == ReadFailure::Changed => changed(name),
        Errno::NOENT => Stop::failed(missing, format!("{name} is not there")),
        Errno::ACCESS | Errno::PERM => {
            let user = rustix::process::geteuid();
            Stop::failed(
                ReadFailure::PermissionDenied,
                format!(
                    "{name} may not be read by user {}, as which volumes are read",
                    user.as_raw()
                ),
            )
        }
        error => Stop::failed(ReadFailure::Unreadable, format!("{name} cannot be read: {error}")),
    }
}

/// A name for messages.
fn shown(above: Option<&BundlePath>, name: &[u8]) -> String {
    let name = name.escape_ascii();
    above.map_or_else(|| format!("`{name}`"), |above| format!("`{above}/{name}`"))
}

fn path(above: Option<&BundlePath>, name: &[u8], shown: &str) -> Result<BundlePath, Stop> {
    let refused = |problem: String| Stop::failed(ReadFailure::Refused, problem);
    let name =
        std::str::from_utf8(name).map_err(|_| refused(format!("{shown} has a name that is not UTF-8")))?;
    let path = above.map_or_else(|| name.to_owned(), |above| format!("{above}/{name}"));
    path.parse()
        .map_err(|error: codeworkspace_bundle::PathError| refused(error.to_string()))
}
