//! Credentials, and what is served to whom.

mod apps;
mod conditional;
mod enterprise;
mod limits;
mod private;
mod renamed;
mod tokens;

use codeworkspace_source::{
    Access, Credential, Github, GithubConfiguration, LinkPolicy, Materialized, SourceError, SourceErrorReason,
};
use github_server::Token;

use crate::world::{World, one_file, source};

pub(crate) const MINE: &str = "ghp_mine0123456789";
pub(crate) const THEIRS: &str = "ghp_theirs9876543210";

/// A credential with this token, called like the token's owner.
pub(crate) fn token(name: &str, value: &str) -> Access {
    Access::Credential(Credential::token(format!("SecretInventory {name}"), value.as_bytes()).unwrap())
}

pub(crate) fn mine() -> Access {
    token("mine", MINE)
}

pub(crate) fn theirs() -> Access {
    token("theirs", THEIRS)
}

/// A world with the private repository `octo/secret`, which the token `mine` opens and the token `theirs` does not.
pub(crate) struct Secret {
    pub(crate) world: World,
    /// The commit on its branch `main`.
    pub(crate) commit: String,
}

impl Secret {
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut GithubConfiguration)) -> Self {
        let world = World::with(change).await;
        let repository = world.server.create("octo/secret").unwrap();
        let commit = repository.commit(&one_file()).unwrap();
        repository.set_private(true).unwrap();
        let server = &world.server;
        server.set_token("mine", Token::for_repositories(MINE, ["octo/secret"]));
        server.set_token("theirs", Token::for_repositories(THEIRS, []));
        Self { world, commit }
    }

    /// Asks for `octo/secret`.
    pub(crate) async fn ask(&self, reference: &str, access: &Access) -> Result<Materialized, SourceError> {
        ask(&self.world.github, "octo/secret", reference, access).await
    }

    /// Asks for `octo/secret` and returns why that failed.
    pub(crate) async fn refusal(&self, reference: &str, access: &Access) -> (SourceErrorReason, String) {
        let error = self.ask(reference, access).await.unwrap_err();
        (error.reason, error.message)
    }
}

pub(crate) async fn ask(
    github: &Github,
    repository: &str,
    reference: &str,
    access: &Access,
) -> Result<Materialized, SourceError> {
    github
        .materialize(&source(repository, reference), LinkPolicy::Keep, access)
        .await
}

/// What is said of something that does not exist, or that the asker cannot see.
pub(crate) fn missing(reference: &str, what: &str, used: &str) -> (SourceErrorReason, String) {
    let text = format!(
        "octo/secret@{reference}: the repository or the {what} does not exist, or the repository is private, which looks \
         the same from outside ({used}); check `repo` and `ref`"
    );
    (SourceErrorReason::RepoOrRefNotFound, text)
}
