//! What stories of sessions begin with: a small API server, and what the watches have seen of it.

use std::sync::Arc;

use codeworkspace_api::{CodeInterpreter, CodeSession, RunnerTemplate};
use codeworkspace_source::{Clock, Github, GithubConfiguration, ManualClock};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Event;
use serde_json::Value;

use super::fake_api::FakeApi;
use super::pool::Memory;
use super::watches::Change;
use super::{Context, Readable, Sessions, Stores, Writers};
use crate::configuration::Configuration;
use crate::metrics::Metrics;

const CONFIGURATION: &str = "
runnerImage: {reference: example/operator}
sessions:
  release: {namespace: codeworkspace-system, name: codeworkspace, instance: main}
  service: codeworkspace
  maximumPodsPerNamespace: 20
";

/// A cluster at 2026-01-01T00:00:00Z, and an operator that knows what it was shown.
pub(crate) struct SessionStory {
    pub(crate) api: FakeApi,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) context: Arc<Context>,
    writers: Writers,
}

impl SessionStory {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
        let time: Arc<dyn Clock> = clock.clone();
        let api = FakeApi::default();
        let (stores, writers) = Stores::new();
        let configuration: Configuration = serde_saphyr::from_str(CONFIGURATION).unwrap();
        let sessions = Sessions {
            configuration: configuration.sessions.clone().unwrap(),
            operator: "10.96.0.7:8443".to_owned(),
            authority: "UEVN".to_owned(),
            memory: Memory::default(),
        };
        let context = Context::new(
            api.client(),
            configuration,
            Github::new(GithubConfiguration::default(), time.clone()).unwrap(),
            time,
            Arc::new(Metrics::default()),
            stores,
        );
        Self {
            api,
            clock,
            context: Arc::new(context.with_sessions(Some(sessions))),
            writers,
        }
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        self.context.sessions.as_ref().unwrap()
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.sessions().memory
    }

    pub(crate) fn see_template(&mut self, template: RunnerTemplate) {
        self.writers
            .templates
            .apply_watcher_event(&Event::Apply(Readable(Ok(template))));
    }

    pub(crate) fn see_interpreter(&mut self, interpreter: CodeInterpreter) {
        self.writers
            .interpreters
            .apply_watcher_event(&Event::Apply(Readable(Ok(interpreter))));
    }

    pub(crate) fn see_session(&mut self, session: CodeSession) {
        self.writers
            .sessions
            .apply_watcher_event(&Event::Apply(Readable(Ok(session))));
    }

    /// The watch shows all pods as they are now.
    pub(crate) fn see_pods(&mut self) {
        let there = self.pods();
        for pod in self.context.stores.session_pods.state() {
            if !there.iter().any(|other| other.metadata.uid == pod.metadata.uid) {
                self.writers
                    .session_pods
                    .apply_watcher_event(&Event::Delete(pod.as_ref().clone()));
                self.memory().seen(&Change::Gone(&pod));
            }
        }
        for pod in there {
            self.writers
                .session_pods
                .apply_watcher_event(&Event::Apply(pod.clone()));
            self.memory().seen(&Change::Of(&pod));
        }
    }

    /// The pods of the namespace `team-a`, by name.
    pub(crate) fn pods(&self) -> Vec<Pod> {
        let paths = self.api.paths("/api/v1/namespaces/team-a/pods/");
        let pods = paths.iter().map(|path| self.api.get(path).unwrap());
        pods.map(|pod| serde_json::from_value(pod).unwrap()).collect()
    }

    /// Changes a pod as somebody else does.
    pub(crate) fn change_pod(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let path = format!("/api/v1/namespaces/team-a/pods/{name}");
        let mut pod = self.api.get(&path).unwrap();
        change(&mut pod);
        self.api.put(&path, pod);
    }
}
