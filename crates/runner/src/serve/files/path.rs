//! Paths that callers write.

use codeworkspace_protocol::session::{ErrorCode, SessionError};

/// Linux's `NAME_MAX` and `PATH_MAX`.
const MAX_SEGMENT_BYTES: usize = 255;
const MAX_PATH_BYTES: usize = 4096;

/// A path below the session's root: at least one segment, each a plain name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::serve) struct SessionPath(String);

impl SessionPath {
    /// Reads a relative path. `.` and repeated or trailing slashes mean nothing; `..` is refused even where it would stay inside,
    /// since what it means depends on links. `None` is the root itself.
    pub(in crate::serve) fn parse(text: &str) -> Result<Option<Self>, SessionError> {
        let refuse = |why: &str| {
            let shown: String = text.chars().take(200).collect();
            SessionError::new(ErrorCode::InvalidPath, format!("the path `{shown}` {why}"))
        };
        if text.starts_with('/') {
            return Err(refuse("is absolute; give it relative to the session's root"));
        }
        if text.contains('\0') {
            return Err(refuse("holds a NUL character"));
        }
        let mut segments = Vec::new();
        for segment in text.split('/') {
            match segment {
                "" | "." => {}
                ".." => return Err(refuse("goes up with `..`; the session's root cannot be left")),
                segment if segment.len() > MAX_SEGMENT_BYTES => {
                    return Err(refuse("holds a name of more than 255 bytes"));
                }
                segment => segments.push(segment),
            }
        }
        let path = segments.join("/");
        if path.len() >= MAX_PATH_BYTES {
            return Err(refuse("is longer than 4,095 bytes"));
        }
        Ok((!path.is_empty()).then_some(Self(path)))
    }

    /// Reads the path of a file or folder that is not the root.
    pub(in crate::serve) fn parse_inner(text: &str) -> Result<Self, SessionError> {
        Self::parse(text)?.ok_or_else(|| {
            SessionError::new(
                ErrorCode::InvalidPath,
                "the path is the session's root itself; name something in it",
            )
        })
    }

    pub(in crate::serve) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The folder that holds it; `None` is the root.
    pub(super) fn folder(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(folder, _)| Self(folder.to_owned()))
    }

    pub(super) fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// Whether it lies somewhere in `folder`.
    pub(super) fn is_below(&self, folder: &Self) -> bool {
        self.0
            .strip_prefix(&folder.0)
            .is_some_and(|rest| rest.starts_with('/'))
    }

    pub(super) fn join(folder: Option<&Self>, name: &str) -> Self {
        match folder {
            Some(folder) => Self(format!("{}/{name}", folder.0)),
            None => Self(name.to_owned()),
        }
    }
}

impl std::fmt::Display for SessionPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Result<Option<String>, String> {
        SessionPath::parse(text)
            .map(|path| path.map(|path| path.0))
            .map_err(|error| error.message)
    }

    #[test]
    fn unusual_names_are_names() {
        for name in [
            "a b",
            "100%",
            "%2e%2e",
            "#1",
            "what?",
            "größe 文件 🦀",
            "...",
            "a\\b",
            "-rf",
            "new\nline",
            "…",
        ] {
            assert_eq!(parsed(name), Ok(Some(name.to_owned())), "{name}");
        }
    }

    #[test]
    fn the_same_place_has_one_spelling() {
        for text in ["data/x", "./data/x", "data//x", "data/./x", "data/x/"] {
            assert_eq!(parsed(text), Ok(Some("data/x".to_owned())), "{text}");
        }
        for root in ["", ".", "./", "././"] {
            assert_eq!(parsed(root), Ok(None), "{root}");
        }
        assert!(SessionPath::parse_inner("./").is_err());
    }

    #[test]
    fn what_leaves_the_root_or_is_no_name_is_refused() {
        let long = "x".repeat(256);
        let longer = "x/".repeat(2049);
        for (text, why) in [
            ("/workspace/x", "is absolute"),
            ("/", "is absolute"),
            ("..", "goes up"),
            ("a/../b", "goes up"),
            ("a\0b", "NUL"),
            (long.as_str(), "255 bytes"),
            (longer.as_str(), "4,095 bytes"),
        ] {
            assert!(parsed(text).unwrap_err().contains(why), "{text}");
        }
        assert!(parsed(&"x".repeat(255)).is_ok());
    }

    proptest! {
        #[test]
        fn whatever_is_written_stays_below_the_root(text in "[a./\\\\\0%é]{0,20}|.{0,40}") {
            if let Ok(Some(path)) = SessionPath::parse(&text) {
                prop_assert!(path.segments().all(|segment| !matches!(segment, "" | "." | "..")));
                prop_assert!(!path.as_str().contains('\0'));
                prop_assert_eq!(SessionPath::parse(path.as_str()), Ok(Some(path.clone())));
                let folder = path.folder();
                prop_assert_eq!(SessionPath::join(folder.as_ref(), path.name()), path.clone());
                prop_assert!(folder.is_none_or(|folder| path.is_below(&folder)));
            }
        }
    }
}
