//! The examples are manifests that this version takes, and the commit that one of them pins is there.

#![allow(
    clippy::unwrap_used,
    reason = "all of this is test code, also what is not marked as a test"
)]

use std::path::Path;

use codeworkspace_api::{CodeRun, CodeWorkspace, SecretInventory};
use codeworkspace_bundle::code::{GitReference, Source};
use codeworkspace_bundle::{define_code, define_run, define_runner};
use github_server::{GithubServer, ServerOptions};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::Value;

/// Folders of examples. `kubectl apply` takes the first one as a whole; what is in the second wants credentials first.
const FOLDERS: [&str; 2] = ["examples", "examples/with-credentials"];

fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every object of every example, with the name of its file.
fn objects() -> Vec<(String, Value)> {
    let entries = FOLDERS.map(|folder| std::fs::read_dir(checkout().join(folder)).unwrap());
    let mut paths: Vec<_> = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    let objects = paths.into_iter().flat_map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("# "),
            "{name} begins with a comment that says what it shows"
        );
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        objects.into_iter().map(move |object| (name.clone(), object))
    });
    objects.collect()
}

fn workspaces() -> Vec<(String, CodeWorkspace)> {
    let workspaces = objects()
        .into_iter()
        .filter(|(_, object)| object["kind"] == "CodeWorkspace");
    workspaces
        .map(|(name, object)| (name, serde_json::from_value(object).unwrap()))
        .collect()
}

#[test]
fn every_object_is_of_a_kind_that_examples_need_and_none_names_a_namespace() {
    for (name, object) in objects() {
        assert_eq!(object["metadata"]["namespace"], Value::Null, "{name}");
        match (object["apiVersion"].as_str(), object["kind"].as_str()) {
            (Some("codeworkspace.dev/v1alpha1"), Some("CodeWorkspace")) => {}
            (Some("codeworkspace.dev/v1alpha1"), Some("CodeRun")) => {
                drop(serde_json::from_value::<CodeRun>(object).unwrap());
            }
            (Some("codeworkspace.dev/v1alpha1"), Some("SecretInventory")) => {
                drop(serde_json::from_value::<SecretInventory>(object).unwrap());
            }
            (Some("v1"), Some("ConfigMap")) => drop(serde_json::from_value::<ConfigMap>(object).unwrap()),
            (Some("v1"), Some("Secret")) => drop(serde_json::from_value::<Secret>(object).unwrap()),
            other => panic!("{name} has an object of kind {other:?}"),
        }
    }
}

#[test]
fn every_block_of_every_workspace_is_understood() {
    for (name, workspace) in workspaces() {
        let spec = workspace.spec;
        assert!(spec.unknown.is_empty(), "{name}: {:?}", spec.unknown);
        for source in define_code(&spec.code).unwrap().sources {
            source.source.unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        }
        if let Some(run) = &spec.run {
            define_run(run).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        }
        if let Some(runner) = &spec.runner {
            define_runner(runner).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        }
        let root = spec.root.as_ref().map(codeworkspace_api::Root::unknown_keys);
        assert_eq!(root.unwrap_or_default(), [""; 0], "{name}");
    }
}

#[test]
fn what_needs_another_object_has_it_in_its_own_file() {
    let objects = objects();
    let has = |file: &str, kind: &str, named: &str| {
        let mut of_file = objects.iter().filter(|(name, _)| name == file);
        of_file.any(|(_, object)| object["kind"] == kind && object["metadata"]["name"] == named)
    };
    for (file, object) in &objects {
        for map in object["spec"]["root"]["configMaps"]
            .as_array()
            .into_iter()
            .flatten()
        {
            assert!(
                has(file, "ConfigMap", map["name"].as_str().unwrap()),
                "{file}: {map}"
            );
        }
        for connector in object["spec"]["connectors"].as_array().into_iter().flatten() {
            let secret = connector["secretRef"]["name"].as_str().unwrap();
            assert!(has(file, "Secret", secret), "{file}: {connector}");
        }
        if object["kind"] == "CodeWorkspace" {
            for source in define_code(&object["spec"]["code"]).unwrap().sources {
                if let Ok(Source::Ref(reference)) = source.source {
                    let path = reference.path.to_string();
                    let named = path.trim_start_matches("./");
                    assert!(has(file, "CodeWorkspace", named), "{file}: {path}");
                }
            }
        }
    }
}

#[tokio::test]
async fn pinned_commits_are_those_of_the_repositories_beside_the_examples() {
    let pinned: Vec<_> = workspaces()
        .into_iter()
        .flat_map(|(_, workspace)| define_code(&workspace.spec.code).unwrap().sources)
        .filter_map(|source| match source.source {
            Ok(Source::Github(github)) => match github.reference {
                GitReference::Commit(commit) => Some((github.repository.to_string(), commit.to_string())),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert!(!pinned.is_empty(), "an example shows a pinned commit");
    let options = ServerOptions {
        fixtures: Some(checkout().join("dev/deploy/repositories")),
        ..ServerOptions::default()
    };
    let server = GithubServer::start_with(options).await.unwrap();
    for (repository, commit) in pinned {
        let head = server
            .repository(&repository)
            .unwrap()
            .branch("check", "main")
            .unwrap();
        assert_eq!(
            head, commit,
            "{repository}: pin the commit that its folder in dev/deploy gives"
        );
    }
}
