//! Reading a bundle back, and refusing everything that is not exactly one.

use std::{
    collections::HashSet,
    io::{self, BufRead, BufReader, Chain, Read},
};

use bytes::Bytes;
use flate2::bufread::GzDecoder;

use crate::{
    caps::{BundleSizeError, Caps, Count},
    digest::{Digest, Hasher},
    gzip,
    link::{LinkError, link_destination},
    path::{BundlePath, PathError},
    tar::{self, BLOCK, END, HeaderError, Member},
    tree::Entry,
};

/// Reads the entries of a compressed bundle, in the order in which they stand in it.
///
/// It accepts what [`Bundle::build`](crate::Bundle::build) writes and nothing else, so that no tool that unpacks the same
/// bytes can come to another result. Whoever unpacks while reading must undo that on an error, and must compare the
/// digest that [`finish`](Self::finish) returns: a well-formed bundle may still be another one than was asked for.
#[derive(Debug)]
pub struct BundleReader<R> {
    tar: GzDecoder<Chain<&'static [u8], BufReader<R>>>,
    hasher: Hasher,
    count: Count,
    seen: HashSet<BundlePath>,
    previous: Option<BundlePath>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Entries,
    End,
    Failed,
}

/// Why bytes are no bundle.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The stream could not be read, or its compressed data is damaged.
    #[error("the bundle can't be read: {0}")]
    Io(#[source] io::Error),
    /// The stream ends too early.
    #[error("the bundle is cut short")]
    Truncated,
    /// The stream does not begin like a bundle.
    #[error("this is no bundle: it does not begin with a bundle's gzip header")]
    Gzip,
    /// Something follows the end of the archive.
    #[error("something follows the end of the bundle")]
    TrailingData,
    /// A header that a bundle does not have.
    #[error("entry {number} {error}")]
    Header {
        /// The entry's place in the bundle, from 1.
        number: u64,
        /// What is wrong with its header.
        error: HeaderError,
    },
    /// A path that a bundle does not have.
    #[error("entry {number}: {error}")]
    Path {
        /// The entry's place in the bundle, from 1.
        number: u64,
        /// What is wrong with its path.
        error: PathError,
    },
    /// A path that does not come after the one before it, or is there twice.
    #[error("`{path}` does not come after `{previous}`: a bundle is sorted by path, without repetitions")]
    Order {
        /// The path.
        path: BundlePath,
        /// The one before.
        previous: BundlePath,
    },
    /// A path below a file or link.
    #[error("`{path}` lies below `{entry}`, which is not a folder")]
    BelowEntry {
        /// The path.
        path: BundlePath,
        /// The file or link above it.
        entry: String,
    },
    /// A link that leaves the bundle.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Bytes other than zero where a file's last block is filled up.
    #[error("`{0}` is not filled up with zeros")]
    Padding(BundlePath),
    /// Larger than allowed.
    #[error(transparent)]
    Size(#[from] BundleSizeError),
    /// [`BundleReader::finish`] was called after an error.
    #[error("the bundle was not read to its end, because of an earlier error")]
    Failed,
}

/// A stream that ends where more is due is the most common fault, so it has a name of its own.
impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            Self::Truncated
        } else {
            Self::Io(error)
        }
    }
}

impl<R: Read> BundleReader<R> {
    /// Begins to read a bundle of at most the default size.
    pub fn new(compressed: R) -> Result<Self, ReadError> {
        Self::with_caps(compressed, Caps::default())
    }

    /// Begins to read a bundle of at most the given size.
    pub fn with_caps(compressed: R, caps: Caps) -> Result<Self, ReadError> {
        let mut compressed = BufReader::new(compressed);
        let mut header = [0; gzip::HEADER.len()];
        compressed.read_exact(&mut header)?;
        if header != gzip::HEADER {
            return Err(ReadError::Gzip);
        }
        Ok(Self {
            tar: GzDecoder::new(gzip::HEADER.as_slice().chain(compressed)),
            hasher: Hasher::default(),
            count: Count::new(caps),
            seen: HashSet::new(),
            previous: None,
            state: State::Entries,
        })
    }

    /// Reads what is left and returns the digest of the whole.
    pub fn finish(mut self) -> Result<Digest, ReadError> {
        self.by_ref().find_map(Result::err).map_or(Ok(()), Err)?;
        match self.state {
            State::End => Ok(self.hasher.finish()),
            State::Entries | State::Failed => Err(ReadError::Failed),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.tar.read_exact(buffer)?;
        self.hasher.update(buffer);
        Ok(())
    }

    fn next_entry(&mut self) -> Result<Option<(BundlePath, Entry)>, ReadError> {
        let mut first = [0; BLOCK];
        self.read(&mut first)?;
        if first == END[..BLOCK] {
            self.read_end()?;
            return Ok(None);
        }
        self.count.add_entries(1)?;
        let number = self.count.entries();
        let extension = tar::extension_bytes(&first).map_err(|error| ReadError::Header { number, error })?;
        let mut header = first.to_vec();
        header.resize(BLOCK + extension, 0);
        self.read(&mut header[BLOCK..])?;
        let (path, member) = tar::decode(&header).map_err(|error| ReadError::Header { number, error })?;
        let path = path.parse().map_err(|error| ReadError::Path { number, error })?;
        self.check_place(&path)?;
        let entry = match member {
            Member::File { bytes, executable } => Entry::File {
                contents: self.read_contents(&path, bytes)?,
                executable,
            },
            Member::Link { target } => {
                link_destination(&path, &target)?;
                Entry::Link { target }
            }
        };
        self.seen.insert(path.clone());
        self.previous = Some(path.clone());
        Ok(Some((path, entry)))
    }

    fn check_place(&self, path: &BundlePath) -> Result<(), ReadError> {
        match &self.previous {
            Some(previous) if previous >= path => {
                return Err(ReadError::Order {
                    path: path.clone(),
                    previous: previous.clone(),
                });
            }
            _ => {}
        }
        match path.folders().find(|folder| self.seen.contains(*folder)) {
            Some(entry) => Err(ReadError::BelowEntry {
                path: path.clone(),
                entry: entry.to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn read_contents(&mut self, path: &BundlePath, bytes: u64) -> Result<Bytes, ReadError> {
        self.count.check_file(path, bytes)?;
        self.count.add_bytes(bytes)?;
        let mut contents = Vec::new();
        self.tar.by_ref().take(bytes).read_to_end(&mut contents)?;
        if contents.len() as u64 != bytes {
            return Err(ReadError::Truncated);
        }
        self.hasher.update(&contents);
        let mut padding = [0; BLOCK];
        let padding = &mut padding[..tar::padding(contents.len())];
        self.read(padding)?;
        if padding.iter().any(|byte| *byte != 0) {
            return Err(ReadError::Padding(path.clone()));
        }
        Ok(contents.into())
    }

    /// Reads the second zero block, and makes sure that both the archive and the compressed stream end there.
    fn read_end(&mut self) -> Result<(), ReadError> {
        let mut second = [0; BLOCK];
        self.read(&mut second)?;
        let ends = second == END[..BLOCK] && self.tar.read(&mut [0])? == 0;
        if ends && self.tar.get_mut().fill_buf()?.is_empty() {
            Ok(())
        } else {
            Err(ReadError::TrailingData)
        }
    }
}

impl<R: Read> Iterator for BundleReader<R> {
    type Item = Result<(BundlePath, Entry), ReadError>;

    /// The next entry; after the last one, and after an error, `None` for ever.
    fn next(&mut self) -> Option<Self::Item> {
        if self.state != State::Entries {
            return None;
        }
        let entry = self.next_entry();
        self.state = match entry {
            Ok(Some(_)) => State::Entries,
            Ok(None) => State::End,
            Err(_) => State::Failed,
        };
        entry.transpose()
    }
}

#[cfg(test)]
mod tests;
