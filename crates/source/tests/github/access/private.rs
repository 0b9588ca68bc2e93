//! Cached trees are for those who may read the repository.

use std::time::Duration;

use codeworkspace_source::{Access, SourceErrorReason as Reason};
use futures::future::join;
use github_server::{Commit, RequestKind, Switches, Token};

use super::{MINE, Secret, THEIRS, ask, mine, missing, theirs, token};
use crate::world::{lines, one_file};

const DAY: Duration = Duration::from_hours(24);
const FLOOR: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_warm_cache_gives_no_stranger_a_byte() {
    let secret = Secret::new().await;
    let server = &secret.world.server;
    secret.ask(&secret.commit, &mine()).await.unwrap();
    secret.ask("main", &mine()).await.unwrap();
    server
        .create("octo/other")
        .unwrap()
        .commit(&Commit::on("main").file("b", "b"))
        .unwrap();
    server.reset_requests();
    let used = "the credential of SecretInventory theirs was used";
    assert_eq!(
        secret.refusal(&secret.commit, &theirs()).await,
        missing(&secret.commit, "commit", used)
    );
    assert_eq!(
        secret.refusal("main", &theirs()).await,
        missing("main", "branch or tag", used)
    );
    assert_eq!(
        secret.refusal(&secret.commit, &Access::Anonymous).await,
        missing(&secret.commit, "commit", "no credential was used")
    );
    // Nor does a repository that they may read lead to the commit of one that they may not.
    for access in [theirs(), Access::Anonymous, mine()] {
        let error = ask(&secret.world.github, "octo/other", &secret.commit, &access).await;
        assert_eq!(error.unwrap_err().reason, Reason::RepoOrRefNotFound, "{access:?}");
    }
    assert_eq!(server.requests().of(RequestKind::Download), 0);
}

#[tokio::test]
async fn a_new_asker_with_access_needs_github_once_and_no_second_download() {
    let secret = Secret::new().await;
    let server = &secret.world.server;
    server.set_token("theirs", Token::for_repositories(THEIRS, ["octo/secret"]));
    let first = secret.ask(&secret.commit, &mine()).await.unwrap();
    server.reset_requests();
    let access = theirs();
    for _ in 0..3 {
        let asked = join(
            secret.ask(&secret.commit, &access),
            secret.ask(&secret.commit, &access),
        );
        assert_eq!(asked.await, (Ok(first.clone()), Ok(first.clone())));
    }
    let requests = server.requests();
    assert_eq!(
        (requests.total(), requests.by("theirs", RequestKind::Commit)),
        (1, 1)
    );
}

#[tokio::test]
async fn a_proven_commit_asks_nobody_until_the_proof_expires() {
    let secret = Secret::new().await;
    let server = &secret.world.server;
    let first = secret.ask(&secret.commit, &mine()).await.unwrap();
    server.reset_requests();
    let second = Duration::from_secs(1);
    secret.world.clock.advance(DAY.saturating_sub(second));
    assert_eq!(secret.ask(&secret.commit, &mine()).await.unwrap(), first);
    assert_eq!(server.requests().total(), 0);
    secret.world.clock.advance(second);
    assert_eq!(secret.ask(&secret.commit, &mine()).await.unwrap(), first);
    let requests = server.requests();
    assert_eq!((requests.total(), requests.of(RequestKind::Commit)), (1, 1));
}

#[tokio::test]
async fn every_answer_to_the_asker_renews_the_proof() {
    let secret = Secret::new().await;
    secret.ask(&secret.commit, &mine()).await.unwrap();
    secret.world.clock.advance(DAY / 2);
    secret.ask("refs/heads/main", &mine()).await.unwrap();
    secret.world.clock.advance(DAY / 2);
    secret.world.server.reset_requests();
    secret.ask(&secret.commit, &mine()).await.unwrap();
    assert_eq!(secret.world.server.requests().total(), 0);
}

#[tokio::test]
async fn access_that_was_taken_away_ends_with_the_proof() {
    let secret = Secret::with(|configuration| configuration.proof_seconds = 60).await;
    secret.ask(&secret.commit, &mine()).await.unwrap();
    secret
        .world
        .server
        .set_token("mine", Token::for_repositories(MINE, []));
    secret.world.clock.advance(Duration::from_mins(1));
    let used = "the credential of SecretInventory mine was used";
    assert_eq!(
        secret.refusal(&secret.commit, &mine()).await,
        missing(&secret.commit, "commit", used)
    );
}

#[tokio::test]
async fn a_token_that_sees_the_repository_but_may_not_read_it_gets_nothing_from_the_cache() {
    let secret = Secret::new().await;
    secret.ask(&secret.commit, &mine()).await.unwrap();
    let token = Token {
        contents: false,
        ..Token::for_repositories(THEIRS, ["octo/secret"])
    };
    secret.world.server.set_token("theirs", token);
    let (reason, _) = secret.refusal(&secret.commit, &theirs()).await;
    assert_eq!(reason, Reason::Forbidden);
}

#[tokio::test]
async fn when_github_is_down_only_those_with_a_proof_are_served() {
    let secret = Secret::new().await;
    let first = secret.ask("main", &mine()).await.unwrap();
    secret.world.set_switches(down());
    secret.world.clock.advance(FLOOR);
    let stale = secret.ask("main", &mine()).await.unwrap();
    assert_eq!((&stale.tree, stale.stale.is_some()), (&first.tree, true));
    assert_eq!(
        secret.ask(&secret.commit, &mine()).await.unwrap().tree,
        first.tree
    );

    let text = format!(
        "octo/secret@{}: `{}` answers HTTP 500; it will be asked again; the files are cached, and are served again once it has \
         confirmed that they may be read",
        secret.commit,
        secret.world.server.api_host()
    );
    let expected = (Reason::FetchFailed, text);
    assert_eq!(secret.refusal(&secret.commit, &theirs()).await, expected);
    secret.world.clock.advance(DAY);
    assert_eq!(secret.refusal(&secret.commit, &mine()).await, expected);
    assert_eq!(secret.refusal("main", &mine()).await.0, Reason::FetchFailed);
    secret.world.set_switches(Switches::default());
    secret.world.clock.advance(FLOOR);
    assert_eq!(
        secret.ask(&secret.commit, &mine()).await.unwrap(),
        secret.ask("main", &mine()).await.unwrap()
    );
}

fn down() -> Switches {
    let answer = github_server::Answer {
        status: 500,
        ..github_server::Answer::default()
    };
    Switches {
        answer: Some(answer),
        ..Switches::default()
    }
}

#[tokio::test]
async fn what_everybody_may_read_is_proven_for_everybody_by_one_anonymous_answer() {
    let secret = Secret::new().await;
    let commit = secret.world.tools(&one_file());
    let first = ask(&secret.world.github, "octo/tools", &commit, &Access::Anonymous)
        .await
        .unwrap();
    secret.world.server.reset_requests();
    let again = ask(&secret.world.github, "octo/tools", &commit, &mine())
        .await
        .unwrap();
    assert_eq!(again, first);
    assert_eq!(secret.world.server.requests().total(), 0);
}

#[tokio::test]
async fn an_answer_to_one_credential_is_no_proof_for_everybody() {
    let secret = Secret::new().await;
    let commit = secret.world.tools(&one_file());
    ask(&secret.world.github, "octo/tools", &commit, &mine())
        .await
        .unwrap();
    secret.world.server.reset_requests();
    ask(&secret.world.github, "octo/tools", &commit, &Access::Anonymous)
        .await
        .unwrap();
    assert_eq!(
        secret
            .world
            .server
            .requests()
            .by("anonymous", RequestKind::Commit),
        1
    );
}

#[tokio::test]
async fn a_repository_that_became_private_is_not_served_to_everybody_for_longer_than_the_proof() {
    let secret = Secret::new().await;
    let commit = secret.world.tools(&one_file());
    let everybody = async || ask(&secret.world.github, "octo/tools", &commit, &Access::Anonymous).await;
    everybody().await.unwrap();
    secret
        .world
        .server
        .repository("octo/tools")
        .unwrap()
        .set_private(true)
        .unwrap();
    secret.world.clock.advance(DAY);
    assert_eq!(everybody().await.unwrap_err().reason, Reason::RepoOrRefNotFound);
}

#[tokio::test]
async fn nobody_joins_the_download_of_another_asker() {
    let secret = Secret::new().await;
    let server = &secret.world.server;
    secret.world.set_switches(Switches {
        hold: vec![RequestKind::Download],
        ..Switches::default()
    });
    let access = mine();
    let owner = secret.ask(&secret.commit, &access);
    let stranger = async {
        server
            .wait_for_requests(|requests| requests.of(RequestKind::Download) == 1)
            .await;
        let refusal = secret.refusal(&secret.commit, &theirs()).await;
        secret.world.set_switches(Switches::default());
        refusal
    };
    let (owner, stranger) = join(owner, stranger).await;
    assert_eq!(lines(&owner.unwrap().tree), ["a.txt: a"]);
    assert_eq!(stranger.0, Reason::RepoOrRefNotFound);
}

#[tokio::test]
async fn look_ups_and_refusals_are_remembered_for_the_credential_that_got_them() {
    let secret = Secret::new().await;
    secret.refusal("main", &theirs()).await;
    secret.refusal(&secret.commit, &theirs()).await;
    // Neither the owner nor the rotated secret hears of it.
    secret.ask("main", &mine()).await.unwrap();
    secret.ask(&secret.commit, &mine()).await.unwrap();
    secret
        .world
        .server
        .set_token("theirs", Token::for_repositories("ghp_rotated", ["octo/secret"]));
    let rotated = token("theirs", "ghp_rotated");
    secret.ask("main", &rotated).await.unwrap();
    secret.ask(&secret.commit, &rotated).await.unwrap();
}
