//! The session's root, out of which no path leads.
//!
//! Code in the session can make links and move folders while a path is being followed, so paths are never joined and opened by name:
//! the kernel follows them and keeps them below the root (`openat2(2)`). Where it lacks that, or a sandbox forbids the call, the
//! folders are opened one by one and links are not followed at all.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
use rustix::io::Errno;

use super::path::SessionPath;

/// The session's files, a mode of which the pod's group may change what is in them, as with a bundle's.
pub(super) const FOLDER_MODE: Mode = Mode::from_raw_mode(0o775);
pub(super) const FILE_MODE: Mode = Mode::from_raw_mode(0o664);
pub(super) const EXECUTABLE_MODE: Mode = Mode::from_raw_mode(0o775);

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
/// How often a path is followed again when something on it was moved meanwhile.
const ATTEMPTS: usize = 8;

/// The open root.
pub(in crate::serve) struct Root {
    root: OwnedFd,
    /// Whether the kernel's own jail can be used.
    beneath: AtomicBool,
}

impl Root {
    pub(in crate::serve) fn open(path: &Path) -> Result<Self, Errno> {
        Ok(Self {
            root: openat(CWD, path, FOLDER, Mode::empty())?,
            beneath: AtomicBool::new(true),
        })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens what stands at `path`.
    pub(super) fn open_at(&self, path: &SessionPath, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let flags = flags.union(OFlags::CLOEXEC);
        if self.beneath.load(Ordering::Relaxed) {
            for _ in 0..ATTEMPTS {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
                match openat2(&self.root, path.as_str(), flags, mode, resolve) {
                    Err(Errno::AGAIN) => {}
                    // Missing in the kernel, or forbidden by a seccomp profile that does not know it.
                    Err(Errno::NOSYS | Errno::PERM) if !self.can_jail() => {
                        self.beneath.store(false, Ordering::Relaxed);
                        return self.open_step_by_step(path, flags, mode);
                    }
                    answer => return answer,
                }
            }
            return Err(Errno::AGAIN);
        }
        self.open_step_by_step(path, flags, mode)
    }

    /// Whether the kernel opens even the root in this way.
    fn can_jail(&self) -> bool {
        openat2(&self.root, ".", FOLDER, Mode::empty(), ResolveFlags::BENEATH).is_ok()
    }

    fn open_step_by_step(&self, path: &SessionPath, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let mut opened: Option<OwnedFd> = None;
        if let Some(folder) = path.folder() {
            for segment in folder.segments() {
                let above = opened.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
                let below = openat(above, segment, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
                opened = Some(below);
            }
        }
        let above = opened.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
        openat(above, path.name(), flags | OFlags::NOFOLLOW, mode)
    }

    /// Opens a folder; the root when there is no path.
    pub(super) fn folder(&self, path: Option<&SessionPath>) -> Result<OwnedFd, Errno> {
        match path {
            Some(path) => self.open_at(path, FOLDER, Mode::empty()),
            None => self
                .root
                .try_clone()
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
    }

    /// Opens a folder, after making it and the folders above it where they are missing. `made` is told about each.
    pub(super) fn make_folder(
        &self,
        path: Option<&SessionPath>,
        mut made: impl FnMut(SessionPath),
    ) -> Result<OwnedFd, Errno> {
        match self.folder(path) {
            Err(Errno::NOENT) => {}
            answer => return answer,
        }
        let mut folder = self.folder(None)?;
        let mut so_far: Option<SessionPath> = None;
        for segment in path.into_iter().flat_map(SessionPath::segments) {
            let next = SessionPath::join(so_far.as_ref(), segment);
            match mkdirat(&folder, segment, FOLDER_MODE) {
                Ok(()) => made(next.clone()),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            folder = self.folder(Some(&next))?;
            so_far = Some(next);
        }
        Ok(folder)
    }

    /// A new file in a folder of the root that is made when it is missing. What stood there before is replaced, and a link is not
    /// followed.
    pub(in crate::serve) fn create(&self, path: &SessionPath) -> std::io::Result<File> {
        let folder = self.make_folder(path.folder().as_ref(), |_| ())?;
        match rustix::fs::unlinkat(&folder, path.name(), rustix::fs::AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&folder, path.name(), flags, FILE_MODE)?))
    }

    /// Removes a file; one that is gone is no failure.
    pub(in crate::serve) fn discard(&self, path: &SessionPath) {
        if let Ok(folder) = self.folder(path.folder().as_ref()) {
            let _ = rustix::fs::unlinkat(folder, path.name(), rustix::fs::AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::symlink;

    use super::*;

    fn path(text: &str) -> SessionPath {
        SessionPath::parse_inner(text).unwrap()
    }

    /// The same root, with the kernel's jail and without.
    fn roots(folder: &Path) -> [Root; 2] {
        let without = Root::open(folder).unwrap();
        without.beneath.store(false, Ordering::Relaxed);
        [Root::open(folder).unwrap(), without]
    }

    #[test]
    fn no_link_leads_out() {
        let outside = tempfile::tempdir().unwrap();
        fs_err::write(outside.path().join("secret"), "x").unwrap();
        let inside = tempfile::tempdir().unwrap();
        symlink(outside.path(), inside.path().join("absolute")).unwrap();
        symlink("../..", inside.path().join("up")).unwrap();
        symlink(outside.path().join("secret"), inside.path().join("file")).unwrap();
        symlink("/proc/self/root", inside.path().join("magic")).unwrap();
        for root in roots(inside.path()) {
            for escape in ["absolute/secret", "up/etc", "file", "magic/etc"] {
                let opened = root.open_at(&path(escape), OFlags::RDONLY, Mode::empty());
                assert!(
                    matches!(opened, Err(Errno::XDEV | Errno::LOOP | Errno::NOTDIR)),
                    "{escape}: {opened:?}"
                );
                let made = root.make_folder(Some(&path(&format!("{escape}/new"))), |_| ());
                assert!(made.is_err(), "{escape}");
            }
        }
        assert_eq!(fs_err::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_that_stays_inside_is_followed_where_the_kernel_keeps_it_inside() {
        let inside = tempfile::tempdir().unwrap();
        fs_err::create_dir(inside.path().join("data")).unwrap();
        fs_err::write(inside.path().join("data/x"), "here").unwrap();
        symlink("data/x", inside.path().join("latest")).unwrap();
        let [root, _] = roots(inside.path());
        let opened = root
            .open_at(&path("latest"), OFlags::RDONLY, Mode::empty())
            .unwrap();
        let mut text = String::new();
        File::from(opened).read_to_string(&mut text).unwrap();
        assert_eq!(text, "here");
    }

    #[test]
    fn missing_folders_are_made_and_named() {
        let inside = tempfile::tempdir().unwrap();
        fs_err::create_dir(inside.path().join("a")).unwrap();
        for (root, top) in roots(inside.path()).iter().zip(["a/1", "a/2"]) {
            let mut made = Vec::new();
            root.make_folder(Some(&path(&format!("{top}/c"))), |path| made.push(path))
                .unwrap();
            assert_eq!(made, [path(top), path(&format!("{top}/c"))]);
        }
    }

    #[test]
    fn a_created_file_replaces_a_link_and_does_not_follow_it() {
        let inside = tempfile::tempdir().unwrap();
        fs_err::write(inside.path().join("target"), "old").unwrap();
        symlink("target", inside.path().join("out")).unwrap();
        for root in roots(inside.path()) {
            root.create(&path("out")).unwrap().write_all(b"new").unwrap();
            assert_eq!(fs_err::read(inside.path().join("target")).unwrap(), b"old");
            assert_eq!(fs_err::read(inside.path().join("out")).unwrap(), b"new");
            root.discard(&path("out"));
            root.discard(&path("out"));
        }
    }
}
