//! The termination log: the file in which kubelet looks for a container's last words.

use std::io;
use std::os::unix::fs::FileExt;

use codeworkspace_protocol::{Cause, RunRecord};
use fs_err::{File, OpenOptions};

use crate::clock::now;

/// Says in the log, and in the termination log, why an init container failed whose work `record` was begun for.
pub(crate) fn tell_failure(record: RunRecord, cause: Cause, message: String, termination_log: &str) {
    eprintln!("runner: {message}");
    let mut record = record.finished(now(), cause);
    record.message = Some(message);
    if let Err(error) = RecordFile::open(termination_log).and_then(|file| file.write(&record)) {
        eprintln!("runner: the reason cannot be recorded: {error}");
    }
}

/// The file that takes the record, held open from before the body starts.
///
/// It is a bind mount, so it cannot be replaced by a rename. The body can write to it too: whatever stands in it is overwritten,
/// and must not survive when overwriting fails.
pub(crate) struct RecordFile {
    file: File,
}

impl RecordFile {
    pub(crate) fn open(path: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        Ok(Self { file })
    }

    /// Replaces the file's content.
    ///
    /// The old content is overwritten before it is cut, so that a full disk can be survived on the blocks that are there already.
    pub(crate) fn write(&self, record: &RunRecord) -> io::Result<()> {
        let message = record.to_message();
        let file = self.file.file();
        let written = file
            .write_all_at(message.as_bytes(), 0)
            .and_then(|()| self.file.set_len(message.len() as u64));
        if written.is_err() {
            self.file.set_len(0)?;
        }
        written
    }
}
