//! A cluster, a GitHub and an operator in one process, for whole reconciles.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use codeworkspace_api::{CodeWorkspace, CodeWorkspaceStatus, RunnerTemplate, SecretInventory};
use codeworkspace_source::{Clock, Github, GithubConfiguration, ManualClock};
use github_server::{Commit, GithubServer};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use super::reconcile;
use crate::configuration::Configuration;
use crate::controller::fake_api::FakeApi;
use crate::controller::{Context, Readable, Stores, Writers};
use crate::metrics::Metrics;

const API: &str = "/apis/codeworkspace.dev/v1alpha1/namespaces/default";
/// The workspace that most stories are about.
pub(super) const WORKSPACE: &str = "/apis/codeworkspace.dev/v1alpha1/namespaces/default/codeworkspaces/tool";
pub(super) const RUNS: &str = "/apis/codeworkspace.dev/v1alpha1/namespaces/default/coderuns/";
pub(super) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps/";

/// A cluster, a GitHub and an operator. Most stories are about one workspace, which is called `tool`.
pub(super) struct Story {
    pub(super) api: FakeApi,
    pub(super) clock: Arc<ManualClock>,
    pub(super) github: GithubServer,
    pub(super) context: Arc<Context>,
    watches: Mutex<Writers>,
    configuration: String,
}

impl Story {
    pub(super) async fn new() -> Self {
        Self::configured("").await
    }

    /// With more lines of the operator's configuration.
    pub(super) async fn configured(lines: &str) -> Self {
        let github = GithubServer::start().await.unwrap();
        github.create("octo/tool").unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_767_225_600).unwrap()));
        let api = FakeApi::default();
        let configuration = format!("runnerImage: {{reference: example/operator}}\n{lines}");
        let (context, watches) = context(&api, &github, &clock, &configuration);
        Self {
            api,
            clock,
            github,
            context,
            watches: Mutex::new(watches),
            configuration,
        }
    }

    /// A new operator process: nothing in memory is left, and the watches list everything anew.
    pub(super) fn restart_operator(&mut self) {
        let (context, watches) = context(&self.api, &self.github, &self.clock, &self.configuration);
        self.context = context;
        self.watches = Mutex::new(watches);
        for path in self.api.paths(&format!("{API}/codeworkspaces/")) {
            self.watched(&self.api.get(&path).unwrap());
        }
    }

    /// A new operator process in a cluster without templates.
    pub(super) fn restart_without_templates(&mut self) {
        self.restart_operator();
        list(&mut self.watches.lock().unwrap().templates, []);
    }

    /// Somebody applies the workspace `tool`.
    pub(super) fn apply(&self, generation: i64, spec: &Value) {
        self.apply_as("tool", generation, spec);
    }

    pub(super) fn apply_as(&self, name: &str, generation: i64, spec: &Value) {
        self.put(name, &json!({"generation": generation}), spec);
    }

    /// Puts a workspace in place, with more metadata; its status stays.
    pub(super) fn put(&self, name: &str, metadata: &Value, spec: &Value) {
        let path = workspace_path(name);
        let status = self.api.get(&path).map(|workspace| workspace["status"].clone());
        let mut object = json!({
            "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeWorkspace",
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-of-{name}")},
            "spec": spec,
            "status": status.filter(|status| !status.is_null()).unwrap_or(json!({"observedGeneration": -1}))
        });
        for (key, value) in metadata.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        self.api.put(&path, object);
        self.watched(&self.api.get(&path).unwrap());
    }

    /// Somebody deletes a workspace.
    pub(super) fn delete(&self, name: &str) {
        let path = workspace_path(name);
        let object = self.api.get(&path).unwrap();
        self.api.remove(&path);
        let object: CodeWorkspace = serde_json::from_value(object).unwrap();
        let mut watches = self.watches.lock().unwrap();
        watches
            .workspaces
            .apply_watcher_event(&Event::Delete(Readable(Ok(object))));
    }

    /// Somebody applies an inventory.
    pub(super) fn inventory(&self, name: &str, spec: &Value) {
        let object = json!({
            "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "SecretInventory",
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-of-{name}"), "generation": 1},
            "spec": spec
        });
        let inventory: SecretInventory = serde_json::from_value(object).unwrap();
        let mut watches = self.watches.lock().unwrap();
        watches
            .inventories
            .apply_watcher_event(&Event::Apply(Readable(Ok(inventory))));
    }

    /// Somebody labels the namespace.
    pub(super) fn label_namespace(&self, label: &str, value: &str) {
        let namespace: PartialObjectMeta<Namespace> = serde_json::from_value(json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": "default", "labels": {label: value}}
        }))
        .unwrap();
        let mut watches = self.watches.lock().unwrap();
        watches.namespaces.apply_watcher_event(&Event::Apply(namespace));
    }

    fn watched(&self, object: &Value) {
        let workspace: Readable<CodeWorkspace> = serde_json::from_str(&object.to_string()).unwrap();
        let mut watches = self.watches.lock().unwrap();
        watches.workspaces.apply_watcher_event(&Event::Apply(workspace));
    }

    pub(super) fn workspace(&self) -> CodeWorkspace {
        self.workspace_as("tool")
    }

    pub(super) fn workspace_as(&self, name: &str) -> CodeWorkspace {
        serde_json::from_value(self.api.get(&workspace_path(name)).unwrap()).unwrap()
    }

    pub(super) fn status_of(&self, name: &str) -> CodeWorkspaceStatus {
        self.workspace_as(name).status.unwrap()
    }

    pub(super) async fn reconcile(&self) -> Duration {
        self.reconcile_as("tool").await
    }

    pub(super) async fn reconcile_as(&self, name: &str) -> Duration {
        let workspace = Arc::new(self.workspace_as(name));
        let action = Box::pin(reconcile(workspace, self.context.clone()))
            .await
            .unwrap();
        self.watched(&self.api.get(&workspace_path(name)).unwrap());
        // `Action` keeps its delay to itself; its debug form is the only way to read it.
        delay(&format!("{action:?}"))
    }

    pub(super) fn ready(&self) -> Condition {
        self.ready_of("tool")
    }

    pub(super) fn ready_of(&self, name: &str) -> Condition {
        let conditions = self.status_of(name).conditions;
        conditions
            .into_iter()
            .find(|condition| condition.type_ == "Ready")
            .unwrap()
    }

    pub(super) fn condition(&self, type_: &str) -> (String, String) {
        let found = self
            .workspace()
            .status
            .unwrap()
            .conditions
            .into_iter()
            .find(|condition| condition.type_ == type_)
            .unwrap();
        (found.status, found.reason)
    }

    /// A commit of `main.py` on the branch `main` of `octo/tool`.
    pub(super) fn commit(&self, content: &str) -> String {
        let repository = self.github.repository("octo/tool").unwrap();
        repository
            .commit(&Commit::on("main").file("main.py", content))
            .unwrap()
    }
}

fn workspace_path(name: &str) -> String {
    format!("{API}/codeworkspaces/{name}")
}

fn context(
    api: &FakeApi,
    github: &GithubServer,
    clock: &Arc<ManualClock>,
    configuration: &str,
) -> (Arc<Context>, Writers) {
    let source = GithubConfiguration {
        api_base: github.api_base(),
        download_hosts: vec![github.download_host()],
        insecure_hosts: vec![github.api_host(), github.download_host()],
        ..GithubConfiguration::default()
    };
    let clock: Arc<dyn Clock> = clock.clone();
    let source = Github::new(source, clock.clone()).unwrap();
    let (stores, mut writers) = Stores::new();
    list(
        &mut writers.templates,
        [template("python", "python"), template("node", "node")],
    );
    list(&mut writers.workspaces, []);
    list(&mut writers.inventories, []);
    let configuration: Configuration = serde_saphyr::from_str(configuration).unwrap();
    let context = Context::new(
        api.client(),
        configuration,
        source,
        clock,
        Arc::new(Metrics::default()),
        stores,
    );
    (Arc::new(context), writers)
}

fn list<K>(writer: &mut Writer<Readable<K>>, objects: impl IntoIterator<Item = K>)
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    let objects = objects
        .into_iter()
        .map(|object| Event::InitApply(Readable(Ok(object))));
    for event in [Event::Init].into_iter().chain(objects).chain([Event::InitDone]) {
        writer.apply_watcher_event(&event);
    }
}

fn template(name: &str, language: &str) -> RunnerTemplate {
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "generation": 1},
        "spec": {"image": format!("example/{name}"), "languages": [language, "multi"], "weight": 100}
    }))
    .unwrap()
}

/// The seconds in `Action { requeue_after: Some(3600s) }`.
fn delay(action: &str) -> Duration {
    let seconds = action
        .split("Some(")
        .nth(1)
        .and_then(|rest| rest.split("s)").next())
        .unwrap_or("0");
    Duration::from_secs_f64(seconds.parse().unwrap())
}
