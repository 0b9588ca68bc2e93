//! The way from a commit to its archive, and what may go wrong on it.

use std::time::Duration;

use codeworkspace_source::SourceErrorReason as Reason;
use github_server::{AfterCut, Archive, Body, Commit, Cut, GithubServer, Redirect, RequestKind, Switches};

use crate::world::{World, fault, lines, one_file};

fn redirect(redirect: Redirect) -> Switches {
    Switches {
        redirect,
        ..Switches::default()
    }
}

fn body(body: Body) -> Switches {
    Switches {
        body,
        ..Switches::default()
    }
}

fn archive(archive: Archive) -> Switches {
    Switches {
        archive,
        ..Switches::default()
    }
}

/// Bytes that do not compress, so that parts of an archive have about the size one expects.
fn noise(length: usize) -> Vec<u8> {
    let mut state: u32 = 1;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(length)
    .collect()
}

#[tokio::test]
async fn a_download_takes_one_redirect_and_carries_no_credential_to_either_host() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    let found = world.resolve(&commit).await.unwrap();
    assert_eq!(lines(&found.tree), ["a.txt: a"]);
    let requests = world.server.requests();
    assert_eq!(
        (
            requests.of(RequestKind::Tarball),
            requests.of(RequestKind::Download)
        ),
        (1, 1)
    );
    assert!(requests.credentials.is_empty(), "{:?}", requests.credentials);
}

#[tokio::test]
async fn redirects_are_followed_up_to_three_times() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    world.set_switches(redirect(Redirect::Chain(4)));
    let text = format!("`{}` redirects more than 3 times", world.server.download_host());
    assert_eq!(
        world.failure(&commit).await,
        fault(Reason::RedirectRefused, &commit, &text)
    );
    world.set_switches(redirect(Redirect::Chain(3)));
    world.clock.advance(Duration::from_secs(30));
    world.resolve(&commit).await.unwrap();
}

#[tokio::test]
async fn a_redirect_to_nowhere_is_an_error_and_no_empty_bundle() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    world.set_switches(redirect(Redirect::NoLocation));
    let text = format!("`{}` redirects without saying where to", world.server.api_host());
    assert_eq!(
        world.failure(&commit).await,
        fault(Reason::RedirectRefused, &commit, &text)
    );
}

#[tokio::test]
async fn a_redirect_to_a_host_that_is_not_configured_is_not_followed() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    let stranger = GithubServer::start().await.unwrap();
    let host = stranger.download_host();
    for (location, text) in [
        (
            format!("http://{host}/archive?token=secret"),
            format!("it leads to `{host}`, which `downloadHosts` of the operator's configuration does not list"),
        ),
        (
            "http://169.254.169.254/latest/meta-data".to_owned(),
            "it leads to `169.254.169.254`, which `downloadHosts` of the operator's configuration does not list".to_owned(),
        ),
        (format!("http://user:secret@{}/x", world.server.download_host()), "its address is malformed".to_owned()),
        ("http://[".to_owned(), "its address is malformed".to_owned()),
    ] {
        world.set_switches(redirect(Redirect::To(location)));
        let text = format!("a redirect of `{}` is refused: {text}", world.server.api_host());
        assert_eq!(world.failure(&commit).await, fault(Reason::RedirectRefused, &commit, &text));
        world.clock.advance(Duration::from_secs(30));
    }
    assert_eq!(stranger.requests().total(), 0);
    assert_eq!(world.server.requests().of(RequestKind::Download), 0);
}

#[tokio::test]
async fn plain_http_needs_a_host_that_is_marked_insecure() {
    let world = World::with(|configuration| {
        configuration.insecure_hosts.truncate(1);
    })
    .await;
    let commit = world.tools(&one_file());
    let text = format!(
        "a redirect of `{}` is refused: it leads to `{}` without TLS, and `insecureHosts` of the operator's configuration \
         does not list that host",
        world.server.api_host(),
        world.server.download_host()
    );
    assert_eq!(
        world.failure(&commit).await,
        fault(Reason::RedirectRefused, &commit, &text)
    );
    assert_eq!(world.server.requests().of(RequestKind::Download), 0);
}

#[tokio::test]
async fn a_connection_that_breaks_is_named_truncated_and_the_next_try_starts_clean() {
    let world = World::new().await;
    let commit = world.tools(&Commit::on("main").file("noise", noise(300_000)));
    world.set_switches(body(Body {
        cut: Some(Cut {
            percent: 60,
            then: AfterCut::Close,
        }),
        ..Body::default()
    }));
    let error = world.failure(&commit).await;
    assert_eq!(error.reason, Reason::ArchiveTruncated);
    let start = format!(
        "octo/tools@{commit}: `{}` broke off",
        world.server.download_host()
    );
    assert!(error.message.starts_with(&start), "{}", error.message);
    world.set_switches(Switches::default());
    assert_eq!(
        world.resolve(&commit).await.unwrap().tree.content_bytes(),
        300_000
    );
}

#[tokio::test]
async fn an_archive_that_ends_early_in_good_order_is_truncated_too() {
    let world = World::new().await;
    let commit = world.tools(&Commit::on("main").file("noise", noise(300_000)));
    for percent in [0, 60, 99] {
        world.set_switches(body(Body {
            cut: Some(Cut {
                percent,
                then: AfterCut::End,
            }),
            ..Body::default()
        }));
        let text = "the archive ends early; it will be fetched again";
        assert_eq!(
            world.failure(&commit).await,
            fault(Reason::ArchiveTruncated, &commit, text),
            "{percent} %"
        );
    }
    world.set_switches(Switches::default());
    world.resolve(&commit).await.unwrap();
}

#[tokio::test]
async fn a_download_that_stalls_is_given_up_after_the_idle_timeout() {
    let world = World::with(|configuration| configuration.idle_timeout_seconds = 1).await;
    let commit = world.tools(&Commit::on("main").file("noise", noise(10_000)));
    world.set_switches(body(Body {
        cut: Some(Cut {
            percent: 90,
            then: AfterCut::Stall,
        }),
        ..Body::default()
    }));
    let text = format!(
        "`{}` sends nothing for 1 s (idleTimeoutSeconds)",
        world.server.download_host()
    );
    assert_eq!(
        world.failure(&commit).await,
        fault(Reason::FetchFailed, &commit, &text)
    );
}

#[tokio::test]
async fn a_download_that_crawls_is_given_up_after_the_total_timeout() {
    let world = World::with(|configuration| configuration.total_timeout_seconds = 1).await;
    let commit = world.tools(&Commit::on("main").file("noise", noise(100_000)));
    world.set_switches(body(Body {
        bytes_per_second: Some(1024),
        ..Body::default()
    }));
    let text = "the download takes longer than 1 s (totalTimeoutSeconds)";
    assert_eq!(
        world.failure(&commit).await,
        fault(Reason::FetchFailed, &commit, text)
    );
    world.set_switches(Switches::default());
    world.resolve(&commit).await.unwrap();
}

#[tokio::test]
async fn an_archive_of_another_commit_is_refused() {
    let world = World::new().await;
    let first = world.tools(&one_file());
    let second = world
        .server
        .repository("octo/tools")
        .unwrap()
        .commit(&Commit::on("main").file("b", "b"))
        .unwrap();
    let made_up = "0123456789abcdef0123456789abcdef01234567".to_owned();
    let not_of = |other: &str| format!("the archive is refused: it is of commit `{other}`, not {first}");
    for (switch, text) in [
        (
            Archive {
                revision: Some(second.clone()),
                ..Archive::default()
            },
            not_of(&second),
        ),
        (
            Archive {
                comment: Some(made_up.clone()),
                ..Archive::default()
            },
            not_of(&made_up),
        ),
        (
            Archive {
                revision: Some(format!("{first}^{{tree}}")),
                ..Archive::default()
            },
            "the archive is refused: it does not begin with the commit's id, as archives of commits do"
                .to_owned(),
        ),
    ] {
        world.set_switches(archive(switch));
        assert_eq!(
            world.failure(&first).await,
            fault(Reason::ArchiveRefused, &first, &text)
        );
        world.clock.advance(Duration::from_secs(30));
    }
}

#[tokio::test]
async fn a_refused_archive_is_not_fetched_again_at_once() {
    let world = World::new().await;
    let commit = world.tools(&one_file());
    world.set_switches(archive(Archive {
        bytes: Some(b"not an archive".to_vec()),
        ..Archive::default()
    }));
    let refused = world.failure(&commit).await;
    assert_eq!(refused.reason, Reason::ArchiveRefused);
    world.set_switches(Switches::default());
    assert_eq!(world.failure(&commit).await, refused);
    assert_eq!(world.server.requests().of(RequestKind::Download), 1);
    world.clock.advance(Duration::from_secs(30));
    world.resolve(&commit).await.unwrap();
}

#[tokio::test]
async fn an_archive_above_the_download_limit_is_refused_with_both_numbers() {
    let world = World::with(|configuration| configuration.max_download_bytes = 100_000).await;
    let commit = world.tools(&Commit::on("main").file("noise", noise(300_000)));
    let error = world.failure(&commit).await;
    assert_eq!(
        (error.reason, error.reason.class().as_str()),
        (Reason::TooLarge, "BundleSizeError")
    );
    let start = format!("octo/tools@{commit}: the archive has at least ");
    let end = " bytes, more than the limit of 100000 (maxDownloadBytes of the operator's configuration)";
    assert!(
        error.message.starts_with(&start) && error.message.ends_with(end),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_repository_above_the_archive_limits_is_refused_as_too_large() {
    let world = World::with(|configuration| configuration.max_entries = 2).await;
    let files = |count: usize| {
        (0..count).fold(Commit::on("main"), |commit, number| {
            commit.file(number.to_string(), "x")
        })
    };
    let fits = world.tools(&files(2));
    world.resolve(&fits).await.unwrap();
    let larger = world
        .server
        .repository("octo/tools")
        .unwrap()
        .commit(&files(3))
        .unwrap();
    let text = "the repository has at least 3 files and links, more than the limit of 2 (maxEntries of the operator's \
                configuration)";
    assert_eq!(
        world.failure(&larger).await,
        fault(Reason::TooLarge, &larger, text)
    );
}
