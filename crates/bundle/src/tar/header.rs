//! Headers: the blocks before an entry's contents.

use std::ops::Range;

use crate::quote::Quoted;

/// Everything in a tar comes in blocks of this many bytes.
pub(crate) const BLOCK: usize = 512;

const NAME: Range<usize> = 0..100;
const MODE: Range<usize> = 100..108;
const USER: Range<usize> = 108..116;
const GROUP: Range<usize> = 116..124;
const SIZE: Range<usize> = 124..136;
const TIME: Range<usize> = 136..148;
const CHECKSUM: Range<usize> = 148..156;
const TYPE: usize = 156;
const LINK: Range<usize> = 157..257;
const MAGIC: Range<usize> = 257..265;
const DEVICE: [Range<usize>; 2] = [329..337, 337..345];
const PREFIX: Range<usize> = 345..500;

const FILE: u8 = b'0';
const SYMBOLIC_LINK: u8 = b'2';
const EXTENSION: u8 = b'x';

const PLAIN: u64 = 0o644;
const EXECUTABLE: u64 = 0o755;
/// What Linux says of every link. It means nothing, but with it GNU tar can be made to write the same bytes.
const ANY: u64 = 0o777;

/// The largest size that eleven octal digits hold.
const LARGEST_OCTAL_SIZE: u64 = 0o777_7777_7777;
/// Three records are always shorter: two with at most 1,024 bytes each, and a size.
const LONGEST_EXTENSION: usize = 4_096;

/// What a header says about its entry, but for the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Member {
    File { bytes: u64, executable: bool },
    Link { target: String },
}

/// The one header of this format for an entry: a `ustar` block, after a `pax` header if something does not fit into it.
pub(crate) fn encode(path: &str, member: &Member) -> Vec<u8> {
    let (kind, mode, size, target) = match member {
        Member::File {
            executable: false,
            bytes,
        } => (FILE, PLAIN, *bytes, ""),
        Member::File {
            executable: true,
            bytes,
        } => (FILE, EXECUTABLE, *bytes, ""),
        Member::Link { target } => (SYMBOLIC_LINK, ANY, 0, target.as_str()),
    };
    let mut extension = Vec::new();
    let link = &target[..target.floor_char_boundary(LINK.len())];
    if link.len() < target.len() {
        extension.extend(record("linkpath", target));
    }
    let (prefix, name) = split(path).unwrap_or_else(|| {
        extension.extend(record("path", path));
        let name = path.rsplit('/').next().unwrap_or_default();
        ("", &name[..name.floor_char_boundary(NAME.len())])
    });
    let header_size = if size > LARGEST_OCTAL_SIZE {
        extension.extend(record("size", &size.to_string()));
        0
    } else {
        size
    };

    let mut header = Vec::with_capacity(BLOCK);
    if !extension.is_empty() {
        header.extend(
            Block::new(EXTENSION, PLAIN, extension.len() as u64)
                .text(&NAME, "././@PaxHeader")
                .seal(),
        );
        header.append(&mut extension);
        header.resize(header.len().next_multiple_of(BLOCK), 0);
    }
    let block = Block::new(kind, mode, header_size)
        .text(&NAME, name)
        .text(&PREFIX, prefix)
        .text(&LINK, link);
    header.extend(block.seal());
    header
}

/// Splits a path over the two fields that `ustar` has for it; `None` if it fits in no way.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= NAME.len() {
        return Some(("", path));
    }
    let (prefix, name) = path
        .match_indices('/')
        .map(|(at, _)| (&path[..at], &path[at + 1..]))
        .find(|(_, name)| name.len() <= NAME.len())?;
    (prefix.len() <= PREFIX.len()).then_some((prefix, name))
}

/// A record of a `pax` header: its own length, a key and a value.
fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    // The length counts its own digits, which may make it one digit longer.
    let mut length = rest.len();
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}").into_bytes()
}

struct Block([u8; BLOCK]);

impl Block {
    fn new(kind: u8, mode: u64, size: u64) -> Self {
        let mut block = Self([0; BLOCK])
            .text(&MAGIC, "ustar\x0000")
            .octal(&MODE, mode)
            .octal(&SIZE, size);
        block.0[TYPE] = kind;
        [USER, GROUP, TIME]
            .iter()
            .chain(&DEVICE)
            .fold(block, |block, field| block.octal(field, 0))
    }

    fn text(mut self, field: &Range<usize>, text: &str) -> Self {
        for (place, byte) in self.0[field.clone()].iter_mut().zip(text.bytes()) {
            *place = byte;
        }
        self
    }

    /// Octal digits that leave the last byte of the field zero.
    fn octal(self, field: &Range<usize>, value: u64) -> Self {
        self.text(field, &format!("{value:0digits$o}", digits = field.len() - 1))
    }

    fn seal(self) -> [u8; BLOCK] {
        let sum = checksum(&self.0);
        self.text(&CHECKSUM, &format!("{sum:06o}\0 ")).0
    }
}

/// The sum of all bytes, those of the checksum itself taken as spaces.
fn checksum(block: &[u8; BLOCK]) -> u64 {
    let sum: u64 = block.iter().copied().map(u64::from).sum();
    let own: u64 = block[CHECKSUM].iter().copied().map(u64::from).sum();
    sum - own + CHECKSUM.len() as u64 * u64::from(b' ')
}

/// Why a header is not one of this format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The bytes were changed, or are no header at all.
    #[error("has a wrong checksum")]
    Checksum,
    /// A folder, hard link, device, sparse file or whatever else tar knows.
    #[error("has the type {}; a bundle has only files (`0`) and links (`2`)", Quoted(&char::from(*.0).to_string()))]
    Type(u8),
    /// Anything but 0644 and 0755.
    #[error("has the mode {0:04o}; a bundle has only 0644 and 0755")]
    Mode(u64),
    /// A number field that holds no octal number.
    #[error("has a field that should be an octal number and is not")]
    Number,
    /// A name in an encoding that a bundle has not.
    #[error("has a name that is not UTF-8")]
    Encoding,
    /// A malformed or oversized `pax` header.
    #[error("has a malformed pax header")]
    Extension,
    /// A `pax` record other than `path`, `linkpath` and `size`.
    #[error("has a pax record {}; a bundle has only `path`, `linkpath` and `size`", Quoted(.0))]
    UnknownRecord(String),
    /// Legal tar perhaps, but with something in it that a bundle never has: an owner, a time, a needless `pax` header.
    #[error("is not written in the way in which bundles are written")]
    Dialect,
}

/// How many bytes belong to the header after its first block; 0 without a `pax` header.
pub(crate) fn extension_bytes(first: &[u8; BLOCK]) -> Result<usize, HeaderError> {
    if first[TYPE] != EXTENSION {
        return Ok(0);
    }
    match usize::try_from(octal(&first[SIZE])?) {
        Ok(bytes @ 1..=LONGEST_EXTENSION) => Ok(bytes.next_multiple_of(BLOCK) + BLOCK),
        _ => Err(HeaderError::Extension),
    }
}

/// Reads a header and refuses it unless [`encode`] would have written these very bytes.
///
/// That comparison is the whole check for owners, times, reserved fields, padding, order and need of records. The errors
/// before it only say more exactly what is wrong in the cases that occur in archives of other tools.
pub(crate) fn decode(header: &[u8]) -> Result<(String, Member), HeaderError> {
    let (extension, block) = header.split_last_chunk::<BLOCK>().ok_or(HeaderError::Dialect)?;
    if octal(&block[CHECKSUM])? != checksum(block) {
        return Err(HeaderError::Checksum);
    }
    let records = Records::parse(extension)?;
    let path = match (records.path, text(&block[PREFIX])?, text(&block[NAME])?) {
        (Some(path), _, _) | (None, "", path) => path.to_owned(),
        (None, prefix, name) => format!("{prefix}/{name}"),
    };
    let bytes = records.size.map_or_else(|| octal(&block[SIZE]), Ok)?;
    let member = match block[TYPE] {
        FILE => match octal(&block[MODE])? {
            PLAIN => Member::File {
                bytes,
                executable: false,
            },
            EXECUTABLE => Member::File {
                bytes,
                executable: true,
            },
            other => return Err(HeaderError::Mode(other)),
        },
        SYMBOLIC_LINK => {
            let target = records.target.map_or_else(|| text(&block[LINK]), Ok)?;
            Member::Link {
                target: target.to_owned(),
            }
        }
        other => return Err(HeaderError::Type(other)),
    };
    if encode(&path, &member) == header {
        Ok((path, member))
    } else {
        Err(HeaderError::Dialect)
    }
}

/// The records of a `pax` header.
#[derive(Default)]
struct Records<'a> {
    path: Option<&'a str>,
    target: Option<&'a str>,
    size: Option<u64>,
}

impl<'a> Records<'a> {
    fn parse(extension: &'a [u8]) -> Result<Self, HeaderError> {
        let mut records = Self::default();
        let Some((block, data)) = extension.split_first_chunk::<BLOCK>() else {
            return Ok(records);
        };
        let length = usize::try_from(octal(&block[SIZE])?).map_err(|_| HeaderError::Extension)?;
        let mut data = data.get(..length).ok_or(HeaderError::Extension)?;
        while !data.is_empty() {
            let (key, value, rest) = first_record(data).ok_or(HeaderError::Extension)?;
            let value = str::from_utf8(value).map_err(|_| HeaderError::Encoding)?;
            match key {
                b"path" => records.path = Some(value),
                b"linkpath" => records.target = Some(value),
                b"size" => records.size = Some(value.parse().map_err(|_| HeaderError::Number)?),
                other => {
                    return Err(HeaderError::UnknownRecord(
                        String::from_utf8_lossy(other).into_owned(),
                    ));
                }
            }
            data = rest;
        }
        Ok(records)
    }
}

/// Takes the first `LENGTH KEY=VALUE\n` off the data.
fn first_record(data: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = data.iter().position(|byte| *byte == b' ')?;
    let length: usize = str::from_utf8(&data[..space]).ok()?.parse().ok()?;
    let (record, rest) = data.split_at_checked(length)?;
    let body = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    Some((&body[..equals], &body[equals + 1..], rest))
}

/// The text of a field up to the first zero byte.
fn text(field: &[u8]) -> Result<&str, HeaderError> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    str::from_utf8(&field[..end]).map_err(|_| HeaderError::Encoding)
}

/// The number in a field of octal digits, with zeros and spaces after it.
fn octal(field: &[u8]) -> Result<u64, HeaderError> {
    let digits = str::from_utf8(field)
        .map_err(|_| HeaderError::Number)?
        .trim_end_matches(['\0', ' ']);
    u64::from_str_radix(digits, 8).map_err(|_| HeaderError::Number)
}

#[cfg(test)]
mod tests;
