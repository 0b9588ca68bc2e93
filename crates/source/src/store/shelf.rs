//! A folder of files with a budget.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::envelope::{self, Opener, Sealer, Unreadable};
use super::index::{Index, disk_bytes};
use super::key::{Key, is_file_name};

/// What the names of unfinished files end in.
const UNFINISHED: &str = ".unfinished";
/// Private repositories are nobody else's business.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const BUFFER_BYTES: usize = 256 * 1024;

/// Makes a folder, those above it included, unless it is there.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Files by key in one folder. Only one process uses it at a time.
#[derive(Debug)]
pub(super) struct Shelf {
    folder: PathBuf,
    index: Mutex<Index>,
    /// Held while files come or go, so that the index never lacks a file that is there.
    writing: Mutex<()>,
    next_number: AtomicU64,
    /// Counts files that made room.
    evictions: Arc<AtomicU64>,
}

impl Shelf {
    /// Takes stock of the folder: removes unfinished files, and whole ones over the budget. Contents are looked at when they
    /// are asked for.
    pub(super) fn open(folder: PathBuf, capacity: u64, evictions: Arc<AtomicU64>) -> io::Result<Self> {
        make_folder(&folder)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            // Does not follow links.
            let about = entry.metadata()?;
            if name.ends_with(UNFINISHED) {
                fs::remove_file(entry.path())?;
            } else if is_file_name(&name) && about.is_file() {
                found.push((about.modified()?, name, disk_bytes(about.len())));
            }
        }
        found.sort();
        let mut index = Index::new(capacity);
        for (_, name, bytes) in found {
            index.insert(name, bytes);
        }
        let shelf = Self {
            folder,
            index: Mutex::new(index),
            writing: Mutex::default(),
            next_number: AtomicU64::new(0),
            evictions,
        };
        shelf.make_room(0)?;
        Ok(shelf)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.index().bytes()
    }

    /// Notes a use of a file that memory served; false if there is none. Its time is set with the next file that is written.
    pub(super) fn touch(&self, key: &Key) -> bool {
        self.index().touch(&key.file_name(), SystemTime::now())
    }

    /// Reads what is stored under a key. A file that is not whole, or about something else, is removed and counts as
    /// absent.
    pub(super) fn get<T>(
        &self,
        key: &Key,
        read: impl FnOnce(&mut Opener<BufReader<File>>) -> Result<T, Unreadable>,
    ) -> io::Result<Option<T>> {
        let name = key.file_name();
        if !self.index().touch(&name, SystemTime::now()) {
            return Ok(None);
        }
        match self.read(&name, key, read) {
            Ok(value) => Ok(Some(value)),
            Err(Unreadable::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                self.index().remove(&name);
                Ok(None)
            }
            Err(Unreadable::Io(error)) => Err(error),
            Err(Unreadable::Damaged(problem)) => {
                tracing::warn!(file = name, problem, "a file of the cache is removed");
                self.remove(&name)?;
                Ok(None)
            }
        }
    }

    fn read<T>(
        &self,
        name: &str,
        key: &Key,
        read: impl FnOnce(&mut Opener<BufReader<File>>) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        let file = File::open(self.folder.join(name))?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(Unreadable::Damaged("is no file"));
        }
        let mut opener = Opener::new(BufReader::with_capacity(BUFFER_BYTES, file), about.len(), key)?;
        let value = read(&mut opener)?;
        opener.finish()?;
        Ok(value)
    }

    /// Stores contents of so many bytes under a key, at the cost of files that were not used for longest. False if they would
    /// not fit even alone.
    ///
    /// A file appears under its name only when all of it is on the disk; whenever the process ends, there is the old one, the
    /// new one or none.
    pub(super) fn put(
        &self,
        key: &Key,
        contents: u64,
        write: impl FnOnce(&mut Sealer<BufWriter<File>>) -> io::Result<()>,
    ) -> io::Result<bool> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.save_uses();
        let bytes = disk_bytes(contents.saturating_add(envelope::overhead(key)));
        if bytes > self.index().capacity() {
            return Ok(false);
        }
        // Before anything is written: a volume that overflows may cost the pod.
        self.make_room(bytes)?;
        let name = key.file_name();
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.folder.join(format!("{number}{UNFINISHED}"));
        let published = write_whole(&unfinished, key, write)
            .and_then(|()| fs::rename(&unfinished, self.folder.join(&name)));
        if let Err(error) = published {
            // It may never have been made; the error to tell is the first one.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        self.index().insert(name.clone(), bytes);
        // Without this the name may be lost with the power.
        File::open(&self.folder)?.sync_all()?;
        match self.read(&name, key, Opener::pass) {
            Ok(()) => Ok(true),
            Err(problem) => {
                self.remove(&name)?;
                Err(io::Error::other(format!(
                    "reading back what was written: {problem}"
                )))
            }
        }
    }

    /// Only for those who hold `writing`, or have not shared the shelf yet.
    fn make_room(&self, bytes: u64) -> io::Result<()> {
        loop {
            let Some(name) = self.index().in_the_way_of(bytes) else {
                return Ok(());
            };
            self.delete(&name)?;
            self.index().remove(&name);
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// From the index first: a file that somebody puts there in between is at worst lost, but never left uncounted.
    fn remove(&self, name: &str) -> io::Result<()> {
        self.index().remove(name);
        self.delete(name)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Shows on the files what was used, for the order of eviction after a restart. What fails here costs no more than that.
    fn save_uses(&self) {
        let unsaved = self.index().take_unsaved();
        for (name, time) in unsaved {
            let saved = File::open(self.folder.join(&name)).and_then(|file| file.set_modified(time));
            if let Err(error) = saved {
                tracing::debug!(file = name, %error, "the time of a use is lost");
            }
        }
    }
}

/// Writes a file and waits until it is on the disk.
fn write_whole(
    path: &Path,
    key: &Key,
    write: impl FnOnce(&mut Sealer<BufWriter<File>>) -> io::Result<()>,
) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)?;
    let mut sealer = Sealer::new(BufWriter::with_capacity(BUFFER_BYTES, file), key)?;
    write(&mut sealer)?;
    let mut buffer = sealer.finish()?;
    buffer.flush()?;
    let file = buffer.into_inner().map_err(io::IntoInnerError::into_error)?;
    // The kernel's own times are too coarse to tell the order of files.
    file.set_modified(SystemTime::now())?;
    file.sync_all()
}
