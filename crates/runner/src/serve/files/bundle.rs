//! The session's bundle, which comes after the pod was claimed.

use std::io::{self, Read, Seek as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;

use codeworkspace_protocol::session::{ErrorCode, SessionError};

use rustix::io::Errno;

use super::fault::fault;
use super::jail::Root;
use super::path::SessionPath;
use super::stage::{Before, Journal, Stage, rename_to_new};
use crate::unpack::{UnpackError, verify};
use crate::volume::{Volume, VolumeError, names};

/// Unpacks the bundle of this digest into the root: whole, or not at all.
pub(in crate::serve) fn unpack(
    root: &Arc<Root>,
    digest: &str,
    mut bundle: impl Read,
) -> Result<(), SessionError> {
    let own = |error| fault(None, error);
    let mut stage = Stage::open(root).map_err(own)?;
    let (_, mut file) = stage.file(false).map_err(own)?;
    let copied = io::copy(&mut bundle, &mut file).and_then(|_| file.rewind());
    copied.map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorCode::NoSpace,
            _ => ErrorCode::InvalidRequest,
        };
        SessionError::new(code, format!("the bundle cannot be taken: {error}"))
    })?;
    // First only read, so that nothing of a wrong bundle is ever written.
    verify(&file, "that was sent", digest, |_, _| Ok(())).map_err(|error| refuse(&error))?;
    file.rewind().map_err(|error| internal(&error))?;
    let folder = stage.folder().map_err(own)?;
    let mut volume = Volume::within(
        folder.try_clone().map_err(|error| internal(&error))?,
        Path::new("the session"),
    );
    verify(&file, "that was sent", digest, |path, entry| {
        volume.write(path, entry)
    })
    .map_err(|error| refuse(&error))?;
    let mut journal = Journal::default();
    for name in names(folder.as_fd()).map_err(own)? {
        let name = name.to_string_lossy().into_owned();
        let path = SessionPath::parse_inner(&name)?;
        match rename_to_new(folder.as_fd(), &name, root.as_fd(), &name) {
            Ok(()) => journal.placed(path, Before::Nothing),
            Err(Errno::EXIST) => {
                journal.undo(&mut stage);
                let message = format!("the bundle's `{path}` stands in the session's root already");
                return Err(SessionError::new(ErrorCode::WrongKind, message));
            }
            Err(error) => {
                journal.undo(&mut stage);
                return Err(fault(Some(&path), error));
            }
        }
    }
    Ok(())
}

fn refuse(error: &UnpackError) -> SessionError {
    let code = match error {
        UnpackError::Read { .. } | UnpackError::DigestMismatch { .. } => ErrorCode::DigestMismatch,
        UnpackError::Volume(VolumeError::Full { .. }) => ErrorCode::NoSpace,
        UnpackError::Open(_) | UnpackError::Volume(_) => ErrorCode::Internal,
    };
    SessionError::new(code, error.to_string())
}

fn internal(error: &io::Error) -> SessionError {
    SessionError::new(ErrorCode::Internal, error.to_string())
}
