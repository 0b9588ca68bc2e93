//! What the kernel says about files, in the protocol's terms.

use codeworkspace_protocol::session::{ErrorCode, SessionError};
use rustix::io::Errno;

use super::path::SessionPath;

/// The error of a call about `path`; the root when there is none.
pub(super) fn fault(path: Option<&SessionPath>, error: Errno) -> SessionError {
    let path = path.map_or("the session's root", SessionPath::as_str);
    let (code, message) = match error {
        Errno::NOENT => (ErrorCode::NotFound, format!("`{path}` does not exist")),
        Errno::NOTDIR => (
            ErrorCode::WrongKind,
            format!("`{path}`: something that is no folder stands on its way"),
        ),
        Errno::ISDIR => (ErrorCode::WrongKind, format!("`{path}` is a folder")),
        Errno::XDEV => (
            ErrorCode::InvalidPath,
            format!("`{path}` leads out of the session's root through a link"),
        ),
        Errno::LOOP => (
            ErrorCode::InvalidPath,
            format!("`{path}` goes through a link that cannot be followed"),
        ),
        Errno::NAMETOOLONG => (ErrorCode::InvalidPath, format!("`{path}` is too long")),
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => (
            ErrorCode::NoSpace,
            format!("there is no room for `{path}` in the session's volume"),
        ),
        Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::BUSY => {
            (ErrorCode::InvalidRequest, format!("`{path}`: {error}"))
        }
        error => (ErrorCode::Internal, format!("`{path}`: {error}")),
    };
    SessionError::new(code, message)
}

/// The same for errors that come as `std::io` has them.
pub(super) fn io_fault(path: &SessionPath, error: &std::io::Error) -> SessionError {
    fault(Some(path), Errno::from_io_error(error).unwrap_or(Errno::IO))
}
