//! Our own dialect of tar: of all the ways in which POSIX lets one write an archive, exactly one.
//!
//! - regular files and symbolic links only, in the byte order of their full paths; folders have no entries;
//! - mode 0644 or 0755 (links: 0777), user, group and time 0, no names of users or groups;
//! - `ustar` headers, with a `pax` header before those entries whose path, link target or size do not fit;
//! - two zero blocks at the end and nothing after them.
//!
//! So equal trees give equal bytes, whatever tool, version or machine made them, and a reader can refuse everything that
//! it would not have written itself. Where no `pax` header is needed, GNU tar writes the same bytes with
//! `--format=ustar --owner=0 --group=0 --numeric-owner --mtime=@0 --blocking-factor=1 --no-recursion` and a sorted list
//! of files, so that a digest can be checked without any tool of ours.

mod header;

use std::io::{self, Write};

pub use header::HeaderError;
pub(crate) use header::{BLOCK, Member, decode, encode, extension_bytes};

use crate::tree::{Entry, FileTree};

/// The end of an archive.
pub(crate) const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// Writes a whole archive.
pub(crate) fn write(tree: &FileTree, out: &mut impl Write) -> io::Result<()> {
    for (path, entry) in tree {
        match entry {
            Entry::File { contents, executable } => {
                let member = Member::File {
                    bytes: contents.len() as u64,
                    executable: *executable,
                };
                out.write_all(&encode(path.as_str(), &member))?;
                out.write_all(contents)?;
                out.write_all(&END[..padding(contents.len())])?;
            }
            Entry::Link { target } => {
                out.write_all(&encode(
                    path.as_str(),
                    &Member::Link {
                        target: target.clone(),
                    },
                ))?;
            }
        }
    }
    out.write_all(&END)
}

/// How many zeros fill up the last block of contents of that length.
pub(crate) fn padding(length: usize) -> usize {
    length.next_multiple_of(BLOCK) - length
}
