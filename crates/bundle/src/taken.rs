//! What a source takes of the place that its files come from, and which of the links in it may stay.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Bound,
};

use crate::{
    link::{LinkError, LinkRule, link_destination},
    near::nearest_paths,
    path::BundlePath,
    quote::{Quoted, shortened},
    tree::{Entry, FileTree, Found, TreeError},
};

/// Links that one message spells out; the rest are counted.
const MOST_SHOWN: usize = 3;
/// Longest sentence about one link in bytes, so that three of them fit into a message.
const LONGEST_SENTENCE: usize = 280;
/// How often links are looked through again after some were left out. Each round can only take out links whose folder
/// has become empty, so honest trees need one.
const MOST_ROUNDS: usize = 10;

/// Files and links as they are found, by path. Unlike those of a [`FileTree`], the links may lead anywhere: whether one
/// may stay is a question of what a source takes.
pub type Entries = BTreeMap<BundlePath, Entry>;

/// What becomes of symbolic links that lead out of a source, or nowhere. Links inside a source are always kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LinkPolicy {
    /// They are an error.
    #[default]
    Keep,
    /// They are left out, with a warning.
    Skip,
}

/// Where entries come from, for the words of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A repository, by way of GitHub's archive.
    Repository,
    /// The workspace's root, or its manifest.
    Workspace,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Repository => "repository",
            Self::Workspace => "workspace",
        })
    }
}

/// The entries that a source takes of an origin, links not yet judged.
#[derive(Debug, Clone)]
pub struct Taken<'a> {
    /// Where they come from.
    pub origin: Origin,
    /// Everything that is there.
    pub whole: &'a Entries,
    /// The folder that is taken; `None` is the whole.
    pub folder: Option<&'a BundlePath>,
    /// What is taken, by the path below that folder.
    pub entries: Vec<(BundlePath, &'a Entry)>,
}

impl<'a> Taken<'a> {
    /// Everything in a folder; nothing if there is no such folder.
    pub fn below(origin: Origin, whole: &'a Entries, folder: Option<&'a BundlePath>) -> Self {
        let entries = match folder {
            Some(folder) => inside(whole, folder)
                .filter_map(|(path, entry)| Some((path.below(folder)?, entry)))
                .collect(),
            None => whole.iter().map(|(path, entry)| (path.clone(), entry)).collect(),
        };
        Self {
            origin,
            whole,
            folder,
            entries,
        }
    }

    /// The files, and the links that lead to something among what is taken: what a link leads to elsewhere will not be in
    /// the bundle. For the other links the policy decides between an error and a warning.
    pub fn judge_links(&self, policy: LinkPolicy) -> Result<Judged, JudgeError> {
        let mut refused: BTreeSet<&BundlePath> = BTreeSet::new();
        for _ in 0..MOST_ROUNDS {
            let mut tree = FileTree::new();
            let mut links = Vec::new();
            for (path, entry) in &self.entries {
                if let Entry::Link { target } = entry {
                    if refused.contains(path) || link_destination(path, target).is_err() {
                        refused.insert(path);
                        continue;
                    }
                    links.push(path);
                }
                tree.insert(path.clone(), (*entry).clone())?;
            }
            let dangling: Vec<_> = links
                .into_iter()
                .filter(|path| tree.find(path) == Found::Nothing)
                .collect();
            if dangling.is_empty() {
                let warning = self.refuse(&refused, policy)?;
                return Ok(Judged { tree, warning });
            }
            refused.extend(dangling);
        }
        let text = "symbolic links lead to folders of links that lead nowhere";
        Err(JudgeError::Links(text.to_owned()))
    }

    fn refuse(
        &self,
        refused: &BTreeSet<&BundlePath>,
        policy: LinkPolicy,
    ) -> Result<Option<String>, JudgeError> {
        let sentences = self
            .entries
            .iter()
            .filter(|(path, _)| refused.contains(path))
            .filter_map(|(path, entry)| match entry {
                Entry::Link { target } => Some(self.sentence(path, target)),
                Entry::File { .. } => None,
            })
            .take(MOST_SHOWN);
        refuse_links(self.origin, sentences, refused.len(), policy)
    }

    /// Why the link at `path` below the folder cannot stay.
    fn sentence(&self, path: &BundlePath, target: &str) -> String {
        let whole = self.path_in_origin(path);
        let subject = format!("link {} to {}", Quoted(whole.as_str()), Quoted(target));
        let origin = self.origin;
        let place = link_destination(&whole, target);
        // The paths in the bundle begin below the folder.
        let comes_back = link_destination(path, target).is_err();
        match (place, self.folder) {
            (Ok(place), Some(folder))
                if is_outside(place.as_ref(), folder) && exists(self.whole, place.as_ref()) =>
            {
                format!(
                    "{subject} leads to something in the {origin} but outside `path` {}; take a folder that holds both",
                    Quoted(folder.as_str())
                )
            }
            (Ok(place), Some(folder)) if comes_back && exists(self.whole, place.as_ref()) => format!(
                "{subject} leaves `path` {} and comes back, by folders that are not in the bundle; write it without the \
                 detour",
                Quoted(folder.as_str())
            ),
            (Ok(place), _) if exists(self.whole, place.as_ref()) && !self.takes(place.as_ref()) => {
                format!("{subject} leads to something in the {origin} that the source does not take")
            }
            (Ok(_), _) => format!("{subject} leads to nothing in the {origin}"),
            (
                Err(LinkError {
                    rule: LinkRule::Outside,
                    ..
                }),
                _,
            ) => format!("{subject} leads out of the {origin}"),
            (Err(LinkError { rule, .. }), _) => format!("{subject} {rule}"),
        }
    }

    fn path_in_origin(&self, path: &BundlePath) -> BundlePath {
        self.folder
            .and_then(|folder| folder.join(path).ok())
            .unwrap_or_else(|| path.clone())
    }

    /// Whether something is taken at a place of the origin, or below it.
    fn takes(&self, place: Option<&BundlePath>) -> bool {
        self.entries.iter().any(|(path, _)| {
            let path = self.path_in_origin(path);
            place.is_none_or(|place| path == *place || path.below(place).is_some())
        })
    }
}

/// What is left of the taken entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Files, and links that lead to something in the tree, by the path below the taken folder.
    pub tree: FileTree,
    /// Which links were left out.
    pub warning: Option<String>,
}

/// Why what was taken cannot be delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// Links that may not stay, by path and target.
    #[error("{0}")]
    Links(String),
    /// Entries that do not fit together, which no file system has.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// By the policy an error or a warning about links, the first of which have a sentence.
pub(crate) fn refuse_links(
    origin: Origin,
    sentences: impl Iterator<Item = String>,
    count: usize,
    policy: LinkPolicy,
) -> Result<Option<String>, JudgeError> {
    if count == 0 {
        return Ok(None);
    }
    let shown: Vec<String> = sentences
        .take(MOST_SHOWN)
        .map(|sentence| shortened(sentence, LONGEST_SENTENCE))
        .collect();
    let mut text = shown.join("; ");
    if count > shown.len() {
        text = format!("{text}; and {} more", count - shown.len());
    }
    match policy {
        LinkPolicy::Keep => Err(JudgeError::Links(format!(
            "{text}; mend the {origin}, or set `links: Skip` to leave such links out"
        ))),
        LinkPolicy::Skip => Ok(Some(format!("{text}, left out since `links` is `Skip`"))),
    }
}

fn is_outside(place: Option<&BundlePath>, folder: &BundlePath) -> bool {
    place.is_none_or(|place| place != folder && place.below(folder).is_none())
}

fn exists(whole: &Entries, place: Option<&BundlePath>) -> bool {
    place.is_none_or(|place| whole.contains_key(place) || inside(whole, place).next().is_some())
}

/// The entries inside a folder.
pub(crate) fn inside<'a>(
    whole: &'a Entries,
    folder: &BundlePath,
) -> impl Iterator<Item = (&'a BundlePath, &'a Entry)> {
    let prefix = format!("{folder}/");
    whole
        .range::<str, _>((Bound::Excluded(prefix.as_str()), Bound::Unbounded))
        .take_while(move |(path, _)| path.as_str().starts_with(&prefix))
}

/// The symbolic link among the folders of a path, if there is one, and its target.
pub fn link_above<'a>(whole: &'a Entries, path: &BundlePath) -> Option<(&'a BundlePath, &'a str)> {
    path.folders()
        .find_map(|folder| match whole.get_key_value(folder)? {
            (link, Entry::Link { target }) => Some((link, target.as_str())),
            (_, Entry::File { .. }) => None,
        })
}

/// Files and folders that somebody may have meant instead of one that does not exist; see [`nearest_paths`].
pub fn nearest_entries<'a>(whole: &'a Entries, path: &str) -> Vec<&'a str> {
    let folders: BTreeSet<&str> = whole.keys().flat_map(BundlePath::folders).collect();
    nearest_paths(path, whole.keys().map(BundlePath::as_str).chain(folders))
}
