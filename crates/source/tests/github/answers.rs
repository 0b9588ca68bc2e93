//! What becomes of answers that are no success.

use std::sync::Arc;
use std::time::Duration;

use codeworkspace_source::{
    Access, ConfigurationError, Github, GithubConfiguration, ManualClock, SourceError,
    SourceErrorReason as Reason,
};
use github_server::{Answer, RateLimit, RequestKind, Switches};
use jiff::Timestamp;

use crate::world::{World, fault, one_file, source};

/// Checks that an error is a limit for what is asked without a credential, and returns the wait. Waits grow by up to a tenth.
fn wait(world: &World, reference: &str, error: &SourceError) -> u64 {
    let text = format!(
        "`{}` allows no more requests without a credential for now, and will be asked again later",
        world.server.api_host()
    );
    let expected = SourceError {
        retry_after: error.retry_after,
        ..fault(Reason::RateLimited, reference, &text)
    };
    assert_eq!(*error, expected);
    error.retry_after.unwrap().as_secs()
}

#[tokio::test]
async fn a_403_with_retry_after_is_a_limit_that_heals_without_an_edit() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    world.answer(
        RequestKind::Reference,
        403,
        &[("retry-after", "30"), ("x-ratelimit-remaining", "4000")],
    );
    let seconds = wait(&world, "main", &world.failure("main").await);
    assert!((30..=33).contains(&seconds), "{seconds}");

    // Until then nobody is asked, for this or any other source.
    world.server.reset_requests();
    world.set_switches(Switches::default());
    world.clock.advance(Duration::from_secs(20));
    assert_eq!(wait(&world, "main", &world.failure("main").await), seconds - 20);
    assert_eq!(wait(&world, &commit, &world.failure(&commit).await), seconds - 20);
    assert_eq!(world.server.requests().total(), 0);

    world.clock.advance(Duration::from_secs(seconds - 20));
    assert_eq!(world.revision("main").await, commit);
}

#[tokio::test]
async fn a_used_up_limit_is_left_alone_before_the_host_has_to_refuse() {
    let world = World::new().await;
    world.tools(&one_file());
    let reset = Timestamp::now().as_second() + 600;
    world.server.set_rate_limit(RateLimit {
        limit: 60,
        remaining: 2,
        reset,
    });
    // Two requests look the name up; none is left for the archive.
    let error = world.failure("main").await;
    assert_eq!(error.reason, Reason::RateLimited);
    assert_eq!(world.server.requests().api(), 2);
    let shown = world.github.statistics().rate_limits["anonymous"];
    assert_eq!(
        (shown.limit, shown.remaining, shown.reset.as_second()),
        (60, 0, reset)
    );
    world.failure("other").await;
    assert_eq!(world.server.requests().api(), 2);
    world.clock.advance(Duration::from_secs(661));
    world.server.set_rate_limit(RateLimit {
        limit: 60,
        remaining: 60,
        reset: reset + 3600,
    });
    world.resolve("main").await.unwrap();
}

#[tokio::test]
async fn a_limit_without_a_time_doubles_the_wait() {
    let world = World::new().await;
    world.tools(&one_file());
    world.answer(RequestKind::Reference, 429, &[]);
    for seconds in [60, 120, 240] {
        let error = world.failure("refs/heads/main").await;
        let waits = wait(&world, "refs/heads/main", &error);
        assert!((seconds..=seconds + seconds / 10).contains(&waits), "{waits}");
        world.clock.advance(Duration::from_secs(waits));
    }
    world.set_switches(Switches::default());
    world.resolve("refs/heads/main").await.unwrap();
}

#[tokio::test]
async fn each_refusal_has_its_own_reason_and_says_what_to_do() {
    let world = World::new().await;
    world.tools(&one_file());
    let host = world.server.api_host();
    for (status, header, reason, text) in [
        (
            401,
            None,
            Reason::AuthFailed,
            "wants a credential (HTTP 401), and none was used: only public repositories can be read",
        ),
        (
            403,
            None,
            Reason::Forbidden,
            "refuses (HTTP 403), no credential was used; check that the repository is public",
        ),
        (
            451,
            None,
            Reason::LegallyBlocked,
            "does not serve the repository for legal reasons (HTTP 451); use another source",
        ),
        (
            500,
            None,
            Reason::FetchFailed,
            "answers HTTP 500; it will be asked again",
        ),
        (
            422,
            None,
            Reason::FetchFailed,
            "answers HTTP 422; it will be asked again",
        ),
    ] {
        world.answer(RequestKind::Reference, status, header.as_slice());
        let expected = fault(reason, "main", &format!("`{host}` {text}"));
        assert_eq!(world.failure("main").await, expected);
        world.clock.advance(Duration::from_secs(30));
    }
}

#[tokio::test]
async fn an_answer_that_is_not_githubs_is_told_without_quoting_it() {
    let world = World::new().await;
    world.tools(&one_file());
    let answer = Answer {
        status: 200,
        body: Some("<h1>secret portal</h1>".to_owned()),
        ..Answer::default()
    };
    world.set_switches(Switches {
        answer: Some(answer),
        ..Switches::default()
    });
    let text = format!(
        "`{}` does not answer like GitHub; it will be asked again",
        world.server.api_host()
    );
    assert_eq!(
        world.failure("main").await,
        fault(Reason::FetchFailed, "main", &text)
    );
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_is_named_without_the_address_of_the_request() {
    let clock = Arc::new(ManualClock::new(Timestamp::now()));
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let configuration = GithubConfiguration {
        api_base: format!("http://{free}/api/v3"),
        insecure_hosts: vec![free.clone()],
        ..GithubConfiguration::default()
    };
    let github = Github::new(configuration, clock).unwrap();
    let error = github
        .materialize(
            &source("octo/tools", "main"),
            codeworkspace_source::LinkPolicy::Keep,
            &Access::Anonymous,
        )
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::FetchFailed);
    let start = format!("octo/tools@main: `{free}` cannot be reached: ");
    assert!(error.message.starts_with(&start), "{}", error.message);
    assert!(!error.message.contains("/repos/"), "{}", error.message);
}

#[tokio::test]
async fn a_silent_host_is_given_up_after_the_idle_timeout() {
    let world = World::with(|configuration| configuration.idle_timeout_seconds = 1).await;
    world.tools(&one_file());
    world.set_switches(Switches {
        hold: vec![RequestKind::Reference],
        ..Switches::default()
    });
    let text = format!(
        "`{}` sends nothing for 1 s (idleTimeoutSeconds)",
        world.server.api_host()
    );
    assert_eq!(
        world.failure("main").await,
        fault(Reason::FetchFailed, "main", &text)
    );
}

#[tokio::test]
async fn without_a_credential_nobody_is_asked_when_the_operator_forbids_it() {
    let world = World::with(|configuration| configuration.anonymous = false).await;
    let text = "no credential is configured, and the operator's configuration (`anonymous`) forbids requests without one";
    assert_eq!(
        world.failure("main").await,
        fault(Reason::CredentialRequired, "main", text)
    );
    assert_eq!(world.server.requests().total(), 0);
}

#[test]
fn a_configuration_that_cannot_work_is_refused_at_the_start() {
    let refused = |change: &dyn Fn(&mut GithubConfiguration)| {
        let mut configuration = GithubConfiguration::default();
        change(&mut configuration);
        let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
        match Github::new(configuration, clock) {
            Err(ConfigurationError::Client(error)) => panic!("{error}"),
            Err(error) => error.to_string(),
            Ok(_) => panic!("accepted"),
        }
    };
    let base = |value: &str| refused(&|configuration| configuration.api_base = value.to_owned());
    let example = "; write for example `https://api.github.com`";
    assert_eq!(
        base("github.com"),
        format!("apiBase `github.com`: relative URL without a base{example}")
    );
    assert_eq!(
        base("http://api.github.com"),
        format!(
            "apiBase `http://api.github.com`: is not https, and insecureHosts does not list its host{example}"
        )
    );
    assert_eq!(
        base("file:///etc"),
        format!("apiBase `file:///etc`: is neither http nor https{example}")
    );
    assert_eq!(
        base("https://h/?a=b"),
        format!("apiBase `https://h/?a=b`: has a query or fragment{example}")
    );
    let hosts = |value: &str| refused(&|configuration| configuration.download_hosts = vec![value.to_owned()]);
    for value in [
        "https://codeload.github.com",
        "a/b",
        "user@a",
        "a:b",
        "",
        "a?b",
        "*.github.com",
    ] {
        assert_eq!(
            hosts(value),
            format!("downloadHosts: `{value}` is no host; write `host` or `host:port`")
        );
    }
    assert_eq!(
        refused(&|configuration| configuration.max_download_bytes = 0),
        "maxDownloadBytes must be greater than 0"
    );
}
