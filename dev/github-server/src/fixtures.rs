//! Repositories made from folders: `owner/name/` is the tree of one commit, `owner/name.json` says more about it.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;

use crate::ServerError;
use crate::commit::{Change, Commit, default_date};
use crate::repositories::{FullName, TagKind};

/// The optional file `owner/name.json` beside a fixture's folder.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Settings {
    default_branch: String,
    message: String,
    date: Timestamp,
    /// More branches at the same commit.
    pub(crate) branches: Vec<String>,
    tags: Vec<String>,
    annotated_tags: Vec<String>,
    pub(crate) private: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_branch: "main".to_owned(),
            message: "Fixture".to_owned(),
            date: default_date(),
            branches: Vec::new(),
            tags: Vec::new(),
            annotated_tags: Vec::new(),
            private: false,
        }
    }
}

impl Settings {
    pub(crate) fn tags(&self) -> impl Iterator<Item = (&str, TagKind)> {
        let lightweight = self.tags.iter().map(|tag| (tag.as_str(), TagKind::Lightweight));
        lightweight.chain(
            self.annotated_tags
                .iter()
                .map(|tag| (tag.as_str(), TagKind::Annotated)),
        )
    }
}

/// One repository to be made.
pub(crate) struct Fixture {
    pub(crate) name: FullName,
    pub(crate) settings: Settings,
    pub(crate) commit: Commit,
}

/// Reads every folder `owner/name` below `directory`.
pub(crate) fn read(directory: &Path) -> Result<Vec<Fixture>, ServerError> {
    let mut fixtures = Vec::new();
    for (owner, owner_path) in folders(directory)? {
        for (name, path) in folders(&owner_path)? {
            let settings_path = owner_path.join(format!("{name}.json"));
            let settings = if settings_path.exists() {
                let text = std::fs::read(&settings_path)
                    .map_err(|error| ServerError::file(&settings_path, &error))?;
                serde_json::from_slice(&text)
                    .map_err(|error| ServerError::Invalid(format!("{}: {error}", settings_path.display())))?
            } else {
                Settings::default()
            };
            let mut files = BTreeMap::new();
            collect(&path, "", &mut files)?;
            let mut commit = Commit::on(&settings.default_branch)
                .message(&settings.message)
                .date(settings.date);
            commit.files = files;
            fixtures.push(Fixture {
                name: FullName::new(&owner, &name)?,
                settings,
                commit,
            });
        }
    }
    Ok(fixtures)
}

/// The folders in `directory`, sorted. Names that start with a dot are left out: a mounted `ConfigMap` has some.
fn folders(directory: &Path) -> Result<Vec<(String, std::path::PathBuf)>, ServerError> {
    let failed = |error: std::io::Error| ServerError::file(directory, &error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.starts_with('.') {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn collect(directory: &Path, prefix: &str, files: &mut BTreeMap<String, Change>) -> Result<(), ServerError> {
    for entry in std::fs::read_dir(directory).map_err(|error| ServerError::file(directory, &error))? {
        let path = entry
            .map_err(|error| ServerError::file(directory, &error))?
            .path();
        let failed = |error: std::io::Error| ServerError::file(&path, &error);
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(ServerError::Invalid(format!(
                "{}: the name is not UTF-8",
                path.display()
            )));
        };
        let inside = format!("{prefix}{name}");
        let metadata = std::fs::symlink_metadata(&path).map_err(failed)?;
        if metadata.is_dir() {
            collect(&path, &format!("{inside}/"), files)?;
        } else if metadata.is_symlink() {
            let target = std::fs::read_link(&path).map_err(failed)?;
            files.insert(inside, Change::Link(target.to_string_lossy().into_owned()));
        } else {
            let contents = std::fs::read(&path).map_err(failed)?;
            files.insert(
                inside,
                Change::File {
                    contents,
                    executable: is_executable(&metadata),
                },
            );
        }
    }
    Ok(())
}

fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}
