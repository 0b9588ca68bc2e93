//! Stories of what AIP-26 leaves to its hosts; docs/aip-26-conformance.md has the decisions.

use serde_json::json;

use super::story::{CONFIG_MAPS, RUNS, Story};

#[tokio::test]
async fn two_config_maps_that_give_one_path_are_an_error_that_names_it() {
    let story = Story::new().await;
    for name in ["one", "two"] {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
            "data": {"main.py": name}
        });
        story.api.put(&format!("{CONFIG_MAPS}{name}"), map);
    }
    let spec = json!({
        "root": {"configMaps": [{"name": "one"}, {"name": "two"}]},
        "code": {"sources": [{"local": "main.py"}]},
        "run": "main.py"
    });
    story.apply(1, &spec);
    story.reconcile().await;
    let error = story.status_of("tool").sources[0].error.clone().unwrap();
    assert_eq!(
        (error.reason.as_str(), error.message.as_str()),
        (
            "RootRefused",
            "code.sources[0]: root.configMaps[1]: ConfigMap two: path main.py is given twice: leave one of them out, or map its \
             key to another path"
        )
    );
}

#[tokio::test]
async fn what_a_manifest_says_of_its_origin_and_its_capabilities_changes_nothing() {
    let story = Story::new().await;
    let mut spec = json!({"code": {"sources": [{"inline": {"path": "main.py", "content": "print(1)"}}]}, "run": "main.py"});
    story.apply(1, &spec);
    story.reconcile().await;
    let runs = story.api.paths(RUNS);
    spec["source"] = json!({"origin": "ai-draft"});
    spec["requiredCapabilities"] = json!(["finance"]);
    story.apply(2, &spec);
    story.reconcile().await;
    assert_eq!(story.ready().status, "True", "{}", story.ready().message);
    assert_eq!(story.api.paths(RUNS), runs);
}

#[tokio::test]
async fn a_sandbox_that_is_read_only_runs_no_command() {
    let story = Story::new().await;
    let sandbox = json!({"provider": "kubernetes", "config": {}, "read_only": true});
    let mut spec = json!({
        "code": {"sources": [{"inline": {"path": "main.py", "content": "print(1)"}}]},
        "run": "main.py",
        "sandbox": sandbox
    });
    story.apply(1, &spec);
    story.reconcile().await;
    assert_eq!(story.ready().reason, "RunnerInvalid");
    assert!(
        story.ready().message.contains("sandbox_read_only"),
        "{}",
        story.ready().message
    );
    assert_eq!(story.api.paths(RUNS), Vec::<String>::new());

    spec.as_object_mut().unwrap().remove("run");
    story.apply(2, &spec);
    story.reconcile().await;
    assert_eq!(story.ready().status, "True", "{}", story.ready().message);
}
