use crate::{path::BundlePath, tree::FileTree};

const MIB: u64 = 1_024 * 1_024;

/// How large a bundle may get. All three are about what the runner will unpack, not about compressed bytes: a
/// compressed limit alone says nothing, since a megabyte may hold a gigabyte of zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Files and links.
    pub entries: u64,
    /// Bytes of a single file.
    pub file_bytes: u64,
    /// Bytes of all files together.
    pub total_bytes: u64,
}

impl Default for Caps {
    /// 20,000 entries, 50 MiB a file, 100 MiB in all.
    fn default() -> Self {
        Self {
            entries: 20_000,
            file_bytes: 50 * MIB,
            total_bytes: 100 * MIB,
        }
    }
}

impl Caps {
    /// Refuses a tree that is over one of the limits.
    pub fn check(&self, tree: &FileTree) -> Result<(), BundleSizeError> {
        let mut count = Count::new(*self);
        count.add_entries(tree.len() as u64)?;
        for (path, entry) in tree {
            count.check_file(path, entry.content_bytes())?;
        }
        count.add_bytes(tree.content_bytes())
    }
}

/// What has been seen so far of a bundle whose whole size is not known beforehand.
#[derive(Debug)]
pub(crate) struct Count {
    caps: Caps,
    entries: u64,
    bytes: u64,
}

impl Count {
    pub(crate) fn new(caps: Caps) -> Self {
        Self {
            caps,
            entries: 0,
            bytes: 0,
        }
    }

    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    pub(crate) fn add_entries(&mut self, entries: u64) -> Result<(), BundleSizeError> {
        self.entries = self.entries.saturating_add(entries);
        let (entries, limit) = (self.entries, self.caps.entries);
        if entries > limit {
            Err(BundleSizeError::Entries { entries, limit })
        } else {
            Ok(())
        }
    }

    pub(crate) fn check_file(&self, path: &BundlePath, bytes: u64) -> Result<(), BundleSizeError> {
        let limit = self.caps.file_bytes;
        if bytes > limit {
            Err(BundleSizeError::File {
                path: path.clone(),
                bytes,
                limit,
            })
        } else {
            Ok(())
        }
    }

    pub(crate) fn add_bytes(&mut self, bytes: u64) -> Result<(), BundleSizeError> {
        self.bytes = self.bytes.saturating_add(bytes);
        let (bytes, limit) = (self.bytes, self.caps.total_bytes);
        if bytes > limit {
            Err(BundleSizeError::Total { bytes, limit })
        } else {
            Ok(())
        }
    }
}

/// A bundle over one of its [`Caps`] (AIP-26's class of the same name); each variant has both numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleSizeError {
    /// Too many files and links.
    #[error("the bundle has {entries} entries; at most {limit} are allowed")]
    Entries {
        /// How many there are; when reading, how many were seen until it was too many.
        entries: u64,
        /// How many there may be.
        limit: u64,
    },
    /// One file too large.
    #[error("`{path}` is {bytes} bytes large; a file may have at most {limit}")]
    File {
        /// The file.
        path: BundlePath,
        /// Its size.
        bytes: u64,
        /// The largest size.
        limit: u64,
    },
    /// All files together too large.
    #[error("the bundle's files are {bytes} bytes large; together they may have at most {limit}")]
    Total {
        /// Their size; when reading, what was seen until it was too much.
        bytes: u64,
        /// The largest size.
        limit: u64,
    },
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::tree::Entry;

    const SMALL: Caps = Caps {
        entries: 3,
        file_bytes: 10,
        total_bytes: 20,
    };

    fn tree(sizes: &[usize]) -> FileTree {
        let mut tree = FileTree::new();
        for (index, size) in sizes.iter().enumerate() {
            let path = format!("file{index}").parse().unwrap();
            tree.insert(path, Entry::from_contents(Bytes::from(vec![b'x'; *size])))
                .unwrap();
        }
        tree
    }

    #[test]
    fn exactly_the_limit_passes() {
        assert_eq!(SMALL.check(&tree(&[10, 10, 0])), Ok(()));
    }

    #[test]
    fn one_more_is_refused_with_both_numbers() {
        let message = |sizes: &[usize]| SMALL.check(&tree(sizes)).unwrap_err().to_string();
        assert_eq!(
            message(&[0, 0, 0, 0]),
            "the bundle has 4 entries; at most 3 are allowed"
        );
        assert_eq!(
            message(&[0, 11]),
            "`file1` is 11 bytes large; a file may have at most 10"
        );
        assert_eq!(
            message(&[10, 10, 1]),
            "the bundle's files are 21 bytes large; together they may have at most 20"
        );
    }

    #[test]
    fn links_count_as_entries_but_have_no_bytes() {
        let mut tree = tree(&[10, 10]);
        tree.insert(
            "link".parse().unwrap(),
            Entry::Link {
                target: "file0".to_owned(),
            },
        )
        .unwrap();
        assert_eq!(SMALL.check(&tree), Ok(()));
        tree.insert(
            "link2".parse().unwrap(),
            Entry::Link {
                target: "file0".to_owned(),
            },
        )
        .unwrap();
        assert_eq!(
            SMALL.check(&tree),
            Err(BundleSizeError::Entries { entries: 4, limit: 3 })
        );
    }
}
