//! The reader of stored files, for fuzzers.

use std::io::Write as _;

use super::envelope::{Opener, Sealer, Unreadable};
use super::{Key, tree};
use crate::archive::RepositoryTree;
use crate::configuration::{ArchiveLimits, GithubConfiguration, Limits};

fn key() -> Key {
    Key::of(&["tree", "api.github.com", "octo/tools", "0123"])
}

fn limits() -> Option<ArchiveLimits> {
    let limits = Limits::parse(&GithubConfiguration::default());
    limits.ok().map(|limits| limits.archive)
}

fn read(file: &[u8]) -> Result<RepositoryTree, Unreadable> {
    let limits = limits().ok_or(Unreadable::Damaged("has no limits"))?;
    let mut opener = Opener::new(file, file.len() as u64, &key())?;
    let tree = tree::read(&mut opener, &limits)?;
    opener.finish()?;
    Ok(tree)
}

/// Whether this file is taken as a stored tree, checksum and all.
pub fn is_stored_tree(file: &[u8]) -> bool {
    read(file).is_ok()
}

/// Reads contents as those of a stored tree. The key and the checksum that belong around them are made here, since mutations do not
/// get through them. Gives what would be stored of that tree, or `None` for contents that are refused.
pub fn store_again(contents: &[u8]) -> Option<Vec<u8>> {
    let mut sealer = Sealer::new(Vec::new(), &key()).ok()?;
    sealer.write_all(contents).ok()?;
    let tree = read(&sealer.finish().ok()?).ok()?;
    let mut again = Vec::new();
    tree::write(&tree, &mut again).ok()?;
    Some(again)
}
