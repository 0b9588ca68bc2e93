//! The entries of an archive, collected below its one top folder if it has to have one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use codeworkspace_bundle::{BundlePath, Entry};

use super::ArchiveError;
use crate::configuration::ArchiveLimits;

/// Deepest path. Deeper ones make some tools slow, and nobody writes them.
const MAXIMUM_DEPTH: usize = 100;
/// What an entry takes in memory beside its contents and its path.
const ENTRY_BYTES: u64 = 160;
/// Largest `.gitattributes` that is looked at.
const MAXIMUM_ATTRIBUTES_BYTES: usize = 1024 * 1024;

/// All files of a repository at one commit. Links are kept as they are: whether one may stay is a question of the
/// `path` that a source takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RepositoryTree {
    pub(crate) entries: BTreeMap<BundlePath, Entry>,
    /// Folders without content. Git stores none, so they are submodules, or lost their content to `export-ignore`.
    pub(crate) empty_folders: BTreeSet<BundlePath>,
    /// A `.gitattributes` file leaves paths out of archives.
    pub(crate) ignores_exports: bool,
    /// A `.gitattributes` file has files rewritten in archives.
    pub(crate) substitutes_exports: bool,
    /// What the manifest's author should know about the download, for example that the repository was renamed.
    pub(crate) warnings: Vec<String>,
}

impl RepositoryTree {
    /// Roughly what the tree takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.entries
            .iter()
            .map(|(path, entry)| {
                let variable = match entry {
                    Entry::File { contents, .. } => contents.len(),
                    Entry::Link { target } => target.len(),
                };
                ENTRY_BYTES + path.as_str().len() as u64 + variable as u64
            })
            .sum()
    }
}

/// Collects entries and refuses those that do not fit together.
pub(super) struct TreeBuilder {
    limits: ArchiveLimits,
    has_top: bool,
    top: Option<Vec<u8>>,
    entries: BTreeMap<BundlePath, Entry>,
    /// Folders by path; true when the archive has an entry for it, false when only a path goes through it.
    folders: BTreeMap<String, bool>,
}

impl TreeBuilder {
    /// `has_top` says whether everything must lie below one folder, which is taken off.
    pub(super) fn new(limits: ArchiveLimits, has_top: bool) -> Self {
        Self {
            limits,
            has_top,
            top: None,
            entries: BTreeMap::new(),
            folders: BTreeMap::new(),
        }
    }

    pub(super) fn limits(&self) -> &ArchiveLimits {
        &self.limits
    }

    /// Adds a file or link.
    pub(super) fn add(&mut self, name: &[u8], entry: Entry) -> Result<(), ArchiveError> {
        let Some(path) = self.strip(name)? else {
            return Err(ArchiveError::entry(
                name,
                "stands outside the archive's top folder",
            ));
        };
        self.add_folders_of(name, &path)?;
        if self.folders.contains_key(path.as_str()) {
            return Err(ArchiveError::entry(
                name,
                "is a file or link and a folder at once",
            ));
        }
        if self.entries.len() as u64 >= self.limits.entries {
            return Err(self.too_many("files and links"));
        }
        match self.entries.insert(path, entry) {
            None => Ok(()),
            Some(_) => Err(ArchiveError::entry(name, "is there twice")),
        }
    }

    /// Adds a folder.
    pub(super) fn add_folder(&mut self, name: &[u8]) -> Result<(), ArchiveError> {
        let Some(path) = self.strip(name.strip_suffix(b"/").unwrap_or(name))? else {
            return Ok(());
        };
        self.add_folders_of(name, &path)?;
        if self.entries.contains_key(&path) {
            return Err(ArchiveError::entry(
                name,
                "is a file or link and a folder at once",
            ));
        }
        match self.folders.insert(path.as_str().to_owned(), true) {
            Some(true) => Err(ArchiveError::entry(name, "is there twice")),
            Some(false) => Ok(()),
            None => self.check_folders(),
        }
    }

    pub(super) fn finish(self) -> RepositoryTree {
        let has_content = |folder: &str| {
            let inside = format!("{folder}/");
            let from_inside = (Bound::Included(inside.as_str()), Bound::Unbounded);
            let next = self.entries.range::<str, _>(from_inside).next();
            next.is_some_and(|(path, _)| path.as_str().starts_with(&inside))
        };
        let empty_folders = self
            .folders
            .keys()
            .filter(|folder| !has_content(folder))
            // A folder that only holds empty ones would be named once more for each of them.
            .filter(|folder| !self.holds_a_folder(folder))
            .filter_map(|folder| folder.parse().ok())
            .collect();
        let attributes = Attributes::of(&self.entries);
        RepositoryTree {
            empty_folders,
            ignores_exports: attributes.ignore,
            substitutes_exports: attributes.substitute,
            entries: self.entries,
            warnings: Vec::new(),
        }
    }

    fn holds_a_folder(&self, folder: &str) -> bool {
        let inside = format!("{folder}/");
        self.folders
            .range(inside.clone()..)
            .next()
            .is_some_and(|(path, _)| path.starts_with(&inside))
    }

    /// Takes the top folder off; `None` for the top folder itself.
    fn strip(&mut self, name: &[u8]) -> Result<Option<BundlePath>, ArchiveError> {
        if !self.has_top {
            return if name == b"." {
                Ok(None)
            } else {
                path(name, name).map(Some)
            };
        }
        let (top, rest) = match name.iter().position(|byte| *byte == b'/') {
            Some(slash) => (&name[..slash], Some(&name[slash + 1..])),
            None => (name, None),
        };
        match &self.top {
            None if matches!(top, b"" | b"." | b"..") => {
                return Err(ArchiveError::entry(name, "has no top folder"));
            }
            None => self.top = Some(top.to_vec()),
            Some(known) if known == top => {}
            Some(_) => {
                return Err(ArchiveError::entry(
                    name,
                    "has another top folder than those before",
                ));
            }
        }
        let Some(rest) = rest else {
            return Ok(None);
        };
        path(name, rest).map(Some)
    }

    fn add_folders_of(&mut self, name: &[u8], path: &BundlePath) -> Result<(), ArchiveError> {
        for folder in path.folders() {
            if self.entries.contains_key(folder) {
                return Err(ArchiveError::entry(name, "lies below a file or link"));
            }
            if !self.folders.contains_key(folder) {
                self.folders.insert(folder.to_owned(), false);
                self.check_folders()?;
            }
        }
        Ok(())
    }

    fn check_folders(&self) -> Result<(), ArchiveError> {
        if self.folders.len() as u64 > self.limits.entries {
            Err(self.too_many("folders"))
        } else {
            Ok(())
        }
    }

    fn too_many(&self, unit: &'static str) -> ArchiveError {
        ArchiveError::TooLarge {
            what: "the repository has at least".to_owned(),
            actual: self.limits.entries.saturating_add(1),
            unit,
            limit: self.limits.entries,
            setting: "maxEntries",
        }
    }
}

/// The path that is left of an entry's name.
fn path(name: &[u8], rest: &[u8]) -> Result<BundlePath, ArchiveError> {
    let text =
        std::str::from_utf8(rest).map_err(|_| ArchiveError::entry(name, "has a name that is not UTF-8"))?;
    let path: BundlePath = text
        .parse()
        .map_err(|error| ArchiveError::refused(format!("the path of an entry is not allowed: {error}")))?;
    if path.segments().count() > MAXIMUM_DEPTH {
        return Err(ArchiveError::entry(
            name,
            &format!("lies deeper than {MAXIMUM_DEPTH} folders"),
        ));
    }
    Ok(path)
}

/// What `.gitattributes` files say about archives.
#[derive(Debug, Default)]
struct Attributes {
    ignore: bool,
    substitute: bool,
}

impl Attributes {
    fn of(entries: &BTreeMap<BundlePath, Entry>) -> Self {
        let mut attributes = Self::default();
        for (path, entry) in entries {
            match entry {
                Entry::File { contents, .. }
                    if path.file_name() == ".gitattributes" && contents.len() <= MAXIMUM_ATTRIBUTES_BYTES =>
                {
                    attributes.read(&String::from_utf8_lossy(contents));
                }
                _ => {}
            }
        }
        attributes
    }

    fn read(&mut self, text: &str) {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        for attribute in lines.flat_map(|line| line.split_whitespace().skip(1)) {
            self.ignore |= attribute == "export-ignore";
            self.substitute |= attribute == "export-subst";
        }
    }
}
