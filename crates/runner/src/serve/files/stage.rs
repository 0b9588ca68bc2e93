//! A hidden folder in the session's root, in which files are made complete before they appear under their names, and to which files go
//! before they disappear. It is on the same volume, so that a rename is all that either takes.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use uuid::Uuid;

use super::jail::{EXECUTABLE_MODE, FILE_MODE, Root};
use super::path::SessionPath;
use crate::volume::clear;

/// Beginning of the names of such folders.
pub(super) const STAGE_PREFIX: &str = ".codeworkspace-stage-";
/// How often a name is tried that code in the session makes and removes meanwhile.
const ATTEMPTS: usize = 16;

/// The folder; it is removed with everything in it.
pub(super) struct Stage {
    root: Arc<Root>,
    name: String,
    folder: OwnedFd,
    next: u64,
}

/// What stood under a name before something was placed there.
pub(super) enum Before {
    Nothing,
    /// It is in the stage now, under this name.
    Kept(String),
}

impl Stage {
    pub(super) fn open(root: &Arc<Root>) -> Result<Self, Errno> {
        let name = format!("{STAGE_PREFIX}{}", Uuid::new_v4());
        mkdirat(root.as_fd(), &name, Mode::RWXU)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self {
            folder: openat(root.as_fd(), &name, flags, Mode::empty())?,
            root: Arc::clone(root),
            name,
            next: 0,
        })
    }

    fn next_name(&mut self) -> String {
        self.next += 1;
        self.next.to_string()
    }

    /// A new file, and its name in the stage.
    pub(super) fn file(&mut self, executable: bool) -> Result<(String, File), Errno> {
        let name = self.next_name();
        let mode = if executable { EXECUTABLE_MODE } else { FILE_MODE };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, &name, flags, mode)?;
        Ok((name, File::from(file)))
    }

    /// A new folder.
    pub(super) fn folder(&mut self) -> Result<OwnedFd, Errno> {
        let name = self.next_name();
        mkdirat(&self.folder, &name, super::jail::FOLDER_MODE)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.folder, &name, flags, Mode::empty())
    }

    /// Gives what is staged as `staged` the name `name` in `folder`. A folder that stands there is left alone.
    pub(super) fn place(
        &mut self,
        staged: &str,
        folder: BorrowedFd<'_>,
        name: &str,
    ) -> Result<Before, Errno> {
        for _ in 0..ATTEMPTS {
            match rename_to_new(self.folder.as_fd(), staged, folder, name) {
                Ok(()) => return Ok(Before::Nothing),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            match renameat_with(&self.folder, staged, folder, name, RenameFlags::EXCHANGE) {
                Ok(()) if self.is_folder(staged) => {
                    renameat_with(&self.folder, staged, folder, name, RenameFlags::EXCHANGE)?;
                    return Err(Errno::ISDIR);
                }
                Ok(()) => return Ok(Before::Kept(staged.to_owned())),
                Err(Errno::NOENT) => {}
                Err(error) if is_unsupported(error) => return self.place_in_two_steps(staged, folder, name),
                Err(error) => return Err(error),
            }
        }
        Err(Errno::BUSY)
    }

    /// Without the kernel's help there is a moment in which neither stands there.
    fn place_in_two_steps(
        &mut self,
        staged: &str,
        folder: BorrowedFd<'_>,
        name: &str,
    ) -> Result<Before, Errno> {
        let before = match self.take(folder, name, |kind| kind != FileType::Directory) {
            Ok(kept) => Before::Kept(kept),
            Err(Errno::NOENT) => Before::Nothing,
            Err(error) => return Err(error),
        };
        let placed = renameat(&self.folder, staged, folder, name);
        if let (Err(error), Before::Kept(kept)) = (placed, &before) {
            self.give_back(kept, folder, name)?;
            return Err(error);
        }
        placed.map(|()| before)
    }

    /// Moves `name` of `folder` into the stage, if its kind is wanted, and answers with its name there.
    pub(super) fn take(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &str,
        wanted: impl FnOnce(FileType) -> bool,
    ) -> Result<String, Errno> {
        let kind = FileType::from_raw_mode(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
        if !wanted(kind) {
            return Err(Errno::ISDIR);
        }
        let kept = self.next_name();
        renameat(folder, name, &self.folder, &kept)?;
        Ok(kept)
    }

    /// Moves what was taken or replaced back to where it was, over whatever stands there now.
    pub(super) fn give_back(&self, kept: &str, folder: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        renameat(&self.folder, kept, folder, name)
    }

    fn is_folder(&self, name: &str) -> bool {
        statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }
}

/// Moves something to a name that nothing has.
pub(super) fn rename_to_new(
    from: BorrowedFd<'_>,
    old_name: &str,
    to: BorrowedFd<'_>,
    new_name: &str,
) -> Result<(), Errno> {
    match renameat_with(from, old_name, to, new_name, RenameFlags::NOREPLACE) {
        Err(error) if is_unsupported(error) => match statat(to, new_name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => renameat(from, old_name, to, new_name),
            Err(error) => Err(error),
        },
        answer => answer,
    }
}

/// What file systems, and sandboxes' kernels, say of a flag that they lack.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What cannot be removed is hidden, and goes with the pod.
        let _ = clear(self.folder.as_fd());
        let _ = unlinkat(self.root.as_fd(), &self.name, AtFlags::REMOVEDIR);
    }
}

/// What was done so far, so that it can be undone.
#[derive(Default)]
pub(super) struct Journal(Vec<Step>);

enum Step {
    Made(SessionPath),
    Placed(SessionPath, Before),
    Took(SessionPath, String),
}

impl Journal {
    pub(super) fn made(&mut self, folder: SessionPath) {
        self.0.push(Step::Made(folder));
    }

    pub(super) fn placed(&mut self, path: SessionPath, before: Before) {
        self.0.push(Step::Placed(path, before));
    }

    pub(super) fn took(&mut self, path: SessionPath, kept: String) {
        self.0.push(Step::Took(path, kept));
    }

    /// Puts everything back, the last step first. What code in the session has changed meanwhile is beyond help.
    pub(super) fn undo(self, stage: &mut Stage) {
        for step in self.0.into_iter().rev() {
            let (Step::Made(path) | Step::Placed(path, _) | Step::Took(path, _)) = &step;
            let Ok(folder) = stage.root.folder(path.folder().as_ref()) else {
                continue;
            };
            let _ = match &step {
                Step::Made(_) => unlinkat(&folder, path.name(), AtFlags::REMOVEDIR),
                // The stage is removed with it.
                Step::Placed(_, Before::Nothing) => {
                    stage.take(folder.as_fd(), path.name(), |_| true).map(|_| ())
                }
                Step::Placed(_, Before::Kept(kept)) | Step::Took(_, kept) => {
                    stage.give_back(kept, folder.as_fd(), path.name())
                }
            };
        }
    }
}
