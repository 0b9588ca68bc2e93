//! Writing a bundle of files that are not in memory.

use std::io::{self, Read, Write};

use crate::{
    bundle::HashingEncoder,
    caps::{BundleSizeError, Caps, Count},
    digest::Digest,
    link::{LinkError, link_destination},
    path::BundlePath,
    tar::{self, BLOCK, END, Member},
};

/// Writes a bundle entry by entry, without holding more than a piece of one file in memory.
///
/// It gives the same bytes as [`Bundle::build`](crate::Bundle::build) for the same entries. That no entry lies below
/// another one is left to the caller, who reads them from folders; [`BundleReader`](crate::BundleReader) checks it.
#[derive(Debug)]
pub struct BundleWriter<W: Write> {
    out: HashingEncoder<W>,
    count: Count,
    previous: Option<BundlePath>,
}

/// Why an entry was not written. The bundle is of no use after that.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Larger than allowed.
    #[error(transparent)]
    Size(#[from] BundleSizeError),
    /// A link that leaves the bundle.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A path that does not come after the one before it.
    #[error("`{path}` does not come after `{previous}`")]
    Order {
        /// The path.
        path: BundlePath,
        /// The one before.
        previous: BundlePath,
    },
    /// A file has more or fewer bytes than were announced.
    #[error("`{path}` has not the {bytes} bytes that it had at first")]
    Length {
        /// The file.
        path: BundlePath,
        /// What was announced.
        bytes: u64,
    },
    /// The contents of a file cannot be read.
    #[error("`{path}` can't be read: {error}")]
    Contents {
        /// The file.
        path: BundlePath,
        /// What its reader says.
        #[source]
        error: io::Error,
    },
    /// The bundle cannot be written to where it goes.
    #[error("the bundle can't be written: {0}")]
    Write(#[source] io::Error),
}

impl<W: Write> BundleWriter<W> {
    /// Begins a bundle of at most the given size.
    pub fn new(out: W, caps: Caps) -> Self {
        Self {
            out: HashingEncoder::new(out),
            count: Count::new(caps),
            previous: None,
        }
    }

    /// Adds a link.
    pub fn link(&mut self, path: &BundlePath, target: &str) -> Result<(), WriteError> {
        link_destination(path, target)?;
        self.begin(path, 0)?;
        let target = target.to_owned();
        self.write(&tar::encode(path.as_str(), &Member::Link { target }))
    }

    /// Adds a file of exactly so many bytes.
    pub fn file(
        &mut self,
        path: &BundlePath,
        executable: bool,
        bytes: u64,
        mut contents: impl Read,
    ) -> Result<(), WriteError> {
        self.begin(path, bytes)?;
        self.write(&tar::encode(path.as_str(), &Member::File { bytes, executable }))?;
        let changed = || WriteError::Length {
            path: path.clone(),
            bytes,
        };
        let mut left = bytes;
        let mut piece = vec![0; 64 * 1024];
        loop {
            let read = match contents.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let path = path.clone();
                    return Err(WriteError::Contents { path, error });
                }
            };
            left = left.checked_sub(read as u64).ok_or_else(changed)?;
            self.write(&piece[..read])?;
        }
        if left > 0 {
            return Err(changed());
        }
        // What is left over after whole blocks is less than one block.
        let rest = usize::try_from(bytes % BLOCK as u64).unwrap_or_default();
        self.write(&END[..tar::padding(rest)])
    }

    /// Ends the bundle; returns its digest and what it was written to.
    pub fn finish(mut self) -> Result<(Digest, W), WriteError> {
        self.write(&END)?;
        self.out.finish().map_err(WriteError::Write)
    }

    fn begin(&mut self, path: &BundlePath, bytes: u64) -> Result<(), WriteError> {
        match &self.previous {
            Some(previous) if previous >= path => {
                return Err(WriteError::Order {
                    path: path.clone(),
                    previous: previous.clone(),
                });
            }
            _ => self.previous = Some(path.clone()),
        }
        self.count.add_entries(1)?;
        self.count.check_file(path, bytes)?;
        self.count.add_bytes(bytes)?;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.out.write_all(bytes).map_err(WriteError::Write)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::{Bundle, Entry, FileTree};

    fn path(text: &str) -> BundlePath {
        text.parse().unwrap()
    }

    fn write(tree: &FileTree, caps: Caps) -> Result<(Digest, Vec<u8>), WriteError> {
        let mut writer = BundleWriter::new(Vec::new(), caps);
        for (path, entry) in tree {
            match entry {
                Entry::Link { target } => writer.link(path, target)?,
                Entry::File { contents, executable } => {
                    writer.file(path, *executable, contents.len() as u64, &contents[..])?;
                }
            }
        }
        writer.finish()
    }

    proptest! {
        #[test]
        fn a_bundle_is_the_same_whether_its_files_are_in_memory_or_not(
            files in proptest::collection::btree_map("[a-c./-]{1,4}", (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..1500)), 0..8)
        ) {
            let mut tree = FileTree::new();
            for (name, (is_link, contents)) in files {
                let Ok(path) = name.parse() else { continue };
                let entry = if is_link {
                    Entry::Link { target: "c".to_owned() }
                } else {
                    Entry::from_contents(Bytes::from(contents))
                };
                // Paths that do not fit together are left out.
                let _ = tree.insert(path, entry);
            }
            let built = Bundle::build(&tree, &Caps::default()).unwrap();
            let (digest, compressed) = write(&tree, Caps::default()).unwrap();
            prop_assert_eq!((digest, Bytes::from(compressed)), (built.digest, built.compressed));
        }
    }

    #[test]
    fn a_file_that_grew_or_shrank_is_named() {
        for contents in ["1234", "123456"] {
            let mut writer = BundleWriter::new(Vec::new(), Caps::default());
            let error = writer
                .file(&path("a"), false, 5, contents.as_bytes())
                .unwrap_err();
            assert_eq!(error.to_string(), "`a` has not the 5 bytes that it had at first");
        }
    }

    #[test]
    fn limits_order_and_links_are_those_of_every_bundle() {
        let caps = Caps {
            entries: 2,
            file_bytes: 3,
            total_bytes: 4,
        };
        let mut writer = BundleWriter::new(Vec::new(), caps);
        writer.file(&path("b"), false, 3, &b"123"[..]).unwrap();
        let refusals = [
            writer.file(&path("a"), false, 0, &b""[..]).unwrap_err(),
            writer.link(&path("c"), "/etc").unwrap_err(),
            writer.file(&path("d"), false, 4, &b"1234"[..]).unwrap_err(),
        ]
        .map(|error| error.to_string());
        assert_eq!(
            refusals,
            [
                "`a` does not come after `b`",
                "link `c` to `/etc` is absolute: only links to places inside the bundle are kept",
                "`d` is 4 bytes large; a file may have at most 3",
            ]
        );
    }
}
