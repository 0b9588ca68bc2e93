//! Locks between processes. The kernel releases them when their holder ends, however it ends.

use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;

/// Held until dropped.
pub(super) struct Lock {
    _file: std::fs::File,
}

impl Lock {
    /// Waits for the lock at `path`, and says so with the name of what holds it.
    pub(super) fn take(path: &Path, holder: &str) -> Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?
            .into_parts()
            .0;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                eprintln!("waiting for {holder}");
                file.lock()
                    .with_context(|| format!("locking {}", path.display()))?;
            }
            Err(std::fs::TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", path.display()));
            }
        }
        Ok(Self { _file: file })
    }
}
