//! What is written down when a story fails: its objects, their events, the output of its pods and the logs of the product's processes.

use std::path::PathBuf;

use codeworkspace_api::{CodeInterpreter, CodeRun, CodeSession, CodeWorkspace};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Api, ListParams, LogParams};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::operator::{NAMESPACE, PROCESSES};
use super::{Story, checkout};

/// Lines of each log, from its end.
const LOG_LINES: i64 = 2000;

/// Writes the account to a file and says where. What cannot be had is said in its place: an account must not hide the failure.
pub async fn write(story: &Story, failure: &str) {
    let mut parts = vec![
        story.name.clone(),
        format!("namespace {}", story.namespace),
        failure.to_owned(),
    ];
    parts.extend(objects::<CodeWorkspace>(story).await);
    parts.extend(objects::<CodeRun>(story).await);
    parts.extend(objects::<CodeInterpreter>(story).await);
    parts.extend(objects::<CodeSession>(story).await);
    parts.extend(objects::<Pod>(story).await);
    parts.extend(objects::<NetworkPolicy>(story).await);
    parts.extend(events(story).await);
    parts.extend(logs(story, &story.namespace, &ListParams::default()).await);
    parts.extend(logs(story, NAMESPACE, &ListParams::default().labels(PROCESSES)).await);
    match keep(&format!("{}.txt", story.name), &parts.join("\n")) {
        Ok(file) => eprintln!("namespace {}: see {}", story.namespace, file.display()),
        Err(error) => eprintln!("{error}"),
    }
}

/// Writes a text where the accounts of stories are.
pub fn keep(name: &str, text: &str) -> std::io::Result<PathBuf> {
    let folder = std::env::var_os("CODEWORKSPACE_DIAGNOSTICS")
        .map_or_else(|| checkout().join("target/e2e"), PathBuf::from);
    let file = folder.join(name.replace("::", "."));
    std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, text))?;
    Ok(file)
}

async fn objects<K>(story: &Story) -> Vec<String>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let heading = format!("\n== {}", K::plural(&()));
    let objects = match story.list::<K>().await {
        Ok(objects) => objects,
        Err(error) => return vec![heading, format!("{error:#}")],
    };
    let texts = objects.into_iter().map(|mut object| {
        object.meta_mut().managed_fields = None;
        // What came as JSON can be written as JSON.
        serde_json::to_string_pretty(&object).unwrap_or_default()
    });
    std::iter::once(heading).chain(texts).collect()
}

async fn events(story: &Story) -> Vec<String> {
    let heading = "\n== events".to_owned();
    let events = match story.list::<Event>().await {
        Ok(events) => events,
        Err(error) => return vec![heading, format!("{error:#}")],
    };
    let lines = events.into_iter().map(|event| {
        let object = event.involved_object;
        [object.kind, object.name, event.reason, event.message]
            .map(Option::unwrap_or_default)
            .join(" ")
    });
    std::iter::once(heading).chain(lines).collect()
}

async fn logs(story: &Story, namespace: &str, selection: &ListParams) -> Vec<String> {
    let pods: Api<Pod> = Api::namespaced(story.client.clone(), namespace);
    let found = match pods.list(selection).await {
        Ok(found) => found,
        Err(error) => return vec![format!("\n== logs of {namespace}"), format!("{error:#}")],
    };
    let mut parts = Vec::new();
    for pod in found {
        let name = pod.name_any();
        let spec = pod.spec.as_ref();
        let containers = spec
            .into_iter()
            .flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
        for container in containers {
            let parameters = LogParams {
                container: Some(container.name.clone()),
                since_time: Some(story.began),
                tail_lines: Some(LOG_LINES),
                ..LogParams::default()
            };
            let log = pods.logs(&name, &parameters).await;
            parts.push(format!(
                "\n== log of {namespace}/{name}, container {}",
                container.name
            ));
            parts.push(log.unwrap_or_else(|error| format!("{error:#}")));
        }
    }
    parts
}
