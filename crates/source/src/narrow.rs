//! From a repository's tree to the files that one source takes of it.

use std::collections::BTreeSet;

use codeworkspace_bundle::code::{GithubSource, Target};
use codeworkspace_bundle::{
    BundlePath, Entry, FileTree, Found, LinkError, LinkRule, PathError, link_destination, nearest_paths,
};

use crate::archive::RepositoryTree;
use crate::error::{SourceError, SourceErrorReason as Reason, listed, quoted, shortened};
use crate::link_policy::LinkPolicy;

/// How many paths one sentence names.
const NAMES_SHOWN: usize = 3;
/// Longest sentence about one link, so that three of them fit into a message.
const MAXIMUM_LINK_SENTENCE_BYTES: usize = 280;
/// How often links are looked through again after some were left out. Each round can only take out links whose folder
/// has become empty, so honest trees need one.
const MAXIMUM_ROUNDS: usize = 10;
/// What every Git LFS pointer begins with.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
/// A pointer is never larger.
const MAXIMUM_LFS_POINTER_BYTES: usize = 1024;

/// The files of a source, placed, and what its author should know.
pub(crate) type Narrowed = (FileTree, Vec<String>);

/// Takes what `source.path` names, judges links, and places the rest by `source.target`.
pub(crate) fn narrow(
    tree: &RepositoryTree,
    source: &GithubSource,
    links: LinkPolicy,
) -> Result<Narrowed, SourceError> {
    let Some(path) = &source.path else {
        return take_folder(tree, source, links);
    };
    match tree.entries.get(path) {
        Some(file @ Entry::File { .. }) => {
            let target = source
                .target
                .place_file(path)
                .map_err(|error| misplaced(path, &error))?;
            let mut files = FileTree::new();
            insert(&mut files, target, file.clone())?;
            let warnings = warnings(tree, source, &[(path.clone(), file)]);
            Ok((files, warnings))
        }
        Some(Entry::Link { target }) => {
            let text = format!(
                "`path` {} is a symbolic link to {}; write what it leads to as `path`",
                quoted(path.as_str()),
                quoted(target)
            );
            Err(SourceError::new(Reason::LinkRefused, text))
        }
        None => take_folder(tree, source, links),
    }
}

fn take_folder(
    tree: &RepositoryTree,
    source: &GithubSource,
    policy: LinkPolicy,
) -> Result<Narrowed, SourceError> {
    let folder = source.path.as_ref();
    let taken: Vec<(BundlePath, &Entry)> = tree
        .entries
        .iter()
        .filter_map(|(path, entry)| match folder {
            Some(folder) => path.below(folder).map(|relative| (relative, entry)),
            None => Some((path.clone(), entry)),
        })
        .collect();
    if let (Some(folder), true) = (folder, taken.is_empty()) {
        return Err(not_found(tree, folder));
    }
    let (kept, refused) = judge_links(tree, folder, &taken)?;
    if policy == LinkPolicy::Keep && !refused.is_empty() {
        return Err(links_refused(&refused));
    }
    let mut warnings = warnings(tree, source, &taken);
    if !refused.is_empty() {
        warnings.push(format!(
            "{}, left out since `links` is `Skip`",
            summed_up(&refused)
        ));
    }
    // Then a path below the folder already is the place in the bundle, and thousands of entries need not be placed anew.
    let is_placed = match (&source.target, folder) {
        (Target::Folder(None), _) | (Target::OwnPath, None) => true,
        (Target::Folder(Some(_)) | Target::Path(_) | Target::OwnPath, _) => false,
    };
    if is_placed {
        return Ok((kept, warnings));
    }
    let mut files = FileTree::new();
    for (relative, entry) in kept {
        let target = source
            .target
            .place_below(folder, &relative)
            .map_err(|error| misplaced(&relative, &error))?;
        insert(&mut files, target, entry)?;
    }
    Ok((files, warnings))
}

/// Splits entries into those that can stay and sentences about links that cannot.
///
/// A link can stay when it leads to something in `taken`: what it leads to elsewhere will not be in the bundle.
fn judge_links(
    tree: &RepositoryTree,
    folder: Option<&BundlePath>,
    taken: &[(BundlePath, &Entry)],
) -> Result<(FileTree, Vec<String>), SourceError> {
    let mut refused = BTreeSet::new();
    for _ in 0..MAXIMUM_ROUNDS {
        let mut kept = FileTree::new();
        let mut links = Vec::new();
        for (path, entry) in taken {
            if let Entry::Link { target } = entry {
                if refused.contains(path) || link_destination(path, target).is_err() {
                    refused.insert(path.clone());
                    continue;
                }
                links.push(path);
            }
            insert(&mut kept, path.clone(), (*entry).clone())?;
        }
        let dangling: Vec<_> = links
            .into_iter()
            .filter(|path| kept.find(path) == Found::Nothing)
            .collect();
        if dangling.is_empty() {
            let sentences = taken
                .iter()
                .filter(|(path, _)| refused.contains(path))
                .filter_map(|(path, entry)| match entry {
                    Entry::Link { target } => Some(sentence(tree, folder, path, target)),
                    Entry::File { .. } => None,
                });
            return Ok((kept, sentences.collect()));
        }
        refused.extend(dangling.into_iter().cloned());
    }
    Err(SourceError::new(
        Reason::LinkRefused,
        "symbolic links lead to folders of links that lead nowhere",
    ))
}

/// Why this link, at `path` below `folder`, cannot stay.
fn sentence(tree: &RepositoryTree, folder: Option<&BundlePath>, path: &BundlePath, target: &str) -> String {
    let whole = match folder {
        Some(folder) => folder.join(path).unwrap_or_else(|_| path.clone()),
        None => path.clone(),
    };
    let subject = format!("link {} to {}", quoted(whole.as_str()), quoted(target));
    let text = match (link_destination(&whole, target), folder) {
        (Ok(place), Some(folder)) if is_outside(place.as_ref(), folder) && exists(tree, place.as_ref()) => {
            format!(
                "{subject} leads to something in the repository but outside `path` {}; take a folder that holds both",
                quoted(folder.as_str())
            )
        }
        (Ok(_), _) => format!("{subject} leads to nothing in the repository"),
        (
            Err(LinkError {
                rule: LinkRule::Outside,
                ..
            }),
            _,
        ) => format!("{subject} leads out of the repository"),
        (Err(LinkError { rule, .. }), _) => format!("{subject} {rule}"),
    };
    shortened(text, MAXIMUM_LINK_SENTENCE_BYTES)
}

fn is_outside(place: Option<&BundlePath>, folder: &BundlePath) -> bool {
    place.is_none_or(|place| place != folder && place.below(folder).is_none())
}

fn exists(tree: &RepositoryTree, place: Option<&BundlePath>) -> bool {
    place.is_none_or(|place| {
        tree.entries.contains_key(place) || tree.entries.keys().any(|path| path.below(place).is_some())
    })
}

fn links_refused(sentences: &[String]) -> SourceError {
    let text = format!(
        "{}; mend the repository, or set `links: Skip` to leave such links out",
        summed_up(sentences)
    );
    SourceError::new(Reason::LinkRefused, text)
}

fn summed_up(sentences: &[String]) -> String {
    let shown = sentences
        .iter()
        .take(NAMES_SHOWN)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join("; ");
    match sentences.len().checked_sub(NAMES_SHOWN) {
        Some(more @ 1..) => format!("{shown}; and {more} more"),
        _ => shown,
    }
}

fn not_found(tree: &RepositoryTree, path: &BundlePath) -> SourceError {
    let subject = format!("`path` {}", quoted(path.as_str()));
    let text = if let Some(empty) = empty_at(tree, path) {
        format!("{subject} is not in the archive: {}", emptiness(&[empty]))
    } else if let Some((link, target)) = link_above(tree, path) {
        format!(
            "{subject} goes through the symbolic link {link} to {target}; write the path that it leads to"
        )
    } else {
        let folders: BTreeSet<&str> = tree.entries.keys().flat_map(BundlePath::folders).collect();
        let candidates = tree.entries.keys().map(BundlePath::as_str).chain(folders);
        let near: Vec<String> = nearest_paths(path.as_str(), candidates)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let hint = match (near.is_empty(), tree.ignores_exports) {
            (false, _) => format!("; did you mean {}?", listed(&near, NAMES_SHOWN)),
            (true, true) => "; its .gitattributes leaves paths out of archives (export-ignore)".to_owned(),
            (true, false) => String::new(),
        };
        format!("{subject} does not exist in the repository at this commit{hint}")
    };
    SourceError::new(Reason::PathNotFound, text)
}

/// The empty folder that `path` is or lies in.
fn empty_at(tree: &RepositoryTree, path: &BundlePath) -> Option<String> {
    let mut places = path.folders().chain([path.as_str()]);
    places
        .find(|place| tree.empty_folders.contains(*place))
        .map(str::to_owned)
}

fn link_above(tree: &RepositoryTree, path: &BundlePath) -> Option<(String, String)> {
    path.folders().find_map(|folder| match tree.entries.get(folder) {
        Some(Entry::Link { target }) => Some((quoted(folder), quoted(target))),
        _ => None,
    })
}

/// What the archive lacks, so that a run does not fail far from the cause.
fn warnings(tree: &RepositoryTree, source: &GithubSource, taken: &[(BundlePath, &Entry)]) -> Vec<String> {
    let mut warnings = Vec::new();
    let empty: Vec<String> = tree
        .empty_folders
        .iter()
        .filter(|folder| {
            source
                .path
                .as_ref()
                .is_none_or(|path| folder.below(path).is_some())
        })
        .map(|folder| folder.as_str().to_owned())
        .collect();
    if !empty.is_empty() {
        warnings.push(emptiness(&empty));
    }
    let pointers: Vec<String> = taken
        .iter()
        .filter(|(_, entry)| is_lfs_pointer(entry))
        .map(|(path, _)| path.as_str().to_owned())
        .collect();
    if !pointers.is_empty() {
        warnings.push(format!(
            "{} only point to files in Git LFS, which GitHub's archives leave out",
            listed(&pointers, NAMES_SHOWN)
        ));
    }
    if tree.ignores_exports {
        warnings
            .push("the repository's .gitattributes leaves paths out of archives (export-ignore)".to_owned());
    }
    if tree.substitutes_exports {
        warnings.push(
            "the repository's .gitattributes has files rewritten in archives (export-subst), so the same commit may \
             give other bytes later"
                .to_owned(),
        );
    }
    warnings
}

fn emptiness(folders: &[String]) -> String {
    format!(
        "{} has no files in GitHub's archive: a submodule, which archives leave out, or a folder that export-ignore empties",
        listed(folders, NAMES_SHOWN)
    )
}

fn is_lfs_pointer(entry: &Entry) -> bool {
    match entry {
        Entry::File { contents, .. } => {
            contents.len() <= MAXIMUM_LFS_POINTER_BYTES && contents.starts_with(LFS_POINTER)
        }
        Entry::Link { .. } => false,
    }
}

fn misplaced(path: &BundlePath, error: &PathError) -> SourceError {
    let text = format!("{} does not fit below `as`: {error}", quoted(path.as_str()));
    SourceError::new(Reason::TooLarge, text)
}

/// Adds an entry whose place is free: archives hold no path twice, and placing keeps paths apart.
fn insert(files: &mut FileTree, path: BundlePath, entry: Entry) -> Result<(), SourceError> {
    match files.insert(path, entry) {
        Ok(_) => Ok(()),
        Err(error) => Err(SourceError::new(Reason::ArchiveRefused, error.to_string())),
    }
}
