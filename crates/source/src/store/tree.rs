//! Trees as bytes.
//!
//! ```text
//! entries, u32 | each: kind, u8 | path, text | contents or link target: length, u32, and bytes
//! empty folders, u32 | each: path, text
//! flags of `.gitattributes`, u8
//! warnings, u32 | each: text
//! ```
//! A tree has one such form only: paths ascend.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use codeworkspace_bundle::{BundlePath, Entry};

use super::envelope::{Opener, Unreadable, write_length, write_text};
use crate::archive::RepositoryTree;
use crate::configuration::ArchiveLimits;

const FILE: u8 = 0;
const EXECUTABLE: u8 = 1;
const LINK: u8 = 2;

const IGNORES_EXPORTS: u8 = 1;
const SUBSTITUTES_EXPORTS: u8 = 2;

/// More warnings, or longer ones, were never written.
const MAXIMUM_WARNINGS: u32 = 1_000;

pub(super) fn write(tree: &RepositoryTree, out: &mut impl Write) -> io::Result<()> {
    // In full, so that a new field cannot be forgotten here.
    let RepositoryTree {
        entries,
        empty_folders,
        ignores_exports,
        substitutes_exports,
        warnings,
    } = tree;
    write_length(out, entries.len())?;
    for (path, entry) in entries {
        let (kind, content) = match entry {
            Entry::File { contents, executable } => {
                (if *executable { EXECUTABLE } else { FILE }, contents.as_ref())
            }
            Entry::Link { target } => (LINK, target.as_bytes()),
        };
        out.write_all(&[kind])?;
        write_text(out, path.as_str())?;
        write_length(out, content.len())?;
        out.write_all(content)?;
    }
    write_length(out, empty_folders.len())?;
    for folder in empty_folders {
        write_text(out, folder.as_str())?;
    }
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = flag(*ignores_exports, IGNORES_EXPORTS) | flag(*substitutes_exports, SUBSTITUTES_EXPORTS);
    out.write_all(&[flags])?;
    write_length(out, warnings.len())?;
    for warning in warnings {
        write_text(out, warning)?;
    }
    Ok(())
}

/// The bytes that [`write`] makes of a tree.
pub(super) fn length(tree: &RepositoryTree) -> io::Result<u64> {
    let mut counter = Counter(0);
    write(tree, &mut counter)?;
    Ok(counter.0)
}

struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a tree, and refuses one that no archive within the limits could have given: they may be lower than they were
/// when it was stored.
pub(super) fn read(
    from: &mut Opener<impl Read>,
    limits: &ArchiveLimits,
) -> Result<RepositoryTree, Unreadable> {
    let entries = read_entries(from, limits)?;
    let mut empty_folders = BTreeSet::new();
    for _ in 0..checked(from.length()?, limits.entries)? {
        let folder = read_path(from)?;
        let ascends = empty_folders.last().is_none_or(|last| *last < folder);
        if !ascends || entries.contains_key(&folder) || is_below_an_entry(&entries, &folder) {
            return Err(Unreadable::Damaged("has folders that do not fit"));
        }
        empty_folders.insert(folder);
    }
    let flags = from.byte()?;
    if flags & !(IGNORES_EXPORTS | SUBSTITUTES_EXPORTS) != 0 {
        return Err(Unreadable::Damaged("has unknown flags"));
    }
    let warnings = (0..checked(from.length()?, MAXIMUM_WARNINGS.into())?)
        .map(|_| from.text())
        .collect::<Result<_, _>>()?;
    Ok(RepositoryTree {
        entries,
        empty_folders,
        ignores_exports: flags & IGNORES_EXPORTS != 0,
        substitutes_exports: flags & SUBSTITUTES_EXPORTS != 0,
        warnings,
    })
}

fn read_entries(
    from: &mut Opener<impl Read>,
    limits: &ArchiveLimits,
) -> Result<BTreeMap<BundlePath, Entry>, Unreadable> {
    let mut entries = BTreeMap::new();
    let mut total = 0;
    for _ in 0..checked(from.length()?, limits.entries)? {
        let kind = from.byte()?;
        let path = read_path(from)?;
        let ascends = entries.last_key_value().is_none_or(|(last, _)| *last < path);
        if !ascends || is_below_an_entry(&entries, &path) {
            return Err(Unreadable::Damaged("has entries that do not fit"));
        }
        let bytes = checked(from.length()?, limits.file_bytes)?;
        total += u64::from(bytes);
        if total > limits.inflated_bytes {
            return Err(Unreadable::Damaged("is over a limit"));
        }
        let content = from.bytes(bytes.into())?;
        let entry = match kind {
            FILE | EXECUTABLE => Entry::File {
                contents: content.into(),
                executable: kind == EXECUTABLE,
            },
            LINK => Entry::Link {
                target: String::from_utf8(content)
                    .map_err(|_| Unreadable::Damaged("has a link that is not UTF-8"))?,
            },
            _ => return Err(Unreadable::Damaged("has an unknown kind of entry")),
        };
        entries.insert(path, entry);
    }
    Ok(entries)
}

fn read_path(from: &mut Opener<impl Read>) -> Result<BundlePath, Unreadable> {
    from.text()?
        .parse()
        .map_err(|_| Unreadable::Damaged("has a path that is not allowed"))
}

fn checked(number: u32, limit: u64) -> Result<u32, Unreadable> {
    if u64::from(number) > limit {
        return Err(Unreadable::Damaged("is over a limit"));
    }
    Ok(number)
}

fn is_below_an_entry(entries: &BTreeMap<BundlePath, Entry>, path: &BundlePath) -> bool {
    path.folders().any(|folder| entries.contains_key(folder))
}

#[cfg(test)]
mod tests;
