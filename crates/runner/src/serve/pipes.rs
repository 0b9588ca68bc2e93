//! What children write, read by threads: a pipe must never fill up, whatever else goes on.

use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::thread;

use tokio::sync::oneshot;

/// Bytes read at once; Linux pipes hold as much.
const CHUNK_BYTES: usize = 64 * 1024;
/// The threads copy through heap buffers and call nothing deep.
const STACK_BYTES: usize = 256 * 1024;

/// The end that a child writes to. `take` gets every byte; the receiver is told when the last writer has closed it.
pub(super) fn read_by_thread(
    mut take: impl FnMut(&[u8]) + Send + 'static,
) -> io::Result<(PipeWriter, oneshot::Receiver<()>)> {
    let (reader, writer) = io::pipe()?;
    let (sender, ended) = oneshot::channel();
    thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        read(reader, &mut take);
        // Nobody may be interested any more.
        let _ = sender.send(());
    })?;
    Ok((writer, ended))
}

fn read(mut pipe: PipeReader, take: &mut impl FnMut(&[u8])) {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match pipe.read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => take(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
