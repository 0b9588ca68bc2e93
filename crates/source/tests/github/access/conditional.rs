//! Questions whose answer GitHub may confirm.

use std::time::Duration;

use github_server::{Commit, RequestKind, Token};

use super::{MINE, Secret, THEIRS, mine, theirs};

const FLOOR: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_branch_that_did_not_move_is_confirmed_and_costs_nothing() {
    let secret = Secret::new().await;
    let server = &secret.world.server;
    let first = secret.ask("refs/heads/main", &mine()).await.unwrap();
    let left = || secret.world.github.statistics().rate_limits["SecretInventory mine"].remaining;
    let before = left();
    for _ in 0..5 {
        secret.world.clock.advance(FLOOR);
        assert_eq!(secret.ask("refs/heads/main", &mine()).await.unwrap(), first);
    }
    let requests = server.requests();
    assert_eq!((requests.of(RequestKind::Reference), requests.confirmed), (6, 5));
    assert_eq!(left(), before);

    let commit = Commit::on("main").file("b", "b");
    let second = server.repository("octo/secret").unwrap().commit(&commit).unwrap();
    secret.world.clock.advance(FLOOR);
    let moved = secret.ask("refs/heads/main", &mine()).await.unwrap();
    assert_eq!(
        (moved.revision.as_str(), server.requests().confirmed),
        (second.as_str(), 5)
    );
}

#[tokio::test]
async fn a_confirmation_renews_the_proof() {
    let secret = Secret::with(|configuration| configuration.proof_seconds = 60).await;
    secret.ask("refs/heads/main", &mine()).await.unwrap();
    for _ in 0..3 {
        secret.world.clock.advance(Duration::from_secs(40));
        secret.ask("refs/heads/main", &mine()).await.unwrap();
    }
    let requests = secret.world.server.requests();
    assert_eq!((requests.confirmed, requests.of(RequestKind::Commit)), (3, 0));
}

#[tokio::test]
async fn an_answer_to_one_credential_is_not_confirmed_for_another() {
    let secret = Secret::new().await;
    let server = &secret.world.server;
    server.set_token("theirs", Token::for_repositories(THEIRS, ["octo/secret"]));
    secret.ask("refs/heads/main", &mine()).await.unwrap();
    secret.ask("refs/heads/main", &theirs()).await.unwrap();
    assert_eq!(server.requests().confirmed, 0);
    // What was remembered is no answer to a credential that is refused by now.
    server.set_token("mine", Token::for_repositories(MINE, []));
    secret.world.clock.advance(FLOOR);
    secret.ask("refs/heads/main", &mine()).await.unwrap_err();
}
