use std::{fmt, str::FromStr};

use crate::{
    path::{BundlePath, PathError, without_leading_dot},
    quote::Quoted,
    tree::FileTree,
};

/// Where a source's files land in the bundle: the `as` field of `local` and `github` (AIP-26).
///
/// Without `as`, files keep the path that they were taken from. So a folder `src/` lands under `src/`, which follows
/// the specification's text and not the shortened paths of its implementer's guide. `as: ./` is the bundle's root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Target {
    /// No `as`: the source's own path.
    #[default]
    OwnPath,
    /// `as` without a trailing `/`: the path that a file gets, or the folder that a folder's contents land in.
    Path(BundlePath),
    /// `as` with a trailing `/`: the folder that receives the file under its own name, or a folder's contents. `None`
    /// is the bundle's root.
    Folder(Option<BundlePath>),
}

impl Target {
    /// Where a source that is one file, at `path` in its repository or workspace, lands in the bundle.
    pub fn place_file(&self, path: &BundlePath) -> Result<BundlePath, PathError> {
        match self {
            Self::OwnPath => Ok(path.clone()),
            Self::Path(target) => Ok(target.clone()),
            Self::Folder(None) => path.file_name().parse(),
            Self::Folder(Some(folder)) => folder.join(&path.file_name().parse()?),
        }
    }

    /// Where a file of a source that is a folder lands in the bundle. `folder` is the source's `path` (`None` for the
    /// whole repository), `relative` the file's path below it.
    pub fn place_below(
        &self,
        folder: Option<&BundlePath>,
        relative: &BundlePath,
    ) -> Result<BundlePath, PathError> {
        self.receiver(folder)
            .map_or_else(|| Ok(relative.clone()), |receiver| receiver.join(relative))
    }

    /// [`place_below`](Self::place_below) for all files of such a source at once.
    pub fn place_tree(&self, folder: Option<&BundlePath>, tree: FileTree) -> Result<FileTree, Misplaced> {
        match self.receiver(folder) {
            None => Ok(tree),
            Some(receiver) => tree
                .inside(receiver)
                .map_err(|(path, error)| Misplaced { path, error }),
        }
    }

    fn receiver<'a>(&'a self, folder: Option<&'a BundlePath>) -> Option<&'a BundlePath> {
        match self {
            Self::OwnPath => folder,
            Self::Path(target) => Some(target),
            Self::Folder(target) => target.as_ref(),
        }
    }
}

/// A file whose place in the bundle would be no path, since it is too long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} does not fit below `as`: {error}", Quoted(path.as_str()))]
pub struct Misplaced {
    /// The file, below the taken folder.
    pub path: BundlePath,
    /// What is wrong with its place.
    pub error: PathError,
}

impl FromStr for Target {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if matches!(text, "." | "./") {
            return Ok(Self::Folder(None));
        }
        let place = without_leading_dot(text);
        match place.strip_suffix('/') {
            Some(folder) if !folder.is_empty() => Ok(Self::Folder(Some(folder.parse()?))),
            _ => place.parse().map(Self::Path),
        }
    }
}

/// The `as` that parses to this target; nothing for [`Target::OwnPath`].
impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnPath => Ok(()),
            Self::Path(path) => write!(out, "{path}"),
            Self::Folder(None) => out.write_str("./"),
            Self::Folder(Some(folder)) => write!(out, "{folder}/"),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::path::PathRule;

    fn path(text: &str) -> BundlePath {
        text.parse().unwrap()
    }

    fn target(text: Option<&str>) -> Target {
        text.map_or(Target::OwnPath, |text| text.parse().unwrap())
    }

    #[test]
    fn a_file_lands_at_as_or_in_the_folder_that_as_names() {
        for (source, written_as, lands_at) in [
            ("package.json", None, "package.json"),
            ("shared/format.ts", None, "shared/format.ts"),
            ("shared/format.ts", Some("lib/iban.ts"), "lib/iban.ts"),
            ("shared/format.ts", Some("./lib/iban.ts"), "lib/iban.ts"),
            ("shared/format.ts", Some("lib"), "lib"),
            ("shared/format.ts", Some("lib/"), "lib/format.ts"),
            ("shared/format.ts", Some("./lib/"), "lib/format.ts"),
            ("shared/format.ts", Some("./"), "format.ts"),
            ("shared/format.ts", Some("."), "format.ts"),
        ] {
            let placed = target(written_as).place_file(&path(source));
            assert_eq!(placed, Ok(path(lands_at)), "{source} as {written_as:?}");
        }
    }

    #[test]
    fn a_folder_lands_under_its_own_path_or_its_contents_under_as() {
        for (folder, relative, written_as, lands_at) in [
            (None, "src/index.ts", None, "src/index.ts"),
            (None, "src/index.ts", Some("vendor"), "vendor/src/index.ts"),
            (None, "src/index.ts", Some("vendor/"), "vendor/src/index.ts"),
            (None, "src/index.ts", Some("./"), "src/index.ts"),
            (Some("src"), "index.ts", None, "src/index.ts"),
            (Some("shared/lib"), "a/b.ts", None, "shared/lib/a/b.ts"),
            (Some("shared/lib"), "a/b.ts", Some("vendor"), "vendor/a/b.ts"),
            (Some("shared/lib"), "a/b.ts", Some("vendor/"), "vendor/a/b.ts"),
            (Some("shared/lib"), "a/b.ts", Some("./"), "a/b.ts"),
        ] {
            let folder = folder.map(path);
            let placed = target(written_as).place_below(folder.as_ref(), &path(relative));
            assert_eq!(
                placed,
                Ok(path(lands_at)),
                "{folder:?} / {relative} as {written_as:?}"
            );
            let tree = |at: &str| FileTree::of_file(path(at), Bytes::new());
            let all = target(written_as).place_tree(folder.as_ref(), tree(relative));
            assert_eq!(all, Ok(tree(lands_at)));
        }
    }

    #[test]
    fn as_never_leaves_the_bundle() {
        for (text, rule) in [
            ("", PathRule::Empty),
            ("/", PathRule::Absolute),
            ("/vendor", PathRule::Absolute),
            ("..", PathRule::ParentSegment),
            ("../", PathRule::ParentSegment),
            ("vendor/../..", PathRule::ParentSegment),
            ("vendor//", PathRule::TrailingSlash),
            ("a\0", PathRule::Nul),
        ] {
            assert_eq!(
                text.parse::<Target>().map_err(|error| error.rule),
                Err(rule),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_target_prints_as_it_may_be_written() {
        for text in ["lib", "lib/x.ts", "lib/", "./"] {
            assert_eq!(target(Some(text)).to_string(), text);
        }
    }

    #[test]
    fn a_place_that_gets_too_long_is_refused() {
        let relative = path(&["x".repeat(250).as_str(); 4].join("/"));
        let placed = target(Some("a-folder-with-a-name-2/")).place_below(None, &relative);
        assert_eq!(
            placed.map_err(|error| error.rule),
            Err(PathRule::TooLong { bytes: 1_026 })
        );
    }
}
