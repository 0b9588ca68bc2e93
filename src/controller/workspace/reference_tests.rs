//! Stories of workspaces that refer to others, and of those that read a root.

use std::collections::BTreeSet;

use codeworkspace_api::SourceState;
use serde_json::{Value, json};

use super::story::{CONFIG_MAPS, RUNS, Story};
use crate::controller::Dependency;

fn inline(path: &str, content: &str) -> Value {
    json!({"inline": {"path": path, "content": content}})
}

fn bundle_of(sources: &Value) -> Value {
    json!({"code": {"sources": sources}})
}

fn config_map(story: &Story, name: &str, data: &Value) {
    story.api.put(
        &format!("{CONFIG_MAPS}{name}"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}),
    );
}

fn digest(story: &Story, name: &str) -> Option<String> {
    story.status_of(name).bundle.map(|bundle| bundle.digest)
}

fn paths(story: &Story, name: &str) -> Vec<(String, SourceState)> {
    let sources = story.status_of(name).sources;
    sources
        .into_iter()
        .map(|source| (source.path, source.state))
        .collect()
}

fn conditions(story: &Story, name: &str) -> BTreeSet<String> {
    let conditions = story.status_of(name).conditions;
    conditions
        .into_iter()
        .filter(|condition| condition.status == "True")
        .map(|condition| condition.type_)
        .collect()
}

#[tokio::test]
async fn a_workspace_waits_for_the_one_it_refers_to_and_heals_and_breaks_with_it() {
    let story = Story::new().await;
    story.apply(1, &json!({"code": "./base", "run": "main.py"}));
    story.reconcile().await;
    assert!(conditions(&story, "tool").contains("Reconciling"));
    assert!(!conditions(&story, "tool").contains("Stalled"));
    let waiting = story.status_of("tool").sources.remove(0).error.unwrap();
    assert_eq!(waiting.reason, "Waiting");
    assert_eq!(
        waiting.message,
        "code: nothing is at `./base`: no CodeWorkspace of this namespace has that `path`, and there is no `root` to look into"
    );

    story.apply_as("base", 1, &bundle_of(&json!([inline("main.py", "print(1)")])));
    story.reconcile().await;
    assert_eq!(story.ready().status, "True");
    assert_eq!(
        paths(&story, "tool"),
        [("code > base > code.sources[0]".to_owned(), SourceState::Resolved)]
    );
    assert_eq!(story.api.paths(RUNS).len(), 1);

    story.delete("base");
    story.reconcile().await;
    assert_eq!(story.ready().status, "False");
    assert!(conditions(&story, "tool").contains("Reconciling"));
}

#[tokio::test]
async fn a_change_three_references_deep_reaches_the_top_in_one_look() {
    let story = Story::new().await;
    let refers = |to: &str| bundle_of(&json!([{"ref": to}]));
    story.apply_as("low", 1, &bundle_of(&json!([inline("main.py", "print(1)")])));
    story.apply_as("middle", 1, &refers("./low"));
    story.apply_as("high", 1, &refers("middle"));
    story.apply(
        1,
        &json!({"code": {"sources": [{"ref": {"path": "./high"}}]}, "run": "main.py"}),
    );
    story.reconcile().await;
    let before = digest(&story, "tool");
    let dependents = |name: &str| {
        let dependency = Dependency::Workspace(name.to_owned());
        story.context.dependencies.dependents("default", &dependency)
    };
    assert_eq!(dependents("low"), BTreeSet::from(["tool".to_owned()]));

    story.apply_as("low", 2, &bundle_of(&json!([inline("main.py", "print(2)")])));
    story.reconcile().await;
    assert_ne!(digest(&story, "tool"), before);
    assert_eq!(story.api.paths(RUNS).len(), 2);

    // Equal bytes from elsewhere in the manifest are not built again for whoever refers to them.
    story.reconcile().await;
    story.api.take_writes();
    let mut again = bundle_of(&json!([inline("main.py", "print(2)")]));
    again["description"] = json!("says more now");
    story.apply_as("low", 3, &again);
    story.reconcile().await;
    assert_eq!(story.api.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_cycle_is_named_in_full_before_anything_is_fetched() {
    let story = Story::new().await;
    let refers =
        |to: &str| bundle_of(&json!([{"github": {"repo": "octo/tool", "ref": "main"}}, {"ref": to}]));
    story.apply_as("b", 1, &refers("./c"));
    story.apply_as("c", 1, &refers("./tool"));
    story.apply(
        1,
        &json!({"code": {"sources": [{"ref": "./b"}]}, "run": "main.py"}),
    );
    story.reconcile().await;
    let errors: Vec<_> = story
        .status_of("tool")
        .sources
        .into_iter()
        .filter_map(|source| source.error)
        .filter(|error| error.reason == "Cycle")
        .map(|error| error.message)
        .collect();
    assert_eq!(
        errors,
        ["code.sources[0] > b > code.sources[1] > c > code.sources[1]: is a cycle: tool > b > c > tool"]
    );
    assert!(conditions(&story, "tool").contains("Stalled"));
}

#[tokio::test]
async fn runner_and_network_are_taken_over_and_secrets_are_shown_with_their_origin() {
    let story = Story::new().await;
    story.apply_as(
        "base",
        1,
        &json!({
            "code": {"sources": [inline("main.py", "print(1)")]},
            "runner": {"engine": "sandbox", "needs": {"language": "python"}, "limits": {"memory_mb": 512}},
            "secrets": {"KEY": {"vault": "api-key"}},
            "network": {"egress": ["api.example.com"]}
        }),
    );
    story.reconcile_as("base").await;
    assert_eq!(story.ready_of("base").status, "True");
    story.apply(
        1,
        &json!({"code": "./base", "run": "main.py", "network": {"egress": ["other.example.com"]}}),
    );
    story.reconcile().await;
    let status = story.status_of("tool");
    let effective = status.effective.unwrap();
    assert_eq!(effective.egress, ["api.example.com", "other.example.com"]);
    assert_eq!(effective.secrets, ["KEY"]);
    let runner = status.runner.unwrap();
    assert_eq!(
        (runner.engine.as_str(), runner.limits.memory_mb),
        ("sandbox", 512)
    );
    assert_eq!(
        story.ready().message,
        "this version does not implement yet: secrets.KEY (from code > base)"
    );
}

#[tokio::test]
async fn files_of_config_maps_are_taken_by_path_folder_and_glob() {
    let story = Story::new().await;
    config_map(
        &story,
        "files",
        &json!({"main.py": "print(1)", "a.html": "a", "b.html": "b", ".env": "x"}),
    );
    let spec = json!({
        "root": {"configMaps": [{"name": "files", "items": [
            {"key": "a.html", "path": "pages/a.html"}, {"key": "b.html", "path": "pages/b.html"}
        ]}]},
        "code": {"sources": [
            {"local": "main.py"},
            {"local": {"path": "pages/", "as": "templates/", "glob": "*.html"}}
        ]},
        "run": "main.py"
    });
    story.apply(1, &spec);
    story.reconcile().await;
    let status = story.status_of("tool");
    assert_eq!(story.ready().status, "True", "{}", story.ready().message);
    let files: Vec<_> = status.sources.iter().map(|source| source.files).collect();
    assert_eq!((files, status.bundle.unwrap().files), (vec![Some(1), Some(2)], 3));

    // What changes and is not taken changes nothing; what is taken is a new bundle.
    story.reconcile().await;
    let before = digest(&story, "tool");
    story.api.take_writes();
    config_map(
        &story,
        "files",
        &json!({"main.py": "print(1)", "a.html": "a", "b.html": "b", ".env": "y"}),
    );
    story.reconcile().await;
    assert_eq!(digest(&story, "tool"), before);
    assert!(
        story
            .api
            .take_writes()
            .iter()
            .all(|write| write.ends_with("/status"))
    );
    config_map(
        &story,
        "files",
        &json!({"main.py": "print(2)", "a.html": "a", "b.html": "b"}),
    );
    story.reconcile().await;
    assert_ne!(digest(&story, "tool"), before);
}

#[tokio::test]
async fn a_missing_config_map_or_key_is_named_and_heals_when_it_is_made() {
    let story = Story::new().await;
    let spec = json!({
        "root": {"configMaps": [{"name": "files", "items": [{"key": "main", "path": "main.py"}]}]},
        "code": {"sources": [{"local": "main.py"}]},
        "run": "main.py"
    });
    story.apply(1, &spec);
    story.reconcile().await;
    assert!(conditions(&story, "tool").contains("Reconciling"));
    let told = |story: &Story| story.status_of("tool").sources[0].error.clone().unwrap();
    assert_eq!(
        (told(&story).reason.as_str(), told(&story).message.as_str()),
        (
            "RootNotFound",
            "code.sources[0]: root.configMaps: there is no ConfigMap files in this namespace; it is read as soon as it is made"
        )
    );
    let dependency = Dependency::ConfigMap("files".to_owned());
    assert_eq!(
        story.context.dependencies.dependents("default", &dependency),
        BTreeSet::from(["tool".to_owned()])
    );
    config_map(&story, "files", &json!({"mian": "print(1)"}));
    story.reconcile().await;
    assert_eq!(
        (told(&story).reason.as_str(), told(&story).message.as_str()),
        (
            "KeyNotFound",
            "code.sources[0]: root.configMaps[0].items[0].key: ConfigMap files has no key main; it has mian"
        )
    );
    config_map(&story, "files", &json!({"main": "print(1)"}));
    story.reconcile().await;
    assert_eq!(story.ready().status, "True");
}

#[tokio::test]
async fn a_shared_bundle_stands_in_a_folder_of_the_root_as_well() {
    let story = Story::new().await;
    let manifest = "kind: code-workspace\nname: lib\ncode: {sources: [{local: lib/util.py}]}\nrunner: {limits: {memory_mb: 300}}\n";
    config_map(
        &story,
        "files",
        &json!({"manifest": manifest, "util": "x = 1", "main.py": "print(1)"}),
    );
    let spec = json!({
        "root": {"configMaps": [{"name": "files", "items": [
            {"key": "manifest", "path": "shared/lib/manifest.yaml"}, {"key": "util", "path": "lib/util.py"}
        ]}]},
        "code": {"sources": [{"ref": "./shared/lib"}, {"local": "main.py"}]},
        "run": "main.py"
    });
    story.apply(1, &spec);
    story.reconcile().await;
    assert_eq!(story.ready().status, "True", "{}", story.ready().message);
    let status = story.status_of("tool");
    assert_eq!(status.bundle.unwrap().files, 2);
    assert_eq!(status.runner.unwrap().limits.memory_mb, 300);
}

#[tokio::test]
async fn a_repository_is_a_root_too() {
    let story = Story::new().await;
    let commit = story.commit("print(1)");
    let spec = json!({
        "root": {"github": {"repo": "octo/tool", "ref": "main"}},
        "code": {"sources": [{"local": {"path": "./", "glob": "*.py", "as": "./"}}]},
        "run": "main.py"
    });
    story.apply(1, &spec);
    let delay = story.reconcile().await;
    assert_eq!(story.ready().status, "True", "{}", story.ready().message);
    assert_eq!(story.status_of("tool").sources[0].revision, Some(commit));
    let moved = story.commit("print(2)");
    story.clock.advance(delay);
    story.reconcile().await;
    assert_eq!(story.status_of("tool").sources[0].revision, Some(moved));
    assert_eq!(story.api.paths(RUNS).len(), 2);
}
