//! Stories of what administrators decide, of credentials, and of many workspaces at once.

use github_server::{Answer, Switches};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::story::{RUNS, Story};
use codeworkspace_source::Clock as _;

fn floating(reference: &str) -> Value {
    json!({"code": {"sources": [{"github": {"repo": "octo/tool", "ref": reference}}]}, "run": "main.py", "scanInterval": "1m"})
}

#[tokio::test]
async fn a_thousand_workspaces_on_one_branch_ask_github_a_few_times_a_minute_and_never_while_limited() {
    const WORKSPACES: usize = 1_000;
    const MINUTES: i64 = 3;
    let story = Story::new().await;
    story.commit("print(1)");
    let start = story.clock.now();
    let mut due: Vec<(String, jiff::Timestamp)> = Vec::with_capacity(WORKSPACES);
    for number in 0..WORKSPACES {
        let name = format!("tool-{number}");
        story.apply_as(&name, 1, &json!({"code": {"sources": [{"github": {"repo": "octo/tool", "ref": "main"}}]}, "scanInterval": "1m"}));
        due.push((name, start));
    }
    // Every look at its time, as the controller would do it.
    let mut counts = Vec::new();
    let mut before = story.github.requests().api();
    for minute in 0..=MINUTES {
        let end = start + SignedDuration::from_mins(minute + 1);
        loop {
            due.sort_by_key(|(_, at)| *at);
            let (name, at) = due[0].clone();
            if at >= end {
                break;
            }
            let ahead = at.duration_since(story.clock.now());
            if ahead.is_positive() {
                story.clock.advance(ahead.unsigned_abs());
            }
            let delay = story.reconcile_as(&name).await;
            due[0].1 = story.clock.now() + SignedDuration::try_from(delay).unwrap();
        }
        let now = story.github.requests().api();
        counts.push(now - before);
        before = now;
    }
    // The first minute has the download too; afterwards a branch is two questions each half minute at most.
    assert!(
        counts[1..].iter().all(|count| *count < 5),
        "calls each minute: {counts:?}"
    );
    assert!(counts[1..].iter().sum::<u64>() > 0, "nobody looked: {counts:?}");

    story.github.set_switches(Switches {
        answer: Some(Answer {
            status: 403,
            headers: [("retry-after".to_owned(), "600".to_owned())].into(),
            ..Answer::default()
        }),
        ..Switches::default()
    });
    story.clock.advance(std::time::Duration::from_mins(1));
    let first = due[0].0.clone();
    story.reconcile_as(&first).await;
    let limited = story.github.requests().api();
    for minute in 0..5 {
        story.clock.advance(std::time::Duration::from_mins(1));
        for (name, _) in due.iter().skip(minute * 10).take(10) {
            story.reconcile_as(name).await;
        }
    }
    assert_eq!(story.github.requests().api(), limited, "asked while limited");
}

#[tokio::test]
async fn a_version_that_moved_is_believed_for_a_day_unless_somebody_asks() {
    let story = Story::new().await;
    let repository = story.github.repository("octo/tool").unwrap();
    let first = story.commit("print(1)");
    repository.tag("v1", &first).unwrap();
    story.apply(1, &floating("v1"));
    story.reconcile().await;
    let second = story.commit("print(2)");
    repository.tag("v1", &second).unwrap();
    let revision = |story: &Story| story.status_of("tool").sources[0].revision.clone();
    story.clock.advance(std::time::Duration::from_hours(23));
    story.reconcile().await;
    assert_eq!(revision(&story), Some(first.clone()));
    story.clock.advance(std::time::Duration::from_hours(2));
    story.reconcile().await;
    assert_eq!(revision(&story), Some(second.clone()));
    assert_eq!(
        story.api.events("TagMoved"),
        [format!(
            "code.sources[0]: tag v1 of octo/tool moved from commit {first} to {second}"
        )]
    );

    let third = story.commit("print(3)");
    repository.tag("v1", &third).unwrap();
    story.clock.advance(std::time::Duration::from_mins(1));
    let asked = json!({"generation": 1, "annotations": {"codeworkspace.dev/reconcile-at": "now"}});
    story.put("tool", &asked, &floating("v1"));
    story.reconcile().await;
    assert_eq!(revision(&story), Some(third));
    assert_eq!(
        story.status_of("tool").last_handled_reconcile_at.as_deref(),
        Some("now")
    );
}

#[tokio::test]
async fn where_pins_are_required_a_floating_reference_is_refused_by_name() {
    let unlabelled = Story::new().await;
    unlabelled.label_namespace("codeworkspace.dev/require-pin", "true");
    let everywhere = Story::configured("requirePin: true").await;
    for story in [unlabelled, everywhere] {
        let commit = story.commit("print(1)");
        story.apply(1, &floating("main"));
        story.reconcile().await;
        let error = story.status_of("tool").sources[0].error.clone().unwrap();
        assert_eq!(error.reason, "PinRequired");
        assert!(
            error.message.contains("octo/tool@main is no whole commit id"),
            "{}",
            error.message
        );
        assert_eq!(story.api.paths(RUNS), Vec::<String>::new());
        story.apply(2, &floating(&commit));
        story.reconcile().await;
        assert_eq!(story.ready().status, "True");
    }
}

#[tokio::test]
async fn what_is_stale_for_too_long_starts_nothing_new_until_it_can_be_looked_up_again() {
    let story = Story::configured("scan: {staleLimitSeconds: 7200}").await;
    story.commit("print(1)");
    story.apply(1, &floating("main"));
    story.reconcile().await;
    story.github.set_switches(Switches {
        answer: Some(Answer {
            status: 503,
            ..Answer::default()
        }),
        ..Switches::default()
    });
    for (minutes, ready) in [(2, "True"), (119, "True"), (2, "False"), (10, "False")] {
        story.clock.advance(std::time::Duration::from_mins(minutes));
        story.reconcile().await;
        assert_eq!(story.ready().status, ready, "after {minutes} more minutes");
    }
    assert_eq!(
        story.status_of("tool").sources[0].error.clone().unwrap().reason,
        "StaleTooLong"
    );
    story.github.set_switches(Switches::default());
    story.clock.advance(std::time::Duration::from_mins(1));
    story.reconcile().await;
    assert_eq!(story.ready().status, "True");
}

#[tokio::test]
async fn two_connectors_of_one_driver_are_an_error_that_names_both() {
    let story = Story::new().await;
    story.commit("print(1)");
    let connector = json!({"connectors": [{"driver": "github", "secretRef": {"name": "token"}}]});
    story.inventory("one", &connector);
    story.inventory("two", &connector);
    story.apply(1, &floating("main"));
    story.reconcile().await;
    let error = story.status_of("tool").sources[0].error.clone().unwrap();
    assert_eq!(error.reason, "DuplicateConnector");
    assert!(
        error
            .message
            .contains("SecretInventory one and in SecretInventory two"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_private_repository_is_read_with_the_connectors_token_and_a_mended_secret_heals_within_half_a_minute()
 {
    const TOKEN: &str = "ghp_example";
    let story = Story::new().await;
    story.commit("print(1)");
    story
        .github
        .repository("octo/tool")
        .unwrap()
        .set_private(true)
        .unwrap();
    let token = json!({"token": TOKEN, "repositories": ["octo/tool"]});
    story
        .github
        .set_token("reader", serde_json::from_value(token).unwrap());
    story.apply(1, &floating("main"));
    let told = |story: &Story| story.status_of("tool").sources[0].error.clone().unwrap();
    story.reconcile().await;
    assert_eq!(told(&story).reason, "RepoOrRefNotFound");

    story.inventory(
        "default",
        &json!({"connectors": [{"driver": "github", "secretRef": {"name": "token"}}]}),
    );
    let secret = |text: &str| {
        let bytes = k8s_openapi::ByteString(text.as_bytes().to_vec());
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "data": {"token": bytes}
        });
        story.api.put("/api/v1/namespaces/default/secrets/token", secret);
    };
    for (value, reason) in [
        (None, "SecretNotFound"),
        (Some(""), "SecretInvalid"),
        (Some("ghp_revoked"), "AuthFailed"),
    ] {
        value.map(secret);
        let delay = story.reconcile().await;
        assert_eq!(told(&story).reason, reason);
        assert!(!told(&story).message.contains("ghp_"), "{}", told(&story).message);
        assert!(delay <= std::time::Duration::from_secs(30), "{reason}: {delay:?}");
        story.clock.advance(delay);
    }
    secret(&format!("{TOKEN}\n"));
    story.reconcile().await;
    assert_eq!(story.ready().status, "True", "{}", story.ready().message);
}
