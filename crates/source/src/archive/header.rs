//! One header block, read strictly.

use super::ArchiveError;

/// What an entry is, of the few things that `git archive` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    File,
    Link,
    Folder,
}

/// What a header announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Content(ContentKind),
    /// Records for the next entry.
    Extended,
    /// Records for all entries.
    Global,
}

/// The fields that matter; owner, group and time do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) path: Vec<u8>,
    pub(super) link: Vec<u8>,
    pub(super) size: u64,
    /// The owner's executable bit, which is all that git stores.
    pub(super) executable: bool,
}

/// The ustar magic and version (POSIX.1-1988). GNU's own format has other bytes here.
const MAGIC: (&[u8], &[u8]) = (b"ustar\0", b"00");
const OWNER_EXECUTES: u64 = 0o100;

impl Header {
    pub(super) fn parse(header: &tar::Header) -> Result<Self, ArchiveError> {
        let Some(fields) = header.as_ustar() else {
            return Err(ArchiveError::refused("a header is not in the ustar format"));
        };
        let name = text(&fields.name)?;
        let prefix = text(&fields.prefix)?;
        let path = if prefix.is_empty() {
            name.to_vec()
        } else {
            [prefix, b"/", name].concat()
        };
        let kind = match fields.typeflag {
            [b'0'] => Kind::Content(ContentKind::File),
            [b'2'] => Kind::Content(ContentKind::Link),
            [b'5'] => Kind::Content(ContentKind::Folder),
            [b'x'] => Kind::Extended,
            [b'g'] => Kind::Global,
            [other] => return Err(ArchiveError::entry(&path, &format!("is {}", describe(other)))),
        };
        if (&fields.magic[..], &fields.version[..]) != MAGIC {
            return Err(ArchiveError::entry(&path, "is not in the ustar format"));
        }
        let number = |field: &[u8], what: &str| {
            octal(field).ok_or_else(|| ArchiveError::entry(&path, &format!("has a malformed {what}")))
        };
        Ok(Self {
            kind,
            link: text(&fields.linkname)?.to_vec(),
            size: number(&fields.size, "size")?,
            executable: number(&fields.mode, "mode")? & OWNER_EXECUTES != 0,
            path,
        })
    }
}

fn describe(kind: u8) -> String {
    match kind {
        b'1' => "a hard link, which is never read".to_owned(),
        b'3' | b'4' => "a device, which is never read".to_owned(),
        b'6' => "a named pipe, which is never read".to_owned(),
        b'S' => "a sparse file, which is never read".to_owned(),
        b'L' | b'K' => "a long name of the GNU format, which is never read".to_owned(),
        other => format!("of the unknown type {:?}", char::from(other)),
    }
}

/// A text field: everything behind the first NUL must be NUL as well, or readers would differ about it.
fn text(field: &[u8]) -> Result<&[u8], ArchiveError> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let (text, rest) = field.split_at(end);
    if rest.iter().all(|byte| *byte == 0) {
        Ok(text)
    } else {
        Err(ArchiveError::entry(text, "has a NUL in its name"))
    }
}

/// Octal digits, then only NUL or space. No sign, no other base.
fn octal(field: &[u8]) -> Option<u64> {
    let end = field
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(field.len());
    let (digits, rest) = field.split_at(end);
    if !rest.iter().all(|byte| matches!(byte, 0 | b' ')) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}
