//! The files of a source or a bundle.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, btree_map},
    ops::Bound,
};

use bytes::Bytes;

use crate::{
    follow::{Nowhere, follow},
    link::{LinkError, link_destination},
    path::{BundlePath, PathError},
    taken::Entries,
};

/// One entry of a tree. Folders have no entry: they are there because something is in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A regular file.
    File {
        /// Its bytes, shared and never copied.
        contents: Bytes,
        /// Whether it is delivered with mode 0755 instead of 0644.
        executable: bool,
    },
    /// A symbolic link.
    Link {
        /// The text of the link, relative to the folder that the link is in (see [`link_destination`]).
        target: String,
    },
}

impl Entry {
    /// A file of a source that has no file modes (`inline` and `local`): executable if its first two bytes are `#!`.
    pub fn from_contents(contents: Bytes) -> Self {
        let executable = contents.starts_with(b"#!");
        Self::File { contents, executable }
    }

    /// The bytes that count against size limits: a file's contents; none for a link.
    pub fn content_bytes(&self) -> u64 {
        match self {
            Self::File { contents, .. } => contents.len() as u64,
            Self::Link { .. } => 0,
        }
    }
}

/// What is at a path, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Nothing, or links that lead nowhere.
    Nothing,
}

/// Files and links by path, in the byte order of their paths.
///
/// A tree can always be unpacked, and by every tool to the same result: no entry lies below another entry, and no
/// link points outside the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileTree(BTreeMap<BundlePath, Entry>);

/// Why an entry has no place in a tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// It does not fit to the entries that are there.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// It is a link that points outside the tree.
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// One place would have to be a folder and a file (or link) at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// A file or link is where the new entry needs a folder.
    #[error("`{path}` can't be added, since `{entry}` is a file or link, not a folder")]
    BelowEntry {
        /// The refused path.
        path: BundlePath,
        /// The file or link above it.
        entry: BundlePath,
    },
    /// A folder is where the new file or link would have to be.
    #[error("`{path}` can't be a file or link, since it is the folder of `{below}`")]
    OverFolder {
        /// The refused path.
        path: BundlePath,
        /// An entry below it.
        below: BundlePath,
    },
}

impl FileTree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tree of one file, with the mode that [`Entry::from_contents`] gives it.
    pub fn of_file(path: BundlePath, contents: Bytes) -> Self {
        Self(BTreeMap::from([(path, Entry::from_contents(contents))]))
    }

    /// Adds an entry, or replaces the one of the same path and returns it.
    pub fn insert(&mut self, path: BundlePath, entry: Entry) -> Result<Option<Entry>, TreeError> {
        if let Entry::Link { target } = &entry {
            link_destination(&path, target)?;
        }
        Ok(self.place(path, entry)?)
    }

    /// [`insert`](Self::insert) for an entry that comes from another tree, whose links are known to stay inside.
    pub(crate) fn place(&mut self, path: BundlePath, entry: Entry) -> Result<Option<Entry>, PlaceError> {
        let above = path.folders().find_map(|folder| self.0.get_key_value(folder));
        if let Some((above, _)) = above {
            return Err(PlaceError::BelowEntry {
                entry: above.clone(),
                path,
            });
        }
        if let Some(below) = self.first_below(&path) {
            return Err(PlaceError::OverFolder {
                below: below.clone(),
                path,
            });
        }
        Ok(self.0.insert(path, entry))
    }

    /// The first entry inside the folder `path`.
    fn first_below(&self, path: &BundlePath) -> Option<&BundlePath> {
        let inside = format!("{path}/");
        let (first, _) = self
            .0
            .range::<str, _>((Bound::Excluded(inside.as_str()), Bound::Unbounded))
            .next()?;
        first.as_str().starts_with(&inside).then_some(first)
    }

    /// This tree as the contents of a folder. Links stay right, since they are relative; but like a path, the place that
    /// one points to may get too long.
    pub(crate) fn inside(self, folder: &BundlePath) -> Result<Self, (BundlePath, PathError)> {
        let place = |(path, entry): (BundlePath, Entry)| {
            let pointed_to = match &entry {
                Entry::Link { target } => link_destination(&path, target).ok().flatten(),
                Entry::File { .. } => None,
            };
            let place = folder.join(&path).and_then(|place| {
                let fits = pointed_to.map_or(Ok(()), |place| folder.join(&place).map(drop));
                fits.map(|()| place)
            });
            match place {
                Ok(place) => Ok((place, entry)),
                Err(error) => Err((path, error)),
            }
        };
        self.0.into_iter().map(place).collect::<Result<_, _>>().map(Self)
    }

    /// The entry at a path, links not followed.
    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.0.get(path)
    }

    /// What a program that opens `path` would find, links followed on every level.
    pub fn find(&self, path: &BundlePath) -> Found {
        match follow(&self.0, path) {
            Ok(None) => Found::Folder,
            Ok(Some(place)) if self.0.contains_key(&place) => Found::File,
            Ok(Some(place)) if self.first_below(&place).is_some() => Found::Folder,
            Ok(Some(_)) | Err(Nowhere) => Found::Nothing,
        }
    }

    /// The number of files and links.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no entry at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sum of all files' contents in bytes.
    pub fn content_bytes(&self) -> u64 {
        self.0.values().map(Entry::content_bytes).sum()
    }

    /// All paths in byte order.
    pub fn paths(&self) -> impl Iterator<Item = &BundlePath> {
        self.0.keys()
    }

    /// All entries in the byte order of their paths.
    pub fn iter(&self) -> btree_map::Iter<'_, BundlePath, Entry> {
        self.0.iter()
    }
}

/// Lets a tree stand wherever entries are looked through whose links need not be good.
impl Borrow<Entries> for FileTree {
    fn borrow(&self) -> &Entries {
        &self.0
    }
}

impl<'a> IntoIterator for &'a FileTree {
    type Item = (&'a BundlePath, &'a Entry);
    type IntoIter = btree_map::Iter<'a, BundlePath, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for FileTree {
    type Item = (BundlePath, Entry);
    type IntoIter = btree_map::IntoIter<BundlePath, Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests;
