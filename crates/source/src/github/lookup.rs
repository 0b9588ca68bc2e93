//! From a branch or tag to a commit.

use codeworkspace_bundle::code::{CommitId, GitReference, Repository};
use serde::Deserialize;

use super::client::{Client, Moved};
use super::session::{Session, encoded};
use crate::cache::{Names, Resolved};
use crate::error::{SourceError, SourceErrorReason as Reason, quoted};

/// Tags of tags that are followed.
const MAXIMUM_TAG_HOPS: usize = 5;
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
    moved: Option<Moved>,
    new_name: String,
}

/// Where a look-up has led, and whether the repository has another address now.
pub(crate) struct LookedUp {
    pub(crate) resolved: Resolved,
    pub(crate) moved: Option<Moved>,
}

/// Looks a branch or tag up. A commit id needs no look-up and leads to itself.
///
/// A plain name is looked for among tags and among branches, since which of them would win differs between tools; if
/// both have it, that is an error which says how to choose.
pub(crate) async fn look_up(
    session: &Session<'_>,
    reference: &GitReference,
) -> Result<LookedUp, SourceError> {
    let found = match reference {
        GitReference::Commit(commit) => {
            let resolved = Resolved {
                commit: commit.clone(),
                warnings: Vec::new(),
            };
            return Ok(LookedUp {
                resolved,
                moved: None,
            });
        }
        GitReference::Tag(name) => get(session, Space::Tags, name).await?,
        GitReference::Branch(name) => get(session, Space::Heads, name).await?,
        GitReference::Name(name) => {
            let tag = get(session, Space::Tags, name);
            let branch = get(session, Space::Heads, name);
            match futures::try_join!(tag, branch)? {
                (Some(_), Some(_)) => return Err(ambiguous(name)),
                (tag, branch) => tag.or(branch),
            }
        }
    };
    let Some(found) = found else {
        return Err(not_found(session, reference));
    };
    let warnings = match found.moved {
        Some(_) => vec![renamed(session.repository, &found.new_name)],
        None => Vec::new(),
    };
    let commit = dereference(session, found.object).await?;
    let resolved = Resolved { commit, warnings };
    Ok(LookedUp {
        resolved,
        moved: found.moved,
    })
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

fn not_found(session: &Session<'_>, reference: &GitReference) -> SourceError {
    if reference.resembles_commit_id() {
        let text = "no tag or branch has this name; if it is a commit, write its full id: 40 (or 64) hex digits in lower \
                    case";
        return SourceError::new(Reason::ShortCommitId, text);
    }
    session.missing(match reference {
        GitReference::Tag(_) => "tag",
        GitReference::Branch(_) => "branch",
        GitReference::Name(_) | GitReference::Commit(_) => "branch or tag",
    })
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

async fn get(session: &Session<'_>, space: Space, name: &str) -> Result<Option<Found>, SourceError> {
    let path = format!("/git/ref/{}/{}", space.folder(), encoded(name));
    let Some((reference, moved)) = session.get_json::<Reference>(&path).await? else {
        return Ok(None);
    };
    // Some servers answer a prefix with whatever begins with it.
    if reference.name != format!("refs/{}/{name}", space.folder()) {
        return Ok(None);
    }
    Ok(Some(Found {
        object: reference.object,
        moved,
        new_name: name_in(session.client, &reference.url).unwrap_or_default(),
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

async fn dereference(session: &Session<'_>, mut object: Object) -> Result<CommitId, SourceError> {
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
        let tag = session.get_json::<TagObject>(&format!("/git/tags/{id}")).await?;
        let (tag, _) = tag.ok_or_else(|| session.missing("tag"))?;
        object = tag.object;
    }
    let text = format!("the tag leads through more than {MAXIMUM_TAG_HOPS} other tags; write another `ref`");
    Err(SourceError::new(Reason::RefNotACommit, text))
}

#[derive(Debug, Deserialize)]
struct Described {
    id: u64,
}

/// Refuses a name that another repository has taken since the first one was renamed.
///
/// GitHub redirects from an old name until somebody takes it, and a manifest that still has it would follow a stranger.
pub(crate) async fn check_name(
    session: &Session<'_>,
    names: &Names,
    looked_up: &LookedUp,
) -> Result<(), SourceError> {
    let key = session.proof_key();
    if let Some(moved) = looked_up.moved {
        if let Some(number) = moved.number {
            names.renamed(&key, number).await;
        }
        return Ok(());
    }
    let Some(before) = names.number(&key).await else {
        return Ok(());
    };
    let described = session.get_json::<Described>("").await?;
    let (described, _) = described.ok_or_else(|| session.missing("branch or tag"))?;
    if described.id == before {
        names.forget(&key).await;
        return Ok(());
    }
    let text = format!(
        "this name belonged to repository number {before}, which was renamed; now repository number {} has it, which may be \
         somebody else's; write the new name of the repository that is meant, or a full commit id as `ref`",
        described.id
    );
    Err(SourceError::new(Reason::RepositoryReplaced, text))
}
