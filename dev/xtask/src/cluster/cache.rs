//! What is made once and kept outside the checkout, in folders named by the hash of what they are made from, so that checkouts share
//! it and a change makes it anew. A folder appears by a rename, so that an interrupted command leaves nothing that looks finished.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use fs_err as fs;
use sha2::{Digest as _, Sha256};

use super::hexadecimal::hexadecimal;
use super::lock::Lock;
use super::progress;

/// Where everything is kept, shared by all checkouts of one user.
pub(super) fn folder() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME says where to keep what is built")?;
    Ok(base.join("codeworkspace-dev"))
}

/// The hash of parts, each of which counts with its length.
pub(crate) fn hash(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hexadecimal(&hash.finalize()[..6])
}

/// One folder of the cache.
pub(crate) struct Kept<'a> {
    /// The folder above it. One command at a time makes something there.
    pub(crate) shelf: &'a str,
    /// What it is.
    pub(crate) name: &'a str,
    /// Of everything that it is made from.
    pub(crate) hash: String,
}

/// A folder that is being made.
pub(crate) struct Making<'a> {
    /// It is moved when it is finished.
    pub(crate) folder: &'a Path,
    log: &'a Path,
}

impl Kept<'_> {
    /// Its path. It is made if no checkout made it before.
    pub(crate) fn provide(&self, make: impl FnOnce(&Making<'_>) -> Result<()>) -> Result<PathBuf> {
        self.provide_in(&folder()?.join(self.shelf), make)
    }

    fn provide_in(&self, place: &Path, make: impl FnOnce(&Making<'_>) -> Result<()>) -> Result<PathBuf> {
        let folder = place.join(format!("{}-{}", self.name, self.hash));
        if folder.is_dir() {
            return Ok(folder);
        }
        fs::create_dir_all(place)?;
        let _lock = Lock::take(
            &place.join("lock"),
            &format!("another command that makes {}", self.shelf),
        )?;
        // Whoever held the lock may have made it.
        if folder.is_dir() {
            return Ok(folder);
        }
        // A command that was killed may have left a compiler at work, which must not find the folder of this one.
        let partials = format!("{}.partial-", self.name);
        for entry in fs::read_dir(place)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&partials) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        let partial = place.join(format!("{partials}{}", std::process::id()));
        fs::create_dir(&partial)?;
        let started = Instant::now();
        make(&Making {
            folder: &partial,
            log: &place.join(format!("{}.log", self.name)),
        })?;
        fs::rename(&partial, &folder)?;
        eprintln!("made {} in {} s", self.name, started.elapsed().as_secs());
        Ok(folder)
    }
}

impl Making<'_> {
    /// Runs a command that takes long. Its output goes to a log, whose end is part of the error. `what` reads well after "still".
    pub(crate) fn run(&self, command: &mut Command, what: &str) -> Result<()> {
        progress::run(command, what, self.log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(hash: &str) -> Kept<'static> {
        Kept {
            shelf: "things",
            name: "thing",
            hash: hash.to_owned(),
        }
    }

    #[test]
    fn a_folder_is_made_once_and_anew_when_what_it_is_made_from_changes() {
        let place = tempfile::tempdir().unwrap();
        let make = |hash: &str| {
            let mut made = false;
            let folder = kept(hash).provide_in(place.path(), |_| {
                made = true;
                Ok(())
            });
            (folder.unwrap().file_name().unwrap().to_owned(), made)
        };
        assert_eq!(make("1"), ("thing-1".into(), true));
        assert_eq!(make("1"), ("thing-1".into(), false));
        assert_eq!(make("2"), ("thing-2".into(), true));
    }

    #[test]
    fn what_failed_or_was_interrupted_is_not_taken_for_finished() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("thing.partial-1")).unwrap();
        let failed = kept("1").provide_in(place.path(), |making| {
            making.run(&mut Command::new("false"), "making it")
        });
        assert!(failed.unwrap_err().to_string().contains("making it failed"));
        let made = kept("1").provide_in(place.path(), |making| {
            assert_eq!(fs::read_dir(making.folder)?.count(), 0);
            Ok(())
        });
        let mut names: Vec<_> = fs::read_dir(place.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["lock", "thing-1", "thing.log"]);
        assert!(made.unwrap().is_dir());
    }
}
