//! The repositories of one server: bare git repositories in a data directory, plus what GitHub knows beside git.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::commit::{Commit, IDENTITY, default_date};
use crate::git::{self, Object};
use crate::{ServerError, fixtures};

/// `owner/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FullName {
    pub(crate) owner: String,
    pub(crate) name: String,
}

impl FullName {
    pub(crate) fn new(owner: &str, name: &str) -> Result<Self, ServerError> {
        let legal = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part
                    .chars()
                    .all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.'))
        };
        if legal(owner) && legal(name) {
            Ok(Self {
                owner: owner.to_owned(),
                name: name.to_owned(),
            })
        } else {
            Err(ServerError::Invalid(format!(
                "`{owner}/{name}` is no repository name; write owner/name"
            )))
        }
    }
}

impl FromStr for FullName {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, ServerError> {
        let (owner, name) = text.split_once('/').unwrap_or((text, ""));
        Self::new(owner, name)
    }
}

impl fmt::Display for FullName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.owner, self.name)
    }
}

/// How a tag is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagKind {
    /// A reference that points straight at its target.
    Lightweight,
    /// A tag object with tagger, date and message between the reference and its target.
    Annotated,
}

/// A repository as a caller of the API may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Visible {
    pub(crate) id: u64,
    pub(crate) name: FullName,
    pub(crate) directory: PathBuf,
    pub(crate) default_branch: String,
    pub(crate) private: bool,
}

/// What a repository name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lookup {
    Found(Visible),
    /// The repository has another name now; this is its number.
    Moved(u64),
    /// Missing or private, which look the same to callers without access.
    Absent,
}

#[derive(Debug, Default)]
struct Register {
    ids: BTreeMap<FullName, u64>,
    next_id: u64,
    private: BTreeSet<FullName>,
    moved: BTreeMap<FullName, u64>,
    default_branches: BTreeMap<FullName, String>,
}

impl Register {
    fn id(&mut self, name: &FullName) -> u64 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        self.next_id += 1;
        self.ids.insert(name.clone(), self.next_id);
        self.next_id
    }

    fn name(&self, id: u64) -> Option<&FullName> {
        self.ids
            .iter()
            .find(|(_, known)| **known == id)
            .map(|(name, _)| name)
    }
}

/// All repositories of a server.
#[derive(Debug)]
pub struct Repositories {
    directory: PathBuf,
    // Also serialises writers: two `fast-import` runs on one branch would lose a commit.
    register: Mutex<Register>,
}

impl Repositories {
    /// Serves the repositories below `directory` (`owner/name.git`), also those that are already there.
    pub(crate) fn open(directory: PathBuf) -> Self {
        Self {
            directory,
            register: Mutex::default(),
        }
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, name: &FullName) -> PathBuf {
        self.directory
            .join(&name.owner)
            .join(format!("{}.git", name.name))
    }

    /// The directory of a repository that exists.
    pub(crate) fn existing(&self, name: &FullName) -> Result<PathBuf, ServerError> {
        let path = self.path(name);
        if path.is_dir() {
            Ok(path)
        } else {
            Err(ServerError::NotFound(format!("repository {name} does not exist")))
        }
    }

    /// Makes an empty repository whose default branch is `default_branch`.
    pub fn create(&self, name: &FullName, default_branch: &str) -> Result<(), ServerError> {
        let mut register = self.register();
        let path = self.path(name);
        if path.exists() {
            return Err(ServerError::Conflict(format!("repository {name} exists already")));
        }
        std::fs::create_dir_all(&path).map_err(|error| ServerError::file(&path, &error))?;
        git::run(
            &path,
            &["init", "--quiet", "--bare", "--initial-branch", default_branch],
            b"",
        )?;
        register.moved.remove(name);
        register.id(name);
        register
            .default_branches
            .insert(name.clone(), default_branch.to_owned());
        Ok(())
    }

    /// Removes the repository with all its history.
    pub fn delete(&self, name: &FullName) -> Result<(), ServerError> {
        let mut register = self.register();
        let path = self.existing(name)?;
        std::fs::remove_dir_all(&path).map_err(|error| ServerError::file(&path, &error))?;
        register.ids.remove(name);
        register.private.remove(name);
        Ok(())
    }

    /// Hides the repository from callers without access, or shows it again.
    pub fn set_private(&self, name: &FullName, private: bool) -> Result<(), ServerError> {
        let mut register = self.register();
        self.existing(name)?;
        if private {
            register.private.insert(name.clone());
        } else {
            register.private.remove(name);
        }
        Ok(())
    }

    /// Gives the repository another name; the old one answers with a permanent redirect from now on.
    pub fn rename(&self, from: &FullName, to: &FullName) -> Result<(), ServerError> {
        let mut register = self.register();
        let old = self.existing(from)?;
        let new = self.path(to);
        if new.exists() {
            return Err(ServerError::Conflict(format!("repository {to} exists already")));
        }
        let parent = self.directory.join(&to.owner);
        std::fs::create_dir_all(&parent).map_err(|error| ServerError::file(&parent, &error))?;
        std::fs::rename(&old, &new).map_err(|error| ServerError::file(&old, &error))?;
        let id = register.id(from);
        register.ids.remove(from);
        register.ids.insert(to.clone(), id);
        register.moved.insert(from.clone(), id);
        register.moved.remove(to);
        if register.private.remove(from) {
            register.private.insert(to.clone());
        }
        if let Some(branch) = register.default_branches.remove(from) {
            register.default_branches.insert(to.clone(), branch);
        }
        Ok(())
    }

    /// Adds a commit to its branch and returns the commit id.
    pub fn commit(&self, name: &FullName, commit: &Commit) -> Result<String, ServerError> {
        let _writer = self.register();
        let path = self.existing(name)?;
        let branch = format!("refs/heads/{}", commit.branch);
        let parent = git::reference(&path, &branch)?;
        let stream = commit.to_fast_import(parent.as_ref().map(|object| object.id.as_str()));
        git::run(&path, &["fast-import", "--quiet", "--date-format=raw"], &stream)?;
        git::reference(&path, &branch)?
            .map(|object| object.id)
            .ok_or_else(|| ServerError::Invalid(format!("`{}` is no branch name", commit.branch)))
    }

    /// Points a branch at what `target` names, wherever it pointed before.
    pub fn set_branch(&self, name: &FullName, branch: &str, target: &str) -> Result<String, ServerError> {
        let _writer = self.register();
        let path = self.existing(name)?;
        let object = resolve(&path, target)?;
        git::run(
            &path,
            &["update-ref", &format!("refs/heads/{branch}"), &object.id],
            b"",
        )?;
        Ok(object.id)
    }

    /// Makes or moves a tag and returns what its reference points at.
    ///
    /// `target` is any revision of git, so a tag can also point at a tree (`main^{tree}`) or at another tag.
    pub fn set_tag(
        &self,
        name: &FullName,
        tag: &str,
        target: &str,
        kind: TagKind,
        date: Option<Timestamp>,
    ) -> Result<String, ServerError> {
        let _writer = self.register();
        let path = self.existing(name)?;
        let target = resolve(&path, target)?;
        let id = match kind {
            TagKind::Lightweight => target.id,
            TagKind::Annotated => {
                let seconds = date.unwrap_or_else(default_date).as_second();
                let text = format!(
                    "object {}\ntype {}\ntag {tag}\ntagger {IDENTITY} {seconds} +0000\n\n{tag}\n",
                    target.id, target.kind
                );
                let written = git::run(&path, &["mktag"], text.as_bytes())?;
                String::from_utf8_lossy(&written).trim().to_owned()
            }
        };
        git::run(&path, &["update-ref", &format!("refs/tags/{tag}"), &id], b"")?;
        Ok(id)
    }

    /// Removes the reference of this full name (`refs/heads/x`, `refs/tags/x`).
    pub fn delete_reference(&self, name: &FullName, reference: &str) -> Result<(), ServerError> {
        let _writer = self.register();
        let path = self.existing(name)?;
        if git::reference(&path, reference)?.is_none() {
            return Err(ServerError::NotFound(format!("{name} has no {reference}")));
        }
        git::run(&path, &["update-ref", "-d", reference], b"")?;
        Ok(())
    }

    /// Fills one repository for each folder `owner/name` below `fixtures`; those with content stay as they are.
    pub(crate) fn load_fixtures(&self, fixtures: &Path) -> Result<(), ServerError> {
        for fixture in fixtures::read(fixtures)? {
            let path = self.path(&fixture.name);
            if !path.exists() {
                self.create(&fixture.name, &fixture.commit.branch)?;
            } else if !git::is_empty(&path)? {
                continue;
            }
            let commit = self.commit(&fixture.name, &fixture.commit)?;
            for branch in &fixture.settings.branches {
                self.set_branch(&fixture.name, branch, &commit)?;
            }
            for (tag, kind) in fixture.settings.tags() {
                self.set_tag(&fixture.name, tag, &commit, kind, Some(fixture.commit.date))?;
            }
            self.set_private(&fixture.name, fixture.settings.private)?;
            tracing::info!(repository = %fixture.name, commit, "fixture loaded");
        }
        Ok(())
    }

    /// What a name leads to for a caller who sees the private repositories that `sees` tells.
    pub(crate) fn lookup(&self, name: &FullName, sees: impl Fn(&FullName) -> bool) -> Lookup {
        let mut register = self.register();
        if let Some(id) = register.moved.get(name).copied() {
            let visible = register
                .name(id)
                .is_some_and(|target| !register.private.contains(target) || sees(target));
            return if visible {
                Lookup::Moved(id)
            } else {
                Lookup::Absent
            };
        }
        let directory = self.path(name);
        let private = register.private.contains(name);
        if (private && !sees(name)) || !directory.is_dir() {
            return Lookup::Absent;
        }
        Lookup::Found(Visible {
            id: register.id(name),
            name: name.clone(),
            directory,
            default_branch: register
                .default_branches
                .get(name)
                .cloned()
                .unwrap_or_else(|| "main".to_owned()),
            private,
        })
    }

    pub(crate) fn lookup_number(&self, id: u64, sees: impl Fn(&FullName) -> bool) -> Lookup {
        match self.name(id) {
            Some(name) => self.lookup(&name, sees),
            None => Lookup::Absent,
        }
    }

    /// The present name of the repository with this number.
    pub(crate) fn name(&self, id: u64) -> Option<FullName> {
        self.register().name(id).cloned()
    }
}

fn resolve(path: &Path, target: &str) -> Result<Object, ServerError> {
    git::object(path, target)?.ok_or_else(|| ServerError::NotFound(format!("nothing is called `{target}`")))
}
