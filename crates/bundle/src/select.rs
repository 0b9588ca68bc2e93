//! What a `local` source takes of the workspace, and where that lands in the bundle (AIP-26, "Source variant: `local`").
//!
//! - A path that is there as it is written is taken, whatever characters it has: a file, or a folder with everything in
//!   it, hidden files too. Only otherwise is it a pattern (see [`Glob`](crate::Glob)) of files.
//! - `glob` chooses among the files of a folder, by their paths below it.
//! - Nothing at or below a `.git` is ever taken: it holds the history, and the remotes with their credentials.
//! - `as` places a file and the contents of a folder as [`Target`](crate::code::Target) says. Files that a pattern in
//!   `path` matches keep their paths, or land with their base names in the folder that `as` names; two of one name are
//!   an error. What is to keep its structure below another folder is taken as a folder with a `glob`.
//! - Nothing taken is an error, as a typo would otherwise be a bundle without the file.

mod error;

use std::{borrow::Borrow, collections::BTreeMap};

pub use error::SelectError;

use crate::{
    code::{LocalSource, Misplaced, Target},
    glob::Glob,
    near::nearest_paths,
    path::BundlePath,
    quote::Quoted,
    taken::{Entries, LinkPolicy, Origin, Taken, inside, link_above, nearest_entries, refuse_links},
    tree::{Entry, FileTree},
    warnings::source_warnings,
};

/// What no source may take, as a file (a worktree's) or folder, at any depth.
const NEVER_TAKEN: &str = ".git";

/// The files of a `local` source, and what its author should know about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// The files where they land in the bundle.
    pub tree: FileTree,
    /// The warnings of [`source_warnings`], and one about links that were left out.
    pub warnings: Vec<String>,
}

/// Takes what a source names from the root of its workspace: a [`FileTree`], or [`Entries`] whose links may lead anywhere
/// as long as no source takes them.
pub fn select<Root: Borrow<Entries>>(
    root: &Root,
    source: &LocalSource,
    links: LinkPolicy,
) -> Result<Selected, SelectError> {
    Selection {
        root: root.borrow(),
        source,
        links,
    }
    .select()
}

struct Selection<'a> {
    root: &'a Entries,
    source: &'a LocalSource,
    links: LinkPolicy,
}

/// Files where they land, and what is said about links.
type Placed = (FileTree, Option<String>);

impl<'a> Selection<'a> {
    fn select(&self) -> Result<Selected, SelectError> {
        let (tree, skipped) = self.take()?;
        let mut warnings = source_warnings(&tree, Origin::Workspace);
        warnings.extend(skipped);
        Ok(Selected { tree, warnings })
    }

    fn take(&self) -> Result<Placed, SelectError> {
        let Some(path) = self.source.pattern.path.below_root() else {
            return self.take_folder(None);
        };
        if path.segments().any(|segment| segment == NEVER_TAKEN) {
            return Err(SelectError::NeverTaken { path: path.clone() });
        }
        match self.root.get(path) {
            Some(Entry::Link { target }) => Err(SelectError::LinkRefused(format!(
                "`path` {} is a symbolic link to {}; write what it leads to as `path`",
                Quoted(path.as_str()),
                Quoted(target)
            ))),
            Some(file @ Entry::File { .. }) => self.take_file(path, file),
            None if inside(self.root, path).next().is_some() => self.take_folder(Some(path)),
            None => match &self.source.pattern.glob {
                Some(glob) => self.take_matches(glob),
                None => Err(self.not_found(path)),
            },
        }
    }

    fn take_file(&self, path: &BundlePath, file: &Entry) -> Result<Placed, SelectError> {
        if self.source.pattern.must_be_folder {
            return Err(SelectError::NotAFolder { path: path.clone() });
        }
        if self.source.glob.is_some() {
            return Err(SelectError::GlobOfFile { path: path.clone() });
        }
        let place = place_file(&self.source.target, path)?;
        let mut tree = FileTree::new();
        tree.insert(place, file.clone())?;
        Ok((tree, None))
    }

    fn take_folder(&self, folder: Option<&'a BundlePath>) -> Result<Placed, SelectError> {
        let mut taken = Taken::below(Origin::Workspace, self.root, folder);
        taken.entries.retain(|(path, _)| may_be_taken(path));
        if taken.entries.is_empty() {
            return Err(SelectError::EmptyFolder {
                path: self.source.pattern.path.clone(),
            });
        }
        if let Some(glob) = &self.source.glob {
            retain(&mut taken, glob, "glob")?;
        }
        let judged = taken.judge_links(self.links)?;
        let tree = self.source.target.place_tree(folder, judged.tree)?;
        Ok((tree, judged.warning))
    }

    fn take_matches(&self, glob: &Glob) -> Result<Placed, SelectError> {
        if self.source.glob.is_some() {
            return Err(SelectError::TwoGlobs { path: glob.clone() });
        }
        let mut taken = Taken::below(Origin::Workspace, self.root, None);
        taken.entries.retain(|(path, _)| may_be_taken(path));
        retain(&mut taken, glob, "path")?;
        match &self.source.target {
            Target::OwnPath => {
                let judged = taken.judge_links(self.links)?;
                Ok((judged.tree, judged.warning))
            }
            Target::Path(target) => Err(SelectError::AsOfMatches {
                glob: glob.clone(),
                target: target.clone(),
            }),
            Target::Folder(_) => self.gather(&taken),
        }
    }

    /// Places files in one folder by their base names. Links would lead elsewhere from there.
    fn gather(&self, taken: &Taken<'_>) -> Result<Placed, SelectError> {
        let mut tree = FileTree::new();
        let mut origins: BTreeMap<BundlePath, &BundlePath> = BTreeMap::new();
        let mut links = Vec::new();
        for (path, entry) in &taken.entries {
            if let Entry::Link { target } = entry {
                links.push((path, target));
                continue;
            }
            let place = place_file(&self.source.target, path)?;
            if let Some(other) = origins.insert(place.clone(), path) {
                return Err(SelectError::SameName {
                    first: other.clone(),
                    second: path.clone(),
                });
            }
            tree.insert(place, (*entry).clone())?;
        }
        let sentences = links.iter().map(|(path, target)| {
            format!(
                "link {} to {} would lead elsewhere from the folder that `as` names",
                Quoted(path.as_str()),
                Quoted(target)
            )
        });
        let warning = refuse_links(Origin::Workspace, sentences, links.len(), self.links)?;
        Ok((tree, warning))
    }

    fn not_found(&self, path: &BundlePath) -> SelectError {
        let written = &self.source.pattern;
        if let Some((link, target)) = link_above(self.root, path) {
            return SelectError::BelowLink {
                path: path.clone(),
                link: link.clone(),
                target: target.to_owned(),
            };
        }
        let near = nearest_entries(self.root, path.as_str())
            .into_iter()
            .filter(|near| near.split('/').all(|segment| segment != NEVER_TAKEN))
            .map(str::to_owned)
            .collect();
        SelectError::PathNotFound {
            path: path.clone(),
            is_pattern: written.must_be_folder && Glob::is_pattern(path.as_str()),
            near,
        }
    }
}

/// Leaves only what a pattern matches.
fn retain(taken: &mut Taken<'_>, glob: &Glob, field: &'static str) -> Result<(), SelectError> {
    let matching: Vec<_> = taken
        .entries
        .iter()
        .filter(|(path, _)| glob.matches(path))
        .cloned()
        .collect();
    if matching.is_empty() {
        let paths = || taken.entries.iter().map(|(path, _)| path.as_str());
        let near = nearest_paths(glob.as_str(), paths());
        let shown = if near.is_empty() {
            paths().take(3).collect()
        } else {
            near
        };
        return Err(SelectError::NoMatch {
            field,
            glob: glob.clone(),
            folder: taken.folder.cloned(),
            count: taken.entries.len(),
            shown: shown.into_iter().map(str::to_owned).collect(),
        });
    }
    taken.entries = matching;
    Ok(())
}

fn may_be_taken(path: &BundlePath) -> bool {
    path.segments().all(|segment| segment != NEVER_TAKEN)
}

fn place_file(target: &Target, path: &BundlePath) -> Result<BundlePath, Misplaced> {
    target.place_file(path).map_err(|error| Misplaced {
        path: path.clone(),
        error,
    })
}

#[cfg(test)]
mod tests;
