//! Stories of what other people's objects, outages and sheer size may do to a workspace.

use std::collections::BTreeSet;
use std::time::Duration;

use github_server::{Answer, Switches};
use serde_json::{Value, json};

use super::story::{CONFIG_MAPS, RUNS, Story};
use crate::controller::Dependency;

fn inline(path: &str, content: &str) -> Value {
    json!({"inline": {"path": path, "content": content}})
}

fn down() -> Switches {
    Switches {
        answer: Some(Answer {
            status: 503,
            ..Answer::default()
        }),
        ..Switches::default()
    }
}

fn is_true(story: &Story, type_: &str) -> bool {
    let conditions = story.status_of("tool").conditions;
    conditions
        .iter()
        .any(|condition| condition.type_ == type_ && condition.status == "True")
}

#[tokio::test]
async fn a_block_in_a_file_of_a_root_that_does_not_exist_yet_is_waited_for_and_not_called_wrong() {
    let story = Story::new().await;
    let spec = json!({
        "root": {"configMaps": [{"name": "files"}]},
        "code": {"sources": [inline("main.py", "print(1)")]},
        "run": "main.py",
        "runner": {"file": "runner.yaml"}
    });
    story.apply(1, &spec);
    story.reconcile().await;
    assert_eq!(story.ready().reason, "RootNotFound");
    assert!(
        is_true(&story, "Reconciling") && !is_true(&story, "Stalled"),
        "{}",
        story.ready().message
    );
    story.api.put(
        &format!("{CONFIG_MAPS}files"),
        json!({"metadata": {"name": "files"}, "data": {"runner.yaml": "limits: {memory_mb: 300}"}}),
    );
    story.reconcile().await;
    assert_eq!(story.ready().status, "True", "{}", story.ready().message);
    assert_eq!(story.status_of("tool").runner.unwrap().limits.memory_mb, 300);
}

#[tokio::test]
async fn two_workspaces_of_one_path_are_named_and_a_change_of_either_wakes_whoever_refers_to_them() {
    let story = Story::new().await;
    let lib = |path: &str| json!({"path": path, "code": {"sources": [inline("main.py", "print(1)")]}});
    story.apply_as("one", 1, &lib("./lib"));
    story.apply_as("two", 1, &lib("./lib"));
    story.apply(1, &json!({"code": "./lib", "run": "main.py"}));
    story.reconcile().await;
    let message = story.ready().message;
    assert!(
        message.contains("CodeWorkspaces one and two both have this path"),
        "{message}"
    );
    assert!(is_true(&story, "Reconciling"));
    for name in ["one", "two"] {
        let dependency = Dependency::Workspace(name.to_owned());
        assert_eq!(
            story.context.dependencies.dependents("default", &dependency),
            BTreeSet::from(["tool".to_owned()])
        );
    }
    story.apply_as("two", 2, &lib("./other"));
    story.reconcile().await;
    assert_eq!(story.ready().status, "True");
}

#[tokio::test]
async fn while_the_root_that_holds_a_manifest_cannot_be_read_its_last_good_bundle_stays() {
    let mut story = Story::new().await;
    let manifest =
        "kind: code-workspace\nname: lib\ncode: {sources: [{inline: {path: main.py, content: print(1)}}]}\n";
    let repository = story.github.repository("octo/tool").unwrap();
    repository
        .commit(&github_server::Commit::on("main").file("lib/manifest.yaml", manifest))
        .unwrap();
    let spec = json!({
        "root": {"github": {"repo": "octo/tool", "ref": "main"}}, "code": "./lib", "run": "main.py"
    });
    story.apply(1, &spec);
    let delay = story.reconcile().await;
    assert_eq!(story.ready().status, "True", "{}", story.ready().message);
    assert!(
        delay <= Duration::from_mins(11),
        "its branch is looked up: {delay:?}"
    );
    let good = story.status_of("tool");
    story.github.set_switches(down());
    story.restart_operator();
    story.clock.advance(delay);
    story.reconcile().await;
    assert_eq!(story.ready().status, "True", "{}", story.ready().message);
    assert!(is_true(&story, "Stale"));
    let stale = story.status_of("tool");
    assert_eq!((&stale.bundle, &stale.last_run), (&good.bundle, &good.last_run));
    story.github.set_switches(Switches::default());
    story.clock.advance(Duration::from_mins(1));
    story.reconcile().await;
    assert!(!is_true(&story, "Stale"));
    assert_eq!(story.api.paths(RUNS).len(), 1);
}

#[tokio::test]
async fn a_look_that_was_asked_for_within_the_floor_is_made_when_the_floor_is_over() {
    let story = Story::new().await;
    story.commit("print(1)");
    let spec =
        json!({"code": {"sources": [{"github": {"repo": "octo/tool", "ref": "main"}}]}, "run": "main.py"});
    story.apply(1, &spec);
    story.reconcile().await;
    let moved = story.commit("print(2)");
    story.clock.advance(Duration::from_secs(10));
    let asked = json!({"generation": 1, "annotations": {"codeworkspace.dev/reconcile-at": "now"}});
    story.put("tool", &asked, &spec);
    let delay = story.reconcile().await;
    assert_eq!(
        (delay, story.status_of("tool").last_handled_reconcile_at),
        (Duration::from_secs(21), None)
    );
    story.clock.advance(delay);
    story.reconcile().await;
    let status = story.status_of("tool");
    assert_eq!(status.sources[0].revision, Some(moved));
    assert_eq!(status.last_handled_reconcile_at.as_deref(), Some("now"));
}

#[tokio::test]
async fn references_that_multiply_files_beyond_every_limit_are_given_up_before_they_fill_memory() {
    let story = Story::configured("bundle: {entries: 2}").await;
    story.apply_as(
        "lib",
        1,
        &json!({"code": {"sources": [inline("a", "1"), inline("b", "2")]}}),
    );
    let many: Vec<Value> = (0..8).map(|_| json!({"ref": "./lib"})).collect();
    story.apply(1, &json!({"code": {"sources": many}}));
    story.reconcile().await;
    let sources = story.status_of("tool").sources;
    let failed: Vec<_> = sources
        .iter()
        .filter_map(|source| source.error.as_ref())
        .collect();
    // Eight files and the rest of their group are held, the last four sources are not fetched.
    assert_eq!((sources.len(), failed.len()), (16, 4));
    assert_eq!(
        (failed[0].class.as_str(), failed[0].reason.as_str()),
        ("BundleSizeError", "TooLarge")
    );
}

#[tokio::test]
async fn an_inventory_that_is_wrong_is_never_taken_for_none() {
    let story = Story::new().await;
    story.commit("print(1)");
    story.inventory(
        "default",
        &json!({"connectors": [
            {"driver": "github", "secretRef": {"name": "token", "namespace": "kube-system"}}
        ]}),
    );
    let spec =
        json!({"code": {"sources": [{"github": {"repo": "octo/tool", "ref": "main"}}]}, "run": "main.py"});
    story.apply(1, &spec);
    story.reconcile().await;
    let error = story.status_of("tool").sources[0].error.clone().unwrap();
    assert_eq!(error.reason, "ManifestValidationError");
    assert!(
        error.message.contains("connectors[0].secretRef.namespace"),
        "{}",
        error.message
    );
    assert_eq!(
        story.github.requests().api(),
        0,
        "nobody was asked without the credential"
    );
}

#[tokio::test]
async fn a_token_of_the_cluster_itself_is_never_sent_to_another_service() {
    let story = Story::new().await;
    story.commit("print(1)");
    story.inventory(
        "default",
        &json!({"connectors": [{"driver": "github", "secretRef": {"name": "token"}}]}),
    );
    story.api.put(
        "/api/v1/namespaces/default/secrets/token",
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"},
            "type": "kubernetes.io/service-account-token", "data": {"token": "c2VjcmV0"}
        }),
    );
    let spec =
        json!({"code": {"sources": [{"github": {"repo": "octo/tool", "ref": "main"}}]}, "run": "main.py"});
    story.apply(1, &spec);
    story.reconcile().await;
    let error = story.status_of("tool").sources[0].error.clone().unwrap();
    assert_eq!(error.reason, "SecretInvalid");
    assert_eq!(story.github.requests().api(), 0);
}

#[tokio::test]
async fn globs_that_would_take_minutes_are_refused_before_they_are_tried() {
    let story = Story::new().await;
    let keys: serde_json::Map<String, Value> = (0..3_000)
        .map(|number| (format!("{}{number:06}", "a".repeat(240)), json!("")))
        .collect();
    story.api.put(
        &format!("{CONFIG_MAPS}files"),
        json!({"metadata": {"name": "files"}, "data": keys}),
    );
    let glob = format!("*{}b", "a".repeat(200));
    let sources: Vec<Value> = (0..64)
        .map(|_| json!({"local": {"path": "./", "glob": glob}}))
        .collect();
    story.apply(
        1,
        &json!({"root": {"configMaps": [{"name": "files"}]}, "code": {"sources": sources}}),
    );
    story.reconcile().await;
    let status = story.status_of("tool");
    let too_long = |source: &&codeworkspace_api::SourceStatus| {
        let error = source.error.as_ref().unwrap();
        error.message.contains("take too long for the files of its roots")
    };
    // Each try takes 3,000 paths of 246 bytes times 202 bytes of the glob; 6 of them are within the budget.
    assert_eq!(status.sources.iter().filter(too_long).count(), 64 - 6);
}

#[tokio::test]
async fn config_maps_are_read_once_for_all_roots_and_only_so_many_bytes_of_them() {
    let story = Story::new().await;
    for number in 0..20 {
        let name = format!("files-{number}");
        story.api.put(
            &format!("{CONFIG_MAPS}{name}"),
            json!({"metadata": {"name": name}, "data": {format!("f{number}"): "x".repeat(1024 * 1024)}}),
        );
        let spec = json!({
            "root": {"configMaps": [{"name": name}]}, "code": {"sources": [{"local": format!("f{number}")}]}
        });
        story.apply_as(&format!("lib-{number}"), 1, &spec);
    }
    let refers = |count: usize| {
        let refs: Vec<Value> = (0..count)
            .map(|number| json!({"ref": format!("./lib-{number}")}))
            .collect();
        json!({"code": {"sources": refs}})
    };
    story.apply(1, &refers(16));
    story.reconcile().await;
    assert_eq!(story.ready().status, "True", "{}", story.ready().message);
    story.apply(2, &refers(20));
    story.reconcile().await;
    assert_eq!(story.ready().reason, "BundleSizeError");
    assert!(
        story
            .ready()
            .message
            .contains("more than 16777216 bytes together"),
        "{}",
        story.ready().message
    );
}
