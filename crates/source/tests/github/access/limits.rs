//! Limits concern the credential that met them.

use std::time::Duration;

use codeworkspace_source::{Access, SourceErrorReason as Reason};
use github_server::{RateLimit, Token, TokenRefusal};
use jiff::Timestamp;

use super::{MINE, Secret, THEIRS, ask, mine, theirs};
use crate::world::one_file;

/// What is said to everybody who asks with the credential while it is limited.
fn limited(secret: &Secret, source: &str) -> String {
    format!(
        "{source}: `{}` allows no more requests with the credential of SecretInventory mine for now, and will be asked again \
         later",
        secret.world.server.api_host()
    )
}

async fn wait(secret: &Secret, reference: &str) -> u64 {
    let error = secret.ask(reference, &mine()).await.unwrap_err();
    let text = limited(secret, &format!("octo/secret@{reference}"));
    assert_eq!((error.reason, error.message), (Reason::RateLimited, text));
    error.retry_after.unwrap().as_secs()
}

#[tokio::test]
async fn a_used_up_limit_stops_its_credential_and_no_other() {
    let secret = Secret::new().await;
    let server = &secret.world.server;
    secret.world.tools(&one_file());
    let reset = Timestamp::now().as_second() + 600;
    let limit = RateLimit {
        limit: 5000,
        remaining: 1,
        reset,
    };
    server.set_rate_limit_of("mine", limit).unwrap();
    // The look-up of one full name takes the last request; the archive is not asked for.
    let seconds = wait(&secret, "refs/heads/main").await;
    assert!((595..=661).contains(&seconds), "{seconds}");
    assert_eq!(server.requests().api(), 1);
    let error = ask(&secret.world.github, "octo/tools", "main", &mine())
        .await
        .unwrap_err();
    assert_eq!(error.message, limited(&secret, "octo/tools@main"));
    assert_eq!(
        server.requests().api(),
        1,
        "no request leaves during the window, for any object"
    );

    for access in [theirs(), Access::Anonymous] {
        ask(&secret.world.github, "octo/tools", "main", &access)
            .await
            .unwrap();
    }
    let limits = secret.world.github.statistics().rate_limits;
    let left: Vec<_> = limits
        .iter()
        .map(|(name, limit)| (name.as_str(), limit.remaining))
        .collect();
    assert_eq!(
        left,
        [
            ("SecretInventory mine", 0),
            ("SecretInventory theirs", 4997),
            ("anonymous", 4998)
        ]
    );
}

#[tokio::test]
async fn a_secondary_limit_without_a_time_waits_a_minute_and_doubles() {
    let secret = Secret::new().await;
    let token = Token {
        refusal: Some(TokenRefusal::SecondaryLimit),
        ..Token::for_repositories(MINE, ["octo/secret"])
    };
    secret.world.server.set_token("mine", token);
    for seconds in [60, 120, 240] {
        let waits = wait(&secret, "main").await;
        assert!((seconds..=seconds + seconds / 10).contains(&waits), "{waits}");
        secret.world.server.reset_requests();
        secret.world.clock.advance(Duration::from_secs(waits - 1));
        assert_eq!(wait(&secret, &secret.commit).await, 1);
        assert_eq!(secret.world.server.requests().total(), 0);
        secret.world.clock.advance(Duration::from_secs(1));
    }
    let server = &secret.world.server;
    server.set_token("theirs", Token::for_repositories(THEIRS, ["octo/secret"]));
    secret.ask("main", &theirs()).await.unwrap();
    server.set_token("mine", Token::for_repositories(MINE, ["octo/secret"]));
    secret.ask("main", &mine()).await.unwrap();
}

#[tokio::test]
async fn a_limit_is_counted_by_the_clock_of_the_host_that_sets_it() {
    let secret = Secret::new().await;
    let reset = Timestamp::now().as_second() + 600;
    let limit = RateLimit {
        limit: 5000,
        remaining: 0,
        reset,
    };
    secret.world.server.set_rate_limit_of("mine", limit).unwrap();
    // Our clock is an hour ahead, so that the reset seems to be over.
    secret.world.clock.advance(Duration::from_hours(1));
    let seconds = wait(&secret, "main").await;
    assert!((595..=661).contains(&seconds), "{seconds}");
}
