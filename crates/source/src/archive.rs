//! Reads the archive of a commit, as a stream and without trusting it.
//!
//! Tools differ in how they read archives that bend the rules, and attacks live in those differences. So only what
//! `git archive` and Flux write is read: one gzip member with one ustar archive, that holds files, links and folders, and
//! ends in two zero blocks with nothing behind; see [`Layout`] for where they differ. Everything else is refused as a
//! whole. Nothing is ever unpacked.

mod header;
mod inflate;
mod pax;
mod tree;

#[cfg(test)]
pub(crate) mod tests;

use std::io::{BufRead, Read as _};

use bytes::Bytes;
use codeworkspace_bundle::Entry;
use codeworkspace_bundle::code::CommitId;

use crate::configuration::ArchiveLimits;
use crate::error::{SourceError, SourceErrorReason, quoted};
use header::{ContentKind, Header, Kind};
use inflate::Inflated;
use pax::Records;
use tree::TreeBuilder;

pub(crate) use tree::RepositoryTree;

/// Largest pax header: a path, a link target and their keys, with room to spare.
const MAXIMUM_PAX_BYTES: u64 = 16 * 1024;
/// Longest link target, as in Linux.
const MAXIMUM_LINK_BYTES: usize = 4096;

/// Why an archive was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArchiveError {
    // Where it broke off differs each time, and a status that differs each time is written each time.
    #[error("the archive ends early; it will be fetched again")]
    Truncated,
    #[error("the archive is refused: {0}")]
    Refused(String),
    #[error(
        "{what} {actual} {unit}, more than the limit of {limit} ({setting} of the operator's configuration)"
    )]
    TooLarge {
        what: String,
        actual: u64,
        unit: &'static str,
        limit: u64,
        setting: &'static str,
    },
}

impl ArchiveError {
    fn refused(detail: impl Into<String>) -> Self {
        Self::Refused(detail.into())
    }

    fn entry(name: &[u8], detail: &str) -> Self {
        Self::Refused(format!("entry {} {detail}", quoted(name)))
    }
}

impl From<ArchiveError> for SourceError {
    fn from(error: ArchiveError) -> Self {
        let reason = match error {
            ArchiveError::Truncated => SourceErrorReason::ArchiveTruncated,
            ArchiveError::Refused(_) => SourceErrorReason::ArchiveRefused,
            ArchiveError::TooLarge { .. } => SourceErrorReason::TooLarge,
        };
        Self::new(reason, error.to_string())
    }
}

/// Who made an archive, and so what it looks like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Layout<'a> {
    /// `git archive` of a commit, whose id stands in a global pax header at the beginning; everything lies below one top
    /// folder.
    Commit(&'a CommitId),
    /// Flux's source-controller: no header at the beginning, and no top folder but an entry for the folder `.` itself.
    Artifact,
}

/// Reads a gzipped archive to its end.
pub(crate) fn read(
    input: impl BufRead,
    layout: Layout<'_>,
    limits: &ArchiveLimits,
) -> Result<RepositoryTree, ArchiveError> {
    let mut inflated = Inflated::new(input, limits.inflated_bytes);
    let mut tree = TreeBuilder::new(*limits, matches!(layout, Layout::Commit(_)));
    if let Err(error) = read_entries(&mut inflated, layout, &mut tree) {
        // What went wrong below tar says more than tar's view of it.
        return Err(inflated.failure().unwrap_or(error));
    }
    inflated.finish()?;
    Ok(tree.finish())
}

fn read_entries<R: BufRead>(
    inflated: &mut Inflated<R>,
    layout: Layout<'_>,
    tree: &mut TreeBuilder,
) -> Result<(), ArchiveError> {
    // Its text may quote the archive, so ours stands instead.
    let malformed = |_: std::io::Error| ArchiveError::refused("a header block is malformed");
    let mut archive = tar::Archive::new(inflated);
    // Raw entries, since extended headers are checked here and not merged leniently.
    let mut entries = archive.entries().map_err(malformed)?.raw(true);

    if let Layout::Commit(commit) = layout {
        let Some(first) = entries.next() else {
            return Err(ArchiveError::refused("it is empty"));
        };
        check_commit(&mut first.map_err(malformed)?, commit)?;
    }

    let mut extended = Records::default();
    for entry in entries {
        let mut entry = entry.map_err(malformed)?;
        let header = Header::parse(entry.header())?;
        let kind = match header.kind {
            Kind::Content(kind) => kind,
            Kind::Extended if extended.is_empty() => {
                extended = Records::parse(&read_pax(&mut entry, &header)?)?;
                extended.allow(&["path", "linkpath", "size"])?;
                continue;
            }
            Kind::Extended => {
                return Err(ArchiveError::refused("two extended headers follow each other"));
            }
            Kind::Global => {
                return Err(ArchiveError::refused(
                    "a global header stands behind the first entry",
                ));
            }
        };
        let records = std::mem::take(&mut extended);
        let name = records.get("path").unwrap_or(&header.path);
        if records
            .get("size")
            .is_some_and(|size| !size_is(size, header.size))
        {
            return Err(ArchiveError::entry(name, "has two sizes that differ"));
        }
        if kind != ContentKind::File && header.size > 0 {
            return Err(ArchiveError::entry(name, "is a link or folder with contents"));
        }
        match kind {
            ContentKind::Folder => tree.add_folder(name)?,
            ContentKind::Link => {
                let target = records.get("linkpath").unwrap_or(&header.link);
                tree.add(name, link(name, target)?)?;
            }
            ContentKind::File => {
                let contents = read_contents(&mut entry, name, header.size, tree.limits())?;
                tree.add(
                    name,
                    Entry::File {
                        contents,
                        executable: header.executable,
                    },
                )?;
            }
        }
    }
    if extended.is_empty() {
        Ok(())
    } else {
        Err(ArchiveError::refused("an extended header belongs to no entry"))
    }
}

type RawEntry<'a, R> = tar::Entry<'a, R>;

fn check_commit<R: std::io::Read>(
    entry: &mut RawEntry<'_, R>,
    commit: &CommitId,
) -> Result<(), ArchiveError> {
    let header = Header::parse(entry.header())?;
    if header.kind != Kind::Global {
        return Err(ArchiveError::refused(
            "it does not begin with the commit's id, as archives of commits do",
        ));
    }
    let records = Records::parse(&read_pax(entry, &header)?)?;
    // Git writes a time that the plain header cannot hold into this one.
    records.allow(&["comment", "mtime"])?;
    match records.get("comment") {
        Some(comment) if comment == commit.as_str().as_bytes() => Ok(()),
        Some(comment) => Err(ArchiveError::refused(format!(
            "it is of commit {}, not {commit}",
            quoted(comment)
        ))),
        None => Err(ArchiveError::refused("its global header has no commit id")),
    }
}

fn read_pax<R: std::io::Read>(entry: &mut RawEntry<'_, R>, header: &Header) -> Result<Vec<u8>, ArchiveError> {
    if header.size > MAXIMUM_PAX_BYTES {
        return Err(ArchiveError::refused(format!(
            "an extended header has {} bytes, more than {MAXIMUM_PAX_BYTES}",
            header.size
        )));
    }
    read_exactly(entry, header.size)
}

fn read_contents<R: std::io::Read>(
    entry: &mut RawEntry<'_, R>,
    name: &[u8],
    size: u64,
    limits: &ArchiveLimits,
) -> Result<Bytes, ArchiveError> {
    if size > limits.file_bytes {
        return Err(ArchiveError::TooLarge {
            what: format!("file {} has", quoted(name)),
            actual: size,
            unit: "bytes",
            limit: limits.file_bytes,
            setting: "maxFileBytes",
        });
    }
    // A boxed slice has no spare capacity, which would stay in the cache.
    read_exactly(entry, size).map(|contents| Bytes::from(contents.into_boxed_slice()))
}

/// Reads an entry's bytes. The vector grows with what really comes, not with what the header promises.
fn read_exactly<R: std::io::Read>(entry: &mut RawEntry<'_, R>, size: u64) -> Result<Vec<u8>, ArchiveError> {
    let mut contents = Vec::new();
    let read = entry.read_to_end(&mut contents);
    match read {
        Ok(read) if read as u64 == size => Ok(contents),
        // The failure of the stream below, if it has one, replaces this.
        Ok(_) | Err(_) => Err(ArchiveError::refused("an entry is shorter than its header says")),
    }
}

fn link(name: &[u8], target: &[u8]) -> Result<Entry, ArchiveError> {
    if target.len() > MAXIMUM_LINK_BYTES {
        return Err(ArchiveError::entry(
            name,
            &format!("is a link with a target of {} bytes", target.len()),
        ));
    }
    match std::str::from_utf8(target) {
        Ok(target) if !target.contains('\0') => Ok(Entry::Link {
            target: target.to_owned(),
        }),
        _ => Err(ArchiveError::entry(
            name,
            "is a link whose target is not UTF-8 text",
        )),
    }
}

/// Whether a pax size record says the same as the header.
fn size_is(record: &[u8], size: u64) -> bool {
    record == size.to_string().as_bytes()
}
