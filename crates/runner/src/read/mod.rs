//! `runner read`: sends the files of a volume to whoever is attached to the container, and how that went.
//!
//! Nothing in the volume is trusted: see [`walk`]. Whoever reads the stream checks it all again.

mod walk;

use std::io::{self, BufRead as _, BufWriter, Read as _};
use std::process::ExitCode;

use codeworkspace_bundle::{BundleSizeError, BundleWriter, Caps, WriteError};
use codeworkspace_protocol::{
    BEGIN, FailedReading, FinishedReading, ReadArguments, ReadFailure, ReadReport, ReadingWriter,
};

use walk::Walk;

/// Why a reading ends early.
enum Stop {
    /// The volume has something that cannot be sent.
    Failed(FailedReading),
    /// Nobody takes what is sent any more.
    Unheard(io::Error),
}

impl Stop {
    fn failed(reason: ReadFailure, message: impl Into<String>) -> Self {
        Self::Failed(FailedReading {
            reason,
            message: message.into(),
        })
    }
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Self {
        let reason = match error {
            WriteError::Write(error) => return Self::Unheard(error),
            WriteError::Size(_) => ReadFailure::TooLarge,
            WriteError::Link(_) => ReadFailure::Refused,
            // The order of a walk is that of its names, unless they changed.
            WriteError::Length { .. } | WriteError::Order { .. } => ReadFailure::Changed,
            WriteError::Contents { .. } => ReadFailure::Unreadable,
        };
        Self::failed(reason, error.to_string())
    }
}

impl From<BundleSizeError> for Stop {
    fn from(error: BundleSizeError) -> Self {
        WriteError::from(error).into()
    }
}

/// Waits until somebody is attached, reads, and reports.
pub(crate) fn read(arguments: &ReadArguments) -> ExitCode {
    match attached(arguments) {
        Ok(ReadReport::Finished(_)) => ExitCode::SUCCESS,
        Ok(ReadReport::Failed(failed)) => {
            eprintln!("runner: {}", failed.message);
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("runner: the files cannot be sent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn attached(arguments: &ReadArguments) -> io::Result<ReadReport> {
    let mut input = io::stdin().lock();
    let mut begin = Vec::new();
    input
        .by_ref()
        .take(BEGIN.len() as u64)
        .read_until(b'\n', &mut begin)?;
    if begin != BEGIN {
        return Err(io::Error::other("nobody asked for them"));
    }
    let mut stream = ReadingWriter::begin(BufWriter::new(io::stdout().lock()))?;
    let report = match send(arguments, &mut stream) {
        Ok(finished) => ReadReport::Finished(finished),
        Err(Stop::Failed(failed)) => ReadReport::Failed(failed),
        Err(Stop::Unheard(error)) => return Err(error),
    };
    stream.end(&report)?;
    // The container's end could overtake what it has written. Its input ends when all of that has arrived.
    io::copy(&mut input, &mut io::sink())?;
    Ok(report)
}

fn send(
    arguments: &ReadArguments,
    stream: &mut ReadingWriter<impl io::Write>,
) -> Result<FinishedReading, Stop> {
    let caps = Caps {
        entries: arguments.max_entries,
        file_bytes: arguments.max_file_bytes,
        total_bytes: arguments.max_total_bytes,
    };
    let mut walk = Walk::new(BundleWriter::new(stream, caps), arguments);
    walk.volume(&arguments.folder, arguments.below.as_deref())?;
    walk.finish()
}
