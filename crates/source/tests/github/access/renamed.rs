//! Repositories that have another name now.

use std::time::Duration;

use codeworkspace_source::SourceErrorReason as Reason;
use github_server::{Commit, Token};

use super::{MINE, Secret, ask, mine};

const FLOOR: Duration = Duration::from_secs(30);

/// A private repository that was found under its old name.
async fn renamed() -> Secret {
    let secret = Secret::new().await;
    let server = &secret.world.server;
    server
        .repository("octo/secret")
        .unwrap()
        .rename("octo/better")
        .unwrap();
    server.set_token(
        "mine",
        Token::for_repositories(MINE, ["octo/secret", "octo/better"]),
    );
    let found = secret.ask("main", &mine()).await.unwrap();
    assert_eq!(
        found.warnings,
        [
            "repository `octo/secret` is called `octo/better` now; write that name, the old one may be taken by somebody else"
        ]
    );
    secret.world.clock.advance(FLOOR);
    secret
}

#[tokio::test]
async fn a_stranger_who_takes_the_old_name_is_noticed_and_not_followed() {
    let secret = renamed().await;
    let server = &secret.world.server;
    let stranger = server.create("octo/secret").unwrap();
    stranger.commit(&Commit::on("main").file("evil.py", "")).unwrap();
    let text = "octo/secret@main: this name belonged to repository number 1, which was renamed; now repository number 2 has \
                it, which may be somebody else's; write the new name of the repository that is meant, or a full commit id as \
                `ref`";
    let expected = (Reason::RepositoryReplaced, text.to_owned());
    assert_eq!(secret.refusal("main", &mine()).await, expected);
    secret.world.clock.advance(FLOOR);
    assert_eq!(secret.refusal("main", &mine()).await, expected);
    // A commit cannot be taken over, and the new name leads to the right one.
    secret.ask(&secret.commit, &mine()).await.unwrap();
    let found = ask(&secret.world.github, "octo/better", "main", &mine())
        .await
        .unwrap();
    assert_eq!(found.revision.as_str(), secret.commit);
}

#[tokio::test]
async fn a_repository_that_gets_its_old_name_back_is_followed_again() {
    let secret = renamed().await;
    secret
        .world
        .server
        .repository("octo/better")
        .unwrap()
        .rename("octo/secret")
        .unwrap();
    let found = secret.ask("main", &mine()).await.unwrap();
    assert_eq!(
        (found.revision.as_str(), found.warnings),
        (secret.commit.as_str(), vec![])
    );
}
