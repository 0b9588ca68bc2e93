//! Reading a bundle whose digest is known beforehand.

use std::io::{self, Read};

use codeworkspace_bundle::{BundlePath, BundleReader, Caps, Entry, ReadError};
use thiserror::Error;

use crate::volume::VolumeError;

/// What fits was decided, by the operator's configuration, when the bundle was made.
const UNLIMITED: Caps = Caps {
    entries: u64::MAX,
    file_bytes: u64::MAX,
    total_bytes: u64::MAX,
};

/// Why a bundle was not unpacked.
#[derive(Debug, Error)]
pub(crate) enum UnpackError {
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
}

/// Reads the whole bundle, hands out its entries, and compares its digest with the one that was promised.
pub(crate) fn verify(
    bundle: impl Read,
    path: &str,
    expected: &str,
    mut take: impl FnMut(&BundlePath, &Entry) -> Result<(), VolumeError>,
) -> Result<(), UnpackError> {
    let unreadable = |error: ReadError| UnpackError::Read {
        path: path.to_owned(),
        error,
    };
    let mut reader = BundleReader::with_caps(bundle, UNLIMITED).map_err(unreadable)?;
    for item in reader.by_ref() {
        let (path, entry) = item.map_err(unreadable)?;
        take(&path, &entry)?;
    }
    let found = reader.finish().map_err(unreadable)?.to_string();
    if found == expected {
        Ok(())
    } else {
        Err(UnpackError::DigestMismatch {
            path: path.to_owned(),
            found,
            expected: expected.to_owned(),
        })
    }
}
