//! One output stream on its way from the body to the container's log.
//!
//! Two threads and a bounded queue between them. While the body lives, a slow log slows the body down, as it would without a
//! runner. Once the body is gone the queue takes whatever the pipe still holds, so the stream's count and tail are final without
//! waiting for the log; what is queued is still delivered to the last byte.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use codeworkspace_protocol::{StreamRecord, StreamTail};
use rustix::event::{PollFd, PollFlags, poll};

/// Bytes read at once; Linux pipes hold as much.
const CHUNK_BYTES: usize = 64 * 1024;

/// Queued bytes above which the body has to wait for the log.
const QUEUE_BYTES: usize = 256 * 1024;

/// The threads copy through heap buffers and call nothing deep.
const STACK_BYTES: usize = 64 * 1024;

/// A stream being passed on.
pub(super) struct Relay {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: Vec<u8>,
    tail: StreamTail,
    unbounded: bool,
    ended: bool,
    delivered: bool,
    failure: Option<io::ErrorKind>,
}

impl Relay {
    /// Starts passing on to `log`, and gives the end that the body writes to.
    pub(super) fn start(log: impl AsFd) -> io::Result<(Self, PipeWriter)> {
        let log = File::from(log.as_fd().try_clone_to_owned()?);
        let (reader, writer) = io::pipe()?;
        let shared = Arc::new(Shared::default());
        let (taker, giver) = (Arc::clone(&shared), Arc::clone(&shared));
        thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || taker.take_from(reader))?;
        thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || giver.give_to(log))?;
        Ok((Self { shared }, writer))
    }

    /// Count and tail of what the body has written so far.
    pub(super) fn record(&self) -> StreamRecord {
        self.shared.lock().tail.to_record()
    }

    /// Stops waiting for the log, and waits until every writer has closed the stream; `false` if one still had not at `deadline`.
    pub(super) fn await_end(&self, deadline: Instant) -> bool {
        let mut state = self.shared.lock();
        state.unbounded = true;
        self.shared.changed.notify_all();
        while !state.ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Why the log no longer takes anything, if so.
    pub(super) fn failure(&self) -> Option<io::ErrorKind> {
        self.shared.lock().failure
    }

    /// Waits until the log has everything that was taken, however long the log takes.
    pub(super) fn await_delivery(&self) {
        let mut state = self.shared.lock();
        // A stream that a survivor still holds open never ends; what it had written until now is what counts.
        state.ended = true;
        self.shared.changed.notify_all();
        while !state.delivered {
            state = self
                .shared
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_from(&self, mut pipe: PipeReader) {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => self.push(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.lock().ended = true;
        self.changed.notify_all();
    }

    fn push(&self, bytes: &[u8]) {
        let mut state = self.lock();
        state.tail.push(bytes);
        while state.queue.len() >= QUEUE_BYTES && !state.unbounded {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.queue.extend_from_slice(bytes);
        self.changed.notify_all();
    }

    fn give_to(&self, mut log: File) {
        let mut batch = Vec::new();
        loop {
            let mut state = self.lock();
            while state.queue.is_empty() && !state.ended {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.queue.is_empty() {
                state.delivered = true;
                self.changed.notify_all();
                return;
            }
            std::mem::swap(&mut batch, &mut state.queue);
            let broken = state.failure.is_some();
            drop(state);
            self.changed.notify_all();
            // A log that is gone must not stop the body: the rest is counted and let go.
            if !broken && let Err(error) = write_whole(&mut log, &batch) {
                self.lock().failure = Some(error.kind());
            }
            batch.clear();
        }
    }
}

/// Like `write_all`, but also for a log that somebody else has made non-blocking: the flag belongs to the open file, not to us.
fn write_whole(log: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match log.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(&*log, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
