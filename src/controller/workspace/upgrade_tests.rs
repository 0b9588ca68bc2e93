//! What the present version makes of what the first one left behind.

use github_server::{Commit, RequestKind};
use serde_json::{Map, Value};

use super::story::{RUNS, Story};

/// Every object of two clusters after a run under the first version: a workspace with what it has to have, and one with everything that
/// version knew.
const OBJECTS: &str = include_str!("first_version.json");

#[tokio::test]
async fn what_the_first_version_left_is_neither_built_nor_run_again() {
    let clusters: Map<String, Value> = serde_json::from_str(OBJECTS).unwrap();
    assert_eq!(clusters.keys().collect::<Vec<_>>(), ["small", "whole"]);
    for (name, objects) in clusters {
        let mut story = Story::new().await;
        let repository = story.github.repository("octo/tool").unwrap();
        let files = Commit::on("main")
            .file("main.py", "print(1)")
            .file("lib/a.py", "A = 1")
            .file("lib/b.txt", "b");
        let first = repository.commit(&files).unwrap();
        repository.tag("v1", &first).unwrap();
        story.commit("print(2)");
        for (path, object) in objects.as_object().unwrap() {
            story.api.put(path, object.clone());
        }
        let before = story.workspace().status.unwrap();
        assert_eq!(before.last_run.as_ref().unwrap().exit_code, Some(0), "{name}");
        let runs = story.api.paths(RUNS);

        story.restart_operator();
        story.reconcile().await;
        assert_eq!(story.api.take_writes(), Vec::<String>::new(), "{name}");
        assert_eq!(story.github.requests().of(RequestKind::Tarball), 0, "{name}");
        assert_eq!(story.workspace().status.unwrap(), before, "{name}");
        assert_eq!(story.api.paths(RUNS), runs, "{name}");
    }
}
