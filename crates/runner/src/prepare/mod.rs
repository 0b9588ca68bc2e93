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

use std::io;
use std::path::Path;
use std::process::ExitCode;

use codeworkspace_bundle::{BundlePath, Entry};
use codeworkspace_protocol::{Cause, PrepareArguments, RunRecord};
use fs_err::File;
use rustix::fs::Mode;
use rustix::process::umask;
use thiserror::Error;

use crate::clock::now;
use crate::install::install;
use crate::record_file::tell_failure;
use crate::unpack::{self, UnpackError};
use crate::volume::{Volume, VolumeError};

#[derive(Debug, Error)]
enum PrepareError {
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    #[error("the runner cannot be installed: {0}")]
    Install(io::Error),
}

impl PrepareError {
    fn cause(&self) -> Cause {
        match self {
            Self::Unpack(UnpackError::DigestMismatch { .. }) => Cause::DigestMismatch,
            Self::Unpack(_) => Cause::UnpackFailed,
            Self::Install(_) => Cause::InstallFailed,
        }
    }
}

impl From<VolumeError> for PrepareError {
    fn from(error: VolumeError) -> Self {
        Self::Unpack(error.into())
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
    tell_failure(
        record,
        error.cause(),
        error.to_string(),
        &arguments.termination_log,
    );
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
        return Err(error.into());
    }
    install(Path::new(&arguments.install)).map_err(PrepareError::Install)
}

fn verify(
    arguments: &PrepareArguments,
    take: impl FnMut(&BundlePath, &Entry) -> Result<(), VolumeError>,
) -> Result<(), UnpackError> {
    let bundle = File::open(&arguments.bundle)?;
    unpack::verify(bundle, &arguments.bundle, &arguments.digest, take)
}
