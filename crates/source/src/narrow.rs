//! From a repository's tree to the files that one source takes of it.

use codeworkspace_bundle::code::{GithubSource, Misplaced};
use codeworkspace_bundle::{
    BundlePath, Entry, FileTree, JudgeError, LinkPolicy, Origin, Taken, link_above, nearest_entries,
    source_warnings,
};

use crate::archive::RepositoryTree;
use crate::error::{SourceError, SourceErrorReason as Reason, listed, quoted};

/// How many paths one sentence names.
const NAMES_SHOWN: usize = 3;

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
            let target = source.target.place_file(path).map_err(|error| {
                misplaced(&Misplaced {
                    path: path.clone(),
                    error,
                })
            })?;
            let mut files = FileTree::new();
            files
                .insert(target, file.clone())
                .map_err(|error| SourceError::new(Reason::ArchiveRefused, error.to_string()))?;
            let warnings = warnings(tree, source, &files);
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
    let taken = Taken::below(Origin::Repository, &tree.entries, folder);
    if let (Some(folder), true) = (folder, taken.entries.is_empty()) {
        return Err(not_found(tree, folder));
    }
    let judged = taken.judge_links(policy).map_err(|error| refused(&error))?;
    let files = source
        .target
        .place_tree(folder, judged.tree)
        .map_err(|error| misplaced(&error))?;
    let mut warnings = warnings(tree, source, &files);
    warnings.extend(judged.warning);
    Ok((files, warnings))
}

fn refused(error: &JudgeError) -> SourceError {
    let reason = match error {
        JudgeError::Links(_) => Reason::LinkRefused,
        JudgeError::Tree(_) => Reason::ArchiveRefused,
    };
    SourceError::new(reason, error.to_string())
}

fn misplaced(error: &Misplaced) -> SourceError {
    SourceError::new(Reason::TooLarge, error.to_string())
}

fn not_found(tree: &RepositoryTree, path: &BundlePath) -> SourceError {
    let subject = format!("`path` {}", quoted(path.as_str()));
    let text = if let Some(empty) = empty_at(tree, path) {
        format!("{subject} is not in the archive: {}", emptiness(&[empty]))
    } else if let Some((link, target)) = link_above(&tree.entries, path) {
        format!(
            "{subject} goes through the symbolic link {} to {}; write the path that it leads to",
            quoted(link.as_str()),
            quoted(target)
        )
    } else {
        let near: Vec<String> = nearest_entries(&tree.entries, path.as_str())
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

/// What the archive lacks and what is wrong with the files in it, so that a run does not fail far from the cause.
fn warnings(tree: &RepositoryTree, source: &GithubSource, files: &FileTree) -> Vec<String> {
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
    warnings.extend(source_warnings(files, Origin::Repository));
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
