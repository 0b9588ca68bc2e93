//! `runner prepare`: the init container. When it ends well, the bundle's files and the runner are where the body's container
//! expects them, and nothing else is.
//!
//! The bundle is read twice: first only to compare its digest, so that nothing of a wrong bundle is ever written, then to
//! unpack it. Unpacking beside the target and moving afterwards would read once, but needs twice the room in the volume and is not atomic
//! either, since a bundle has many entries; what makes it complete is that the body's container starts only after this one
//! succeeded. The second reading is compared as well, in case the file changed in between.
//!
//! The target is emptied first, always: a pod whose sandbox was lost prepares again in a volume that a former attempt, or a
//! former body, has written to.

mod install;
mod volume;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use codeworkspace_bundle::{BundlePath, BundleReader, Caps, Entry, ReadError};
use codeworkspace_protocol::{Cause, PrepareArguments, RunRecord};
use fs_err::File;
use rustix::fs::Mode;
use rustix::process::umask;
use thiserror::Error;

use crate::clock::now;
use crate::record_file::RecordFile;
use volume::{Volume, VolumeError};

/// What fits was decided, by the operator's configuration, when the bundle was made.
const UNLIMITED: Caps = Caps {
    entries: u64::MAX,
    file_bytes: u64::MAX,
    total_bytes: u64::MAX,
};

#[derive(Debug, Error)]
enum PrepareError {
    #[error("the bundle cannot be opened: {0}")]
    Open(#[from] io::Error),
    #[error(
        "{path}: {error}; the bundle was replaced or damaged on its way, or another version of the operator made it"
    )]
    Read { path: String, error: ReadError },
    #[error(
        "the bundle {path} has the digest {found}, but this pod was made for {expected}; it was replaced or damaged on its way \
         and is not unpacked"
    )]
    DigestMismatch {
        path: String,
        found: String,
        expected: String,
    },
    #[error(transparent)]
    Volume(#[from] VolumeError),
    #[error("the runner cannot be installed: {0}")]
    Install(io::Error),
}

impl PrepareError {
    fn cause(&self) -> Cause {
        match self {
            Self::Open(_) | Self::Read { .. } | Self::Volume(_) => Cause::UnpackFailed,
            Self::DigestMismatch { .. } => Cause::DigestMismatch,
            Self::Install(_) => Cause::InstallFailed,
        }
    }
}

/// Prepares the volumes, and says in the termination log why that failed.
pub(crate) fn prepare(arguments: &PrepareArguments) -> ExitCode {
    let record = RunRecord::running(now());
    // Modes are given exactly; an image's umask must not change them.
    umask(Mode::empty());
    let Err(error) = fill(arguments) else {
        return ExitCode::SUCCESS;
    };
    eprintln!("runner: {error}");
    let mut record = record.finished(now(), error.cause());
    record.message = Some(error.to_string());
    if let Err(error) = RecordFile::open(&arguments.termination_log).and_then(|file| file.write(&record)) {
        eprintln!("runner: the reason cannot be recorded: {error}");
    }
    ExitCode::FAILURE
}

fn fill(arguments: &PrepareArguments) -> Result<(), PrepareError> {
    let mut volume = Volume::open(Path::new(&arguments.target))?;
    // Before anything can go wrong: what an earlier attempt left must not outlive a failure of this one.
    volume.clear()?;
    verify(arguments, |_, _| Ok(()))?;
    if let Err(error) = verify(arguments, |path, entry| volume.write(path, entry)) {
        // The first error is the one to report; the next attempt empties the volume as well.
        let _ = volume.clear();
        return Err(error);
    }
    install::install(Path::new(&arguments.install)).map_err(PrepareError::Install)
}

/// Reads the whole bundle, hands out its entries, and compares its digest with the one that the pod was made for.
fn verify(
    arguments: &PrepareArguments,
    mut take: impl FnMut(&BundlePath, &Entry) -> Result<(), VolumeError>,
) -> Result<(), PrepareError> {
    let unreadable = |error: ReadError| PrepareError::Read {
        path: arguments.bundle.clone(),
        error,
    };
    let bundle = File::open(&arguments.bundle)?;
    let mut reader = BundleReader::with_caps(bundle, UNLIMITED).map_err(unreadable)?;
    for item in reader.by_ref() {
        let (path, entry) = item.map_err(unreadable)?;
        take(&path, &entry)?;
    }
    let found = reader.finish().map_err(unreadable)?.to_string();
    if found == arguments.digest {
        Ok(())
    } else {
        Err(PrepareError::DigestMismatch {
            path: arguments.bundle.clone(),
            found,
            expected: arguments.digest.clone(),
        })
    }
}
