//! Commits with fixed dates, written as a stream for `git fast-import`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

/// 2024-01-01T00:00:00Z: the date of commits and tags that name none, so that ids are the same everywhere.
const DEFAULT_DATE_SECONDS: i64 = 1_704_067_200;
/// Author, committer and tagger of everything that this server writes.
pub(crate) const IDENTITY: &str = "Fixture <fixture@example.invalid>";

/// The date that a commit or tag carries when none is given.
pub(crate) fn default_date() -> Timestamp {
    Timestamp::from_second(DEFAULT_DATE_SECONDS).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// One change to a path of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A regular file.
    File {
        /// The file's bytes.
        contents: Vec<u8>,
        /// Whether git records the mode 755 instead of 644.
        executable: bool,
    },
    /// A symbolic link with this target.
    Link(String),
    /// A submodule at this commit id; the commit need not exist anywhere.
    Submodule(String),
    /// The path (file or folder) goes away.
    Delete,
}

impl<'de> Deserialize<'de> for Change {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct Fields {
            content: Option<String>,
            base64: Option<String>,
            link: Option<String>,
            submodule: Option<String>,
            #[serde(default)]
            executable: bool,
        }
        use base64::Engine as _;
        use serde::de::Error as _;

        let Some(fields) = Option::<Fields>::deserialize(deserializer)? else {
            return Ok(Self::Delete);
        };
        let executable = fields.executable;
        match (fields.content, fields.base64, fields.link, fields.submodule) {
            (Some(text), None, None, None) => Ok(Self::File {
                contents: text.into_bytes(),
                executable,
            }),
            (None, Some(text), None, None) => base64::engine::general_purpose::STANDARD
                .decode(text)
                .map(|contents| Self::File { contents, executable })
                .map_err(|error| D::Error::custom(format!("base64: {error}"))),
            (None, None, Some(target), None) => Ok(Self::Link(target)),
            (None, None, None, Some(commit)) => Ok(Self::Submodule(commit)),
            _ => Err(D::Error::custom(
                "give exactly one of content, base64, link and submodule, or null to delete",
            )),
        }
    }
}

/// A commit to add to a branch, which it creates when it does not exist.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Commit {
    #[serde(default = "main_branch")]
    pub(crate) branch: String,
    #[serde(default = "default_message")]
    pub(crate) message: String,
    #[serde(default = "default_date")]
    pub(crate) date: Timestamp,
    #[serde(default)]
    pub(crate) files: BTreeMap<String, Change>,
}

fn main_branch() -> String {
    "main".to_owned()
}

fn default_message() -> String {
    "Fixture".to_owned()
}

impl Commit {
    /// An empty commit on top of `branch`, with the fixed date.
    pub fn on(branch: impl Into<String>) -> Self {
        Self {
            branch: branch.into(),
            message: default_message(),
            date: default_date(),
            files: BTreeMap::new(),
        }
    }

    /// Sets the commit message, which makes commits of equal content differ.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Sets author and committer date.
    #[must_use]
    pub fn date(mut self, date: Timestamp) -> Self {
        self.date = date;
        self
    }

    /// Writes a regular file.
    #[must_use]
    pub fn file(self, path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        self.change(
            path,
            Change::File {
                contents: contents.into(),
                executable: false,
            },
        )
    }

    /// Writes a file with the executable bit.
    #[must_use]
    pub fn executable(self, path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        self.change(
            path,
            Change::File {
                contents: contents.into(),
                executable: true,
            },
        )
    }

    /// Makes a symbolic link.
    #[must_use]
    pub fn link(self, path: impl Into<String>, target: impl Into<String>) -> Self {
        self.change(path, Change::Link(target.into()))
    }

    /// Adds any change.
    #[must_use]
    pub fn change(mut self, path: impl Into<String>, change: Change) -> Self {
        self.files.insert(path.into(), change);
        self
    }

    /// The commit as a stream for `git fast-import`, on top of `parent`.
    pub(crate) fn to_fast_import(&self, parent: Option<&str>) -> Vec<u8> {
        let mut stream = Vec::new();
        let seconds = self.date.as_second();
        stream.extend(format!("commit refs/heads/{}\n", self.branch).bytes());
        stream.extend(format!("committer {IDENTITY} {seconds} +0000\n").bytes());
        // With the line end that `git commit` writes, so that the same commit made by hand has the same id.
        push_data(&mut stream, format!("{}\n", self.message).as_bytes());
        if let Some(parent) = parent {
            stream.extend(format!("from {parent}\n").bytes());
        }
        for (path, change) in &self.files {
            let path = quoted(path);
            match change {
                Change::File { contents, executable } => {
                    let mode = if *executable { "100755" } else { "100644" };
                    stream.extend(format!("M {mode} inline {path}\n").bytes());
                    push_data(&mut stream, contents);
                }
                Change::Link(target) => {
                    stream.extend(format!("M 120000 inline {path}\n").bytes());
                    push_data(&mut stream, target.as_bytes());
                }
                Change::Submodule(commit) => {
                    stream.extend(format!("M 160000 {commit} {path}\n").bytes());
                }
                Change::Delete => stream.extend(format!("D {path}\n").bytes()),
            }
        }
        stream
    }
}

fn push_data(stream: &mut Vec<u8>, data: &[u8]) {
    stream.extend(format!("data {}\n", data.len()).bytes());
    stream.extend(data);
    stream.push(b'\n');
}

fn quoted(path: &str) -> String {
    format!(
        "\"{}\"",
        path.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    )
}
