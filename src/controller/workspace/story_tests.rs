//! Whole reconciles against a small API server and a server that plays GitHub over real git repositories.

use std::time::Duration;

use codeworkspace_api::CodeWorkspace;
use codeworkspace_source::Clock as _;
use github_server::{Answer, Switches};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::story::{CONFIG_MAPS, RUNS, Story, WORKSPACE};
use crate::controller::{Readable, workspace::refuse};

#[path = "healing_tests.rs"]
mod healing;

#[tokio::test]
async fn nothing_to_do_means_no_call_to_github_and_no_write_for_an_hour() {
    let story = Story::new().await;
    let commit = story.commit("print('hi')");
    story.apply(
        1,
        &json!({"code": {"sources": [{"github": {"repo": "octo/tool", "ref": commit}}]}, "run": "main.py"}),
    );
    story.reconcile().await;
    assert_eq!(story.condition("Ready"), ("True".to_owned(), "Ready".to_owned()));
    assert_eq!(
        (story.api.paths(RUNS).len(), story.api.paths(CONFIG_MAPS).len()),
        (1, 1)
    );
    story.reconcile().await;
    story.api.take_writes();
    let before = story.github.requests();
    let end = story.clock.now() + SignedDuration::from_hours(1);
    let mut looks = 0;
    while story.clock.now() < end {
        let delay = story.reconcile().await;
        assert!(delay > Duration::ZERO, "a requeue without delay");
        story.clock.advance(delay);
        looks += 1;
    }
    assert!(looks >= 1);
    assert_eq!(story.api.take_writes(), Vec::<String>::new());
    assert_eq!(story.github.requests(), before);
}

#[tokio::test]
async fn of_four_sources_two_fail_each_by_itself_and_nothing_runs_until_both_are_mended() {
    let story = Story::new().await;
    story.commit("print('hi')");
    let good = json!({"github": {"repo": "octo/tool", "ref": "main"}});
    let inline = json!({"inline": {"path": "extra.txt", "content": "hello"}});
    let missing = json!({"github": {"repo": "octo/tool", "ref": "no-such-branch"}});
    let outside = json!({"inline": {"path": "../escape.txt", "content": "x"}});
    let spec = |sources: Value| json!({"code": {"sources": sources}, "run": "main.py"});
    story.apply(1, &spec(json!([good, missing, inline, outside])));
    story.reconcile().await;
    let status = story.workspace().status.unwrap();
    let seen: Vec<_> = status
        .sources
        .iter()
        .map(|source| {
            let reason = source
                .error
                .as_ref()
                .map(|error| (error.class.as_str(), error.reason.as_str()));
            (
                source.path.as_str(),
                source.files,
                source.size_bytes,
                source.revision.is_some(),
                reason,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("code.sources[0]", Some(1), Some(11), true, None),
            (
                "code.sources[1]",
                None,
                None,
                false,
                Some(("SourceResolutionError", "RepoOrRefNotFound"))
            ),
            ("code.sources[2]", Some(1), Some(5), false, None),
            (
                "code.sources[3]",
                None,
                None,
                false,
                Some(("ManifestValidationError", "Invalid"))
            ),
        ]
    );
    assert_eq!(story.condition("SourcesResolved").0, "False");
    assert_eq!(
        (story.api.paths(RUNS), story.api.paths(CONFIG_MAPS)),
        (vec![], vec![])
    );

    story.apply(
        2,
        &spec(json!([good, missing, inline, {"inline": {"path": "mended.txt", "content": "x"}}])),
    );
    story.reconcile().await;
    let failed = story
        .workspace()
        .status
        .unwrap()
        .sources
        .iter()
        .filter(|source| source.error.is_some())
        .count();
    assert_eq!((failed, story.api.paths(RUNS).len()), (1, 0));

    story.apply(3, &spec(json!([good, inline])));
    story.reconcile().await;
    assert_eq!(story.condition("Ready"), ("True".to_owned(), "Ready".to_owned()));
    assert_eq!(story.api.paths(RUNS).len(), 1);
}

#[tokio::test]
async fn a_moved_branch_is_a_new_bundle_and_a_new_run_and_the_old_bundle_goes() {
    let story = Story::new().await;
    story.commit("print(1)");
    story.apply(
        1,
        &json!({"code": {"sources": [{"github": {"repo": "octo/tool", "ref": "main"}}]}, "run": "main.py"}),
    );
    let delay = story.reconcile().await;
    let first = story.workspace().status.unwrap();
    for path in story.api.paths(RUNS) {
        let mut run = story.api.get(&path).unwrap();
        run["status"] = json!({"outcome": "Succeeded", "exitCode": 0});
        story.api.put(&path, run);
    }
    story.commit("print(2)");
    story.clock.advance(delay);
    story.reconcile().await;
    let second = story.workspace().status.unwrap();
    assert_ne!(
        first.bundle.as_ref().unwrap().digest,
        second.bundle.as_ref().unwrap().digest
    );
    assert_ne!(first.last_run.unwrap().key, second.last_run.unwrap().key);
    assert_eq!(
        second.history,
        [second.bundle.unwrap().digest, first.bundle.unwrap().digest]
    );
    assert_eq!(
        (story.api.paths(RUNS).len(), story.api.paths(CONFIG_MAPS).len()),
        (2, 1)
    );
}

#[tokio::test]
async fn a_github_that_is_down_leaves_the_last_bundle_stale_also_after_a_restart_of_the_operator() {
    let mut story = Story::new().await;
    story.commit("print(1)");
    story.apply(
        1,
        &json!({"code": {"sources": [{"github": {"repo": "octo/tool", "ref": "main"}}]}, "run": "main.py"}),
    );
    let delay = story.reconcile().await;
    let good = story.workspace().status.unwrap();
    story.github.set_switches(Switches {
        answer: Some(Answer {
            status: 503,
            ..Answer::default()
        }),
        ..Switches::default()
    });
    story.clock.advance(delay);
    for restarted in [false, true] {
        if restarted {
            story.restart_operator();
        }
        story.reconcile().await;
        let stale = story.workspace().status.unwrap();
        assert_eq!((&stale.bundle, &stale.last_run), (&good.bundle, &good.last_run));
        assert_eq!(story.condition("Ready").0, "True");
        assert_eq!(
            story.condition("Stale"),
            ("True".to_owned(), "SourceUnavailable".to_owned())
        );
    }
    story.github.set_switches(Switches::default());
    story.clock.advance(delay);
    story.reconcile().await;
    assert_eq!(story.workspace().status.unwrap().sources, good.sources);
    assert_eq!(story.api.paths(RUNS).len(), 1);
}

#[tokio::test]
async fn the_current_key_never_runs_twice_not_even_when_its_run_was_deleted() {
    let mut story = Story::new().await;
    let spec = json!({"code": {"sources": [{"inline": {"path": "main.py", "content": "print(1)"}}]}, "run": "main.py"});
    story.apply(1, &spec);
    story.reconcile().await;
    let path = story.api.paths(RUNS).remove(0);
    let mut run = story.api.get(&path).unwrap();
    run["status"] = json!({"outcome": "Failed", "exitCode": 3});
    story.api.put(&path, run);
    story.reconcile().await;
    story.api.remove(&path);
    story.restart_operator();
    story.reconcile().await;
    let last = story.workspace().status.unwrap().last_run.unwrap();
    assert_eq!(last.exit_code, Some(3));
    assert_eq!(story.api.paths(RUNS), Vec::<String>::new());
}

#[tokio::test]
async fn a_refused_config_map_is_told_in_the_servers_words_and_nothing_runs() {
    let story = Story::new().await;
    story.api.refuse(
        "/configmaps",
        "exceeded quota: few, requested: count/configmaps=1",
    );
    story.apply(
        1,
        &json!({"code": {"sources": [{"inline": {"path": "main.py", "content": "1"}}]}, "run": "main.py"}),
    );
    story.reconcile().await;
    assert_eq!(
        story.condition("Ready"),
        ("False".to_owned(), "DeliveryFailed".to_owned())
    );
    assert!(
        story
            .workspace()
            .status
            .unwrap()
            .conditions
            .iter()
            .any(|condition| condition.message.contains("exceeded quota"))
    );
    assert_eq!(story.api.paths(RUNS), Vec::<String>::new());
}

#[tokio::test]
async fn fields_of_later_versions_are_named_and_nothing_runs() {
    let story = Story::new().await;
    story.apply(
        1,
        &json!({
            "code": {"sources": [{"inline": {"path": "main.py", "content": "1"}}, {"local": "data/"}]},
            "run": "main.py",
            "runner": {"engine": "sandbox", "needs": {"pip": ["requests"]}},
            "secrets": {"KEY": {"vault": "key"}},
            "network": {"egress": ["example.com"]}
        }),
    );
    story.reconcile().await;
    let status = story.workspace().status.unwrap();
    let error = status.sources[1].error.as_ref().unwrap();
    assert_eq!(error.reason, "RootMissing");
    let ready = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
        .unwrap();
    assert!(
        ready.message.contains("secrets.KEY, runner.needs.pip[requests]"),
        "{}",
        ready.message
    );
    assert_eq!(status.effective.unwrap().egress, ["example.com"]);
    assert_eq!(story.api.paths(RUNS), Vec::<String>::new());
}

#[tokio::test]
async fn faults_of_the_blocks_themselves_are_told_too_and_nothing_runs() {
    let story = Story::new().await;
    let source = json!({"inline": {"path": "main.py", "content": "1"}});
    for (spec, told) in [
        (
            json!({"code": {"sources": [source], "source": []}, "run": "main.py"}),
            "code.source",
        ),
        (
            json!({"code": {"sources": [source]}, "run": "main.py", "kind": "tool"}),
            "kind: only the AIP blocks",
        ),
        (
            json!({"code": {"sources": [source]}, "run": "main.py", "volume": {"mount": "/x"}}),
            "volume.mount",
        ),
        (
            json!({"code": {"sources": [source]}, "run": "main.py", "scanInterval": "soon"}),
            "scanInterval",
        ),
        (
            json!({"code": {"sources": [source]}, "run": {"fil": "main.py"}}),
            "run.fil",
        ),
        (
            json!({"code": {"sources": [source]}, "run": "mian.py"}),
            "did you mean `main.py`?",
        ),
        (
            json!({"code": {"sources": [source]}, "run": "main.py", "network": {"egres": []}}),
            "network.egres",
        ),
    ] {
        story.apply(1, &spec);
        story.reconcile().await;
        let ready = story.ready();
        assert_eq!(ready.status, "False", "{spec}");
        assert!(ready.message.contains(told), "{told} is not in {}", ready.message);
        assert_eq!(story.api.paths(RUNS), Vec::<String>::new(), "{spec}");
    }
}

#[tokio::test]
async fn names_that_differ_only_in_case_are_warned_of() {
    let story = Story::new().await;
    let inline = |path: &str| json!({"inline": {"path": path, "content": "x"}});
    story.apply(
        1,
        &json!({"code": {"sources": [inline("Readme.md"), inline("README.md")]}}),
    );
    story.reconcile().await;
    let warnings = story.workspace().status.unwrap().bundle.unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("README.md") && warnings[0].contains("Readme.md"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_list_that_begins_with_an_interpreter_of_another_template_is_warned_of() {
    let story = Story::new().await;
    let source = json!({"inline": {"path": "main.py", "content": "1"}});
    let spec = |runner: Value| json!({"code": {"sources": [source]}, "run": ["python", "main.py"], "runner": runner});
    story.apply(1, &spec(json!({})));
    story.reconcile().await;
    assert_eq!(
        story.workspace().status.unwrap().run.unwrap().warnings,
        ["RunnerTemplate node probably has no `python`: set runner.needs.language: python"]
    );
    story.apply(2, &spec(json!({"needs": {"language": "python"}})));
    story.reconcile().await;
    assert_eq!(
        story.workspace().status.unwrap().run.unwrap().warnings,
        Vec::<String>::new()
    );
}
