//! What outlives the process: trees of commits and small records, in a folder on disk.
//!
//! The cache saves work and nothing else. Whatever is wrong with the disk, a source is resolved as if nothing were stored;
//! so no function here gives an error, and the log tells once what is wrong.

mod envelope;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod index;
mod key;
mod shelf;
mod tree;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::archive::RepositoryTree;
use crate::cache::CommitKey;
use crate::clock::{Clock, later};
use crate::configuration::ArchiveLimits;
pub(crate) use key::Key;
use shelf::{Shelf, make_folder};

/// How long what failed is left alone.
const REST: Duration = Duration::from_mins(1);
/// How long the disk may take. Volumes of a network can hang for ever.
const PATIENCE: Duration = Duration::from_secs(30);
/// One part in so many is for records.
const RECORDS_SHARE: u64 = 16;
const MAXIMUM_RECORD_BYTES: u64 = 64 * 1024;
/// Reads at the same time: each may take the memory of a whole tree.
const READS: usize = 2;

/// Where the cache is and how much it may hold.
#[derive(Debug, Clone)]
pub(crate) struct StoreConfiguration {
    pub(crate) directory: PathBuf,
    /// Disk for everything together.
    pub(crate) bytes: u64,
    /// Trees over these limits count as absent.
    pub(crate) limits: ArchiveLimits,
}

/// The folder while this process has it for itself.
#[derive(Debug)]
struct Shelves {
    trees: Shelf,
    records: Shelf,
    /// The kernel takes the lock back however the process ends.
    lock: File,
}

impl Shelves {
    fn open(configuration: &StoreConfiguration, evictions: &Arc<AtomicU64>) -> io::Result<Self> {
        let directory = &configuration.directory;
        make_folder(directory)?;
        let lock = lock(&directory.join("lock"))?;
        let records = configuration.bytes / RECORDS_SHARE;
        Ok(Self {
            trees: Shelf::open(
                directory.join("trees"),
                configuration.bytes - records,
                Arc::clone(evictions),
            )?,
            records: Shelf::open(directory.join("records"), records, Arc::clone(evictions))?,
            lock,
        })
    }
}

impl Drop for Shelves {
    fn drop(&mut self) {
        // Closing the file is not enough while a child process that is just being started has it open, too.
        if let Err(error) = self.lock.unlock() {
            tracing::debug!(%error, "the cache's lock stays until the process ends");
        }
    }
}

fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            "another process uses this folder",
        )),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Held for moments only: also those ask who must not wait for a disk.
#[derive(Debug)]
enum State {
    Open(Arc<Shelves>),
    /// Not opened yet, or not to be tried before the given time.
    Closed(Option<Timestamp>),
}

/// One kind of work with the disk. Each rests by itself when it fails: a full disk can still be read.
#[derive(Debug)]
struct Desk {
    doing: &'static str,
    permits: Arc<Semaphore>,
    rests_until: Mutex<Option<Timestamp>>,
}

impl Desk {
    fn new(doing: &'static str, permits: usize) -> Self {
        Self {
            doing,
            permits: Arc::new(Semaphore::new(permits)),
            rests_until: Mutex::default(),
        }
    }

    fn rests_until(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.rests_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Inner {
    configuration: StoreConfiguration,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Held while the folder is opened.
    opening: Mutex<()>,
    reading: Desk,
    writing: Desk,
    tree_hits: AtomicU64,
    evictions: Arc<AtomicU64>,
}

/// Counts for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StoreStatistics {
    /// Trees that were served from disk.
    pub(crate) tree_hits: u64,
    /// Disk that files take.
    pub(crate) bytes: u64,
    /// Files that were removed for others.
    pub(crate) evictions: u64,
}

/// The cache on disk, or none. Opened with the first use, so that a replica that only waits does not keep the folder from the
/// one that works.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store(Option<Arc<Inner>>);

impl Store {
    pub(crate) fn new(configuration: Option<StoreConfiguration>, clock: Arc<dyn Clock>) -> Self {
        Self(configuration.map(|configuration| {
            Arc::new(Inner {
                configuration,
                clock,
                state: Mutex::new(State::Closed(None)),
                opening: Mutex::default(),
                reading: Desk::new("reading from", READS),
                writing: Desk::new("writing to", 1),
                tree_hits: AtomicU64::new(0),
                evictions: Arc::default(),
            })
        }))
    }

    /// The tree of a commit.
    pub(crate) async fn tree(&self, key: &CommitKey) -> Option<RepositoryTree> {
        let inner = self.0.as_ref()?;
        let key = Key::tree(key);
        let read = move |inner: &Inner| inner.read_tree(&key);
        let tree = inner.work(&inner.reading, read).await??;
        inner.tree_hits.fetch_add(1, Ordering::Relaxed);
        Some(tree)
    }

    /// Stores the tree of a commit. Ends when the tree is safe on disk, or will not be.
    pub(crate) async fn put_tree(&self, key: &CommitKey, tree: Arc<RepositoryTree>) {
        let Some(inner) = &self.0 else { return };
        let key = Key::tree(key);
        let write = move |inner: &Inner| inner.write_tree(&key, &tree);
        inner.work(&inner.writing, write).await;
    }

    /// Notes that a tree was served from memory, which is a use too.
    pub(crate) fn touch_tree(&self, key: &CommitKey) {
        let Some(inner) = &self.0 else { return };
        if let State::Open(shelves) = &*inner.state() {
            shelves.trees.touch(&Key::tree(key));
        }
    }

    /// Notes that a record is in use; false if it is not there and should be stored again, as after the folder was lost.
    pub(crate) fn touch_record(&self, key: &Key) -> bool {
        let Some(inner) = &self.0 else { return true };
        match &*inner.state() {
            State::Open(shelves) => shelves.records.touch(key),
            State::Closed(until) => until.is_some(),
        }
    }

    /// The record of this key.
    pub(crate) async fn record<T>(&self, key: &Key) -> Option<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let inner = self.0.as_ref()?;
        let key = key.clone();
        let read = move |inner: &Inner| inner.read_record(&key);
        let text = inner.work(&inner.reading, read).await??;
        // One of another version: as good as none.
        serde_json::from_slice(&text).ok()
    }

    /// Stores a record in place of an older one.
    pub(crate) async fn put_record(&self, key: &Key, record: &impl Serialize) {
        let Some(inner) = &self.0 else { return };
        let Ok(text) = serde_json::to_vec(record) else {
            return;
        };
        if text.len() as u64 > MAXIMUM_RECORD_BYTES {
            return;
        }
        let key = key.clone();
        let write = move |inner: &Inner| inner.write_record(&key, &text);
        inner.work(&inner.writing, write).await;
    }

    pub(crate) fn statistics(&self) -> StoreStatistics {
        let Some(inner) = &self.0 else {
            return StoreStatistics::default();
        };
        let bytes = match &*inner.state() {
            State::Closed(_) => 0,
            State::Open(shelves) => shelves.trees.bytes() + shelves.records.bytes(),
        };
        StoreStatistics {
            tree_hits: inner.tree_hits.load(Ordering::Relaxed),
            bytes,
            evictions: inner.evictions.load(Ordering::Relaxed),
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the disk on a thread that may wait; `None` if that fails.
    async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        desk: &Desk,
        work: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> Option<T> {
        if desk.rests_until().is_some_and(|until| self.clock.now() < until) {
            return None;
        }
        let (inner, permits) = (Arc::clone(self), Arc::clone(&desk.permits));
        let working = async {
            // Whoever hangs keeps the permit, so that hanging threads stay few.
            let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
            let worker = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                work(&inner)
            });
            worker.await.map_err(io::Error::other)?
        };
        let done = timeout(PATIENCE, working).await;
        done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .inspect_err(|error| {
                *desk.rests_until() = Some(self.after_a_rest());
                self.complain(desk.doing, error);
            })
            .ok()
    }

    fn read_tree(&self, key: &Key) -> io::Result<Option<RepositoryTree>> {
        let limits = self.configuration.limits;
        let Some(shelves) = self.open() else {
            return Ok(None);
        };
        shelves.trees.get(key, |opener| tree::read(opener, &limits))
    }

    fn write_tree(&self, key: &Key, tree: &RepositoryTree) -> io::Result<()> {
        let length = tree::length(tree)?;
        self.write(|shelves| shelves.trees.put(key, length, |out| tree::write(tree, out)))
    }

    fn read_record(&self, key: &Key) -> io::Result<Option<Vec<u8>>> {
        let Some(shelves) = self.open() else {
            return Ok(None);
        };
        shelves
            .records
            .get(key, |opener| opener.rest(MAXIMUM_RECORD_BYTES))
    }

    fn write_record(&self, key: &Key, text: &[u8]) -> io::Result<()> {
        let length = text.len() as u64;
        self.write(|shelves| shelves.records.put(key, length, |out| out.write_all(text)))
    }

    /// Writes to the open folder. One that somebody removed is made anew, once.
    fn write(&self, write: impl Fn(&Shelves) -> io::Result<bool>) -> io::Result<()> {
        let Some(shelves) = self.open() else {
            return Ok(());
        };
        match write(&shelves) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done.map(drop),
        }
        *self.state() = State::Closed(None);
        // With its lock, which would be in the way.
        drop(shelves);
        let Some(shelves) = self.open() else {
            return Ok(());
        };
        write(&shelves).map(drop)
    }

    /// The folder, if it can be had. Others wait here for one who opens it.
    fn open(&self) -> Option<Arc<Shelves>> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        match &*self.state() {
            State::Open(shelves) => return Some(Arc::clone(shelves)),
            State::Closed(Some(until)) if self.clock.now() < *until => return None,
            State::Closed(_) => {}
        }
        let opened = Shelves::open(&self.configuration, &self.evictions).map(Arc::new);
        let (state, shelves) = match opened {
            Ok(shelves) => (State::Open(Arc::clone(&shelves)), Some(shelves)),
            Err(error) => {
                self.complain("opening", &error);
                (State::Closed(Some(self.after_a_rest())), None)
            }
        };
        *self.state() = state;
        shelves
    }

    fn after_a_rest(&self) -> Timestamp {
        later(self.clock.now(), REST)
    }

    fn complain(&self, doing: &str, error: &io::Error) {
        tracing::warn!(
            folder = %self.configuration.directory.display(),
            %error,
            "{doing} the cache fails; it will be tried again after {} seconds",
            REST.as_secs()
        );
    }
}

#[cfg(test)]
mod tests;
