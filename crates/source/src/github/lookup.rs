//! From a branch or tag to a commit.

use codeworkspace_bundle::code::{CommitId, GitReference, Repository};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::client::Client;
use crate::cache::Resolved;
use crate::error::{SourceError, SourceErrorReason as Reason, quoted};

/// Tags of tags that are followed.
const MAXIMUM_TAG_HOPS: usize = 5;
/// The unreserved signs of RFC 3986 stay, and slashes, which are part of a name and of a path alike.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

#[derive(Debug, Deserialize)]
struct Reference {
    #[serde(rename = "ref")]
    name: String,
    #[serde(default)]
    url: String,
    object: Object,
}

#[derive(Debug, Deserialize)]
struct TagObject {
    object: Object,
}

#[derive(Debug, Deserialize)]
struct Object {
    #[serde(rename = "type")]
    kind: String,
    sha: String,
}

/// The kinds of reference that a source can name.
#[derive(Debug, Clone, Copy)]
enum Space {
    Heads,
    Tags,
}

impl Space {
    fn folder(self) -> &'static str {
        match self {
            Self::Heads => "heads",
            Self::Tags => "tags",
        }
    }
}

/// A found reference, and the repository's new name if it has one.
struct Found {
    object: Object,
    renamed: Option<String>,
}

/// Looks a branch or tag up. A commit id needs no look-up and leads to itself.
///
/// A plain name is looked for among tags and among branches, since which of them would win differs between tools; if
/// both have it, that is an error which says how to choose.
pub(crate) async fn look_up(
    client: &Client,
    repository: &Repository,
    reference: &GitReference,
) -> Result<Resolved, SourceError> {
    let found = match reference {
        GitReference::Commit(commit) => {
            return Ok(Resolved {
                commit: commit.clone(),
                warnings: Vec::new(),
            });
        }
        GitReference::Tag(name) => get(client, repository, Space::Tags, name).await?,
        GitReference::Branch(name) => get(client, repository, Space::Heads, name).await?,
        GitReference::Name(name) => {
            let tag = get(client, repository, Space::Tags, name);
            let branch = get(client, repository, Space::Heads, name);
            match futures::try_join!(tag, branch)? {
                (Some(_), Some(_)) => return Err(ambiguous(name)),
                (tag, branch) => tag.or(branch),
            }
        }
    };
    let Some(found) = found else {
        return Err(not_found(reference));
    };
    let warnings = found
        .renamed
        .into_iter()
        .map(|new_name| renamed(repository, &new_name))
        .collect();
    let commit = dereference(client, repository, found.object).await?;
    Ok(Resolved { commit, warnings })
}

fn ambiguous(name: &str) -> SourceError {
    let full = |space: Space| quoted(format!("refs/{}/{name}", space.folder()));
    let (tag, branch) = (full(Space::Tags), full(Space::Heads));
    let text = format!(
        "{} is both a tag and a branch; write {tag} or {branch} as `ref`",
        quoted(name)
    );
    SourceError::new(Reason::AmbiguousRef, text)
}

fn not_found(reference: &GitReference) -> SourceError {
    if reference.resembles_commit_id() {
        let text = "no tag or branch has this name; if it is a commit, write its full id: 40 (or 64) hex digits in lower \
                    case";
        return SourceError::new(Reason::ShortCommitId, text);
    }
    let what = match reference {
        GitReference::Tag(_) => "tag",
        GitReference::Branch(_) => "branch",
        GitReference::Name(_) | GitReference::Commit(_) => "branch or tag",
    };
    SourceError::new(Reason::RepoOrRefNotFound, missing(what))
}

/// The sentence for everything that GitHub answers with 404.
pub(crate) fn missing(what: &str) -> String {
    format!(
        "the repository or the {what} does not exist, or the repository is private, which looks the same from outside \
         (no credential was used); check `repo` and `ref`"
    )
}

/// The warning for a repository that has another name now.
pub(crate) fn renamed(repository: &Repository, new_name: &str) -> String {
    let old = quoted(repository.to_string());
    match new_name {
        "" => format!(
            "repository {old} was renamed; write its new name, the old one may be taken by somebody else"
        ),
        new => format!(
            "repository {old} is called {} now; write that name, the old one may be taken by somebody else",
            quoted(new)
        ),
    }
}

async fn get(
    client: &Client,
    repository: &Repository,
    space: Space,
    name: &str,
) -> Result<Option<Found>, SourceError> {
    let path = format!(
        "{}/git/ref/{}/{}",
        repository_path(repository),
        space.folder(),
        encoded(name)
    );
    let Some((reference, moved)) = client.get_json::<Reference>(&path).await? else {
        return Ok(None);
    };
    // Some servers answer a prefix with whatever begins with it.
    if reference.name != format!("refs/{}/{name}", space.folder()) {
        return Ok(None);
    }
    let renamed = moved.then(|| name_in(client, &reference.url).unwrap_or_default());
    Ok(Some(Found {
        object: reference.object,
        renamed,
    }))
}

/// The repository's name in the URL of one of its resources.
fn name_in(client: &Client, url: &str) -> Option<String> {
    let base = client.api_url("/repos/")?;
    let mut segments = url.strip_prefix(base.as_str())?.split('/');
    let name = format!("{}/{}", segments.next()?, segments.next()?);
    name.parse::<Repository>()
        .ok()
        .map(|repository| repository.to_string())
}

async fn dereference(
    client: &Client,
    repository: &Repository,
    mut object: Object,
) -> Result<CommitId, SourceError> {
    let malformed = || {
        SourceError::new(
            Reason::FetchFailed,
            "the answer to the look-up has no valid object id",
        )
    };
    for _ in 0..=MAXIMUM_TAG_HOPS {
        let id: CommitId = object.sha.parse().map_err(|_| malformed())?;
        match object.kind.as_str() {
            "commit" => return Ok(id),
            "tag" => {}
            kind @ ("tree" | "blob") => {
                let text = format!("the tag leads to a {kind}, not to a commit; write another `ref`");
                return Err(SourceError::new(Reason::RefNotACommit, text));
            }
            _ => return Err(malformed()),
        }
        let path = format!("{}/git/tags/{id}", repository_path(repository));
        let tag = client.get_json::<TagObject>(&path).await?;
        let (tag, _) = tag.ok_or_else(|| SourceError::new(Reason::RepoOrRefNotFound, missing("tag")))?;
        object = tag.object;
    }
    let text = format!("the tag leads through more than {MAXIMUM_TAG_HOPS} other tags; write another `ref`");
    Err(SourceError::new(Reason::RefNotACommit, text))
}

/// The API's path of a repository.
pub(crate) fn repository_path(repository: &Repository) -> String {
    format!(
        "/repos/{}/{}",
        encoded(repository.owner()),
        encoded(repository.name())
    )
}

fn encoded(name: &str) -> String {
    utf8_percent_encode(name, KEPT).to_string()
}
