//! Stories of faults that similar systems had; docs/known-faults.md says where.

use codeworkspace_api::SourceState;
use github_server::{Answer, Switches};
use serde_json::{Value, json};

use super::story::{CONFIG_MAPS, RUNS, Story};

fn github(reference: &str) -> Value {
    json!({"code": {"sources": [{"github": {"repo": "octo/tool", "ref": reference}}]}, "run": "main.py"})
}

fn inline(content: &str) -> Value {
    json!({"code": {"sources": [{"inline": {"path": "main.py", "content": content}}]}, "run": "main.py"})
}

fn config_map(story: &Story, name: &str, contents: &Value) {
    let mut object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    for (field, value) in contents.as_object().unwrap() {
        object[field] = value.clone();
    }
    story.api.put(&format!("{CONFIG_MAPS}{name}"), object);
}

#[tokio::test]
async fn four_hundred_failing_sources_with_long_paths_leave_a_status_that_can_be_written_and_read() {
    let story = Story::new().await;
    let mut references = Vec::new();
    for part in 0..8 {
        let sources: Vec<Value> = (0..50)
            .map(|number| json!({"local": format!("{part}/{number:03}{}", "ü".repeat(98))}))
            .collect();
        story.apply_as(&format!("part-{part}"), 1, &json!({"code": {"sources": sources}}));
        references.push(json!({"ref": format!("./part-{part}")}));
    }
    story.apply(1, &json!({"code": {"sources": references}, "run": "main.py"}));
    story.reconcile().await;

    let status = story.status_of("tool");
    assert_eq!((status.sources.len(), status.sources_omitted), (64, Some(336)));
    for source in &status.sources {
        assert_eq!(source.state, SourceState::Failed);
        assert!(source.error.as_ref().unwrap().message.len() <= 1024);
    }
    assert!(
        story.ready().message.starts_with("400 of 400 sources failed: "),
        "{}",
        story.ready().message
    );
    // The API server refuses a message above 32,768 bytes, and with it the whole status.
    for condition in &status.conditions {
        assert!(condition.message.len() <= 4096, "{}", condition.type_);
    }
    // A tenth of what an object may have, and `kubectl describe` still ends.
    assert!(serde_json::to_vec(&status).unwrap().len() < 150_000);
}

#[tokio::test]
async fn an_edit_is_never_shown_as_ready_with_the_digest_before_it() {
    let story = Story::new().await;
    story.apply(1, &inline("print(1)"));
    story.reconcile().await;
    let before = story.status_of("tool");
    story.api.take_writes();

    // Until it was looked at, status speaks of the former generation.
    story.apply(2, &inline("print(2)"));
    assert_eq!(story.status_of("tool").observed_generation, Some(1));
    story.reconcile().await;
    let writes = story.api.take_writes();
    let statuses = writes.iter().filter(|write| write.ends_with("/tool/status"));
    assert_eq!(statuses.count(), 1, "{writes:?}");
    let after = story.status_of("tool");
    assert_eq!(after.observed_generation, Some(2));
    assert_ne!(after.bundle.unwrap().digest, before.bundle.unwrap().digest);
    assert_eq!(story.ready().observed_generation, Some(2));

    // An edit that fails keeps the bundle for what runs, and is not ready.
    story.apply(3, &github("no-such-branch"));
    story.reconcile().await;
    assert_eq!(
        (story.ready().status.as_str(), story.ready().observed_generation),
        ("False", Some(3))
    );
}

#[tokio::test]
async fn a_reference_that_changes_is_followed_and_never_shows_the_commit_of_the_former_one() {
    let story = Story::new().await;
    let repository = story.github.repository("octo/tool").unwrap();
    let first = story.commit("print(1)");
    repository.tag("v1", &first).unwrap();
    let second = story.commit("print(2)");
    let revision = |story: &Story| story.status_of("tool").sources[0].revision.clone();
    for (generation, reference, commit) in [(1, "v1", &first), (2, "main", &second), (3, &first, &first)] {
        story.apply(generation, &github(reference));
        story.reconcile().await;
        assert_eq!(revision(&story).as_ref(), Some(commit), "{reference}");
    }
    story.github.set_switches(Switches {
        answer: Some(Answer {
            status: 503,
            ..Answer::default()
        }),
        ..Switches::default()
    });
    story.apply(4, &github("another"));
    story.reconcile().await;
    assert_eq!(revision(&story), None);
    assert_eq!(story.ready().status, "False");
}

#[tokio::test]
async fn an_error_is_still_there_after_a_restart_and_no_other_branch_takes_its_place() {
    let mut story = Story::new().await;
    story.commit("print(1)");
    story.apply(1, &github("no-such-branch"));
    story.reconcile().await;
    let before = story.status_of("tool");
    story.restart_operator();
    story.reconcile().await;
    assert_eq!(story.status_of("tool"), before);
    let error = before.sources[0].error.clone().unwrap();
    assert_eq!(
        (error.reason.as_str(), before.bundle),
        ("RepoOrRefNotFound", None)
    );
    assert_eq!(story.api.paths(RUNS), Vec::<String>::new());
}

#[tokio::test]
async fn a_bundle_that_is_gone_is_made_again_although_status_says_ready() {
    let mut story = Story::new().await;
    story.commit("print(1)");
    story.apply(1, &github("main"));
    story.reconcile().await;
    let stored = story.api.paths(CONFIG_MAPS);
    assert_eq!(stored.len(), 1);
    story.api.remove(&stored[0]);
    story.restart_operator();
    story.reconcile().await;
    assert_eq!(story.api.paths(CONFIG_MAPS), stored);
    assert_eq!(story.ready().status, "True");
    assert_eq!(story.api.paths(RUNS).len(), 1);
}

#[tokio::test]
async fn keys_of_both_kinds_of_a_config_map_arrive() {
    let story = Story::new().await;
    let bytes = k8s_openapi::ByteString(vec![0xff, 0, 0xfe]);
    config_map(
        &story,
        "files",
        &json!({"data": {"main.py": "print(1)"}, "binaryData": {"model.bin": bytes}}),
    );
    let spec = json!({
        "root": {"configMaps": [{"name": "files"}]},
        "code": {"sources": [{"local": "main.py"}, {"local": "model.bin"}]},
        "run": "main.py"
    });
    story.apply(1, &spec);
    story.reconcile().await;
    let sizes: Vec<_> = story
        .status_of("tool")
        .sources
        .iter()
        .map(|source| source.size_bytes)
        .collect();
    assert_eq!(sizes, [Some(8), Some(3)]);
    assert_eq!(story.ready().status, "True", "{}", story.ready().message);
}
