use crate::{
    code::{Misplaced, WorkspacePath},
    glob::Glob,
    path::BundlePath,
    quote::{Listed, Quoted},
    taken::JudgeError,
    tree::TreeError,
};

/// Why a `local` source takes nothing, in the words of its fields. Names at most three files, and no file's content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// There is neither a file nor a folder of that path.
    #[error("`path` {} does not exist in the workspace{}", Quoted(path.as_str()), hint(*is_pattern, near))]
    PathNotFound {
        /// The path.
        path: BundlePath,
        /// Whether it has the characters of a pattern, but a `/` at its end.
        is_pattern: bool,
        /// What may have been meant.
        near: Vec<String>,
    },
    /// Where a folder of that path would be is a symbolic link.
    #[error(
        "`path` {} goes through the symbolic link {} to {}; write the path that it leads to",
        Quoted(path.as_str()),
        Quoted(link.as_str()),
        Quoted(target)
    )]
    BelowLink {
        /// The path.
        path: BundlePath,
        /// The link above it.
        link: BundlePath,
        /// Where that leads.
        target: String,
    },
    /// A folder was asked for and a file is there.
    #[error("`path` {} ends in `/`, so it has to be a folder, but it is a file: leave out the `/`", Quoted(&format!("{path}/")))]
    NotAFolder {
        /// The path.
        path: BundlePath,
    },
    /// The folder, or the whole workspace, has no files but those that are never taken.
    #[error("`path` {} has no files that can be taken", Quoted(&path.to_string()))]
    EmptyFolder {
        /// The folder.
        path: WorkspacePath,
    },
    /// History and remotes of a repository.
    #[error("`path` {} is refused: what is in `.git` is never taken, since it may hold credentials", Quoted(path.as_str()))]
    NeverTaken {
        /// The path.
        path: BundlePath,
    },
    /// No file is chosen by a pattern.
    #[error(
        "`{field}` {} matches none of the {count} files of {}: there are {}{}",
        Quoted(glob.as_str()),
        place(folder.as_ref()),
        Listed(&texts(shown)),
        more(*count, shown.len())
    )]
    NoMatch {
        /// The field that has the pattern.
        field: &'static str,
        /// The pattern.
        glob: Glob,
        /// Where was looked; `None` is the whole workspace.
        folder: Option<BundlePath>,
        /// How many files are there.
        count: usize,
        /// Some of them, at most three: the nearest if any are near.
        shown: Vec<String>,
    },
    /// A `glob` chooses among the files of a folder.
    #[error("`glob` chooses among the files of a folder, but `path` {} is a file: leave out `glob`", Quoted(path.as_str()))]
    GlobOfFile {
        /// The file.
        path: BundlePath,
    },
    /// Two patterns.
    #[error(
        "`glob` chooses among the files of a folder, but `path` {} is a pattern itself: write the folder in `path` and one \
         pattern in `glob`",
        Quoted(path.as_str())
    )]
    TwoGlobs {
        /// The pattern in `path`.
        path: Glob,
    },
    /// Many files, one place.
    #[error(
        "`as` {} is the place of one file, but `path` {} is a pattern: end `as` in `/` to make it the folder that receives \
         the matches",
        Quoted(target.as_str()),
        Quoted(glob.as_str())
    )]
    AsOfMatches {
        /// The pattern in `path`.
        glob: Glob,
        /// The place.
        target: BundlePath,
    },
    /// Two files would land in one place.
    #[error(
        "{} and {} have the same name, and would land in one place below `as`: to keep their folders, write the folder that \
         holds both in `path` and the pattern in `glob`",
        Quoted(first.as_str()),
        Quoted(second.as_str())
    )]
    SameName {
        /// The first in byte order.
        first: BundlePath,
        /// The other.
        second: BundlePath,
    },
    /// A place in the bundle would be no path.
    #[error(transparent)]
    Misplaced(#[from] Misplaced),
    /// Symbolic links that lead out of what is taken, or nowhere.
    #[error("{0}")]
    LinkRefused(String),
    /// The root itself has entries that do not fit together.
    #[error("the workspace's root has entries that do not fit together: {0}")]
    RootRefused(#[from] TreeError),
}

impl SelectError {
    /// The fault's name from a closed list, as it stands in status.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::PathNotFound { .. } | Self::BelowLink { .. } => "PathNotFound",
            Self::NotAFolder { .. } => "NotAFolder",
            Self::EmptyFolder { .. } | Self::NoMatch { .. } => "NoMatch",
            Self::NeverTaken { .. } => "PathRefused",
            Self::GlobOfFile { .. } | Self::TwoGlobs { .. } => "GlobRefused",
            Self::AsOfMatches { .. } | Self::SameName { .. } | Self::Misplaced(_) => "AsRefused",
            Self::LinkRefused(_) => "LinkRefused",
            Self::RootRefused(_) => "RootRefused",
        }
    }
}

impl From<JudgeError> for SelectError {
    fn from(error: JudgeError) -> Self {
        match error {
            JudgeError::Links(message) => Self::LinkRefused(message),
            JudgeError::Tree(error) => Self::RootRefused(error),
        }
    }
}

fn hint(is_pattern: bool, near: &[String]) -> String {
    if is_pattern {
        return "; a pattern takes files, so write `/**` at its end for everything below the folders that match".to_owned();
    }
    match near {
        [] => String::new(),
        near => format!("; did you mean {}?", Listed(&texts(near))),
    }
}

fn place(folder: Option<&BundlePath>) -> String {
    folder.map_or_else(
        || "the workspace".to_owned(),
        |folder| Quoted(folder.as_str()).to_string(),
    )
}

fn more(count: usize, shown: usize) -> String {
    match count.saturating_sub(shown) {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}
