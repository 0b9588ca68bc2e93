//! Events: notices for people, written on change only. They can be lost, so nothing depends on them.

use codeworkspace_api::condition::{self, READY};
use codeworkspace_api::{
    CodeRun, CodeRunStatus, CodeSession, CodeWorkspace, CodeWorkspaceStatus, Outcome, SessionReason,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource as _};

use super::FIELD_MANAGER;

/// Longest note that the API server takes.
const NOTE_MAX: usize = 1024;

/// Publishes events.
pub struct Events(Recorder);

impl Events {
    /// One recorder for all controllers; it joins repeats.
    pub fn new(client: Client) -> Self {
        Self(Recorder::new(
            client,
            Reporter {
                controller: FIELD_MANAGER.to_owned(),
                instance: None,
            },
        ))
    }

    /// Tells what changed between a workspace's former status and its new one.
    pub async fn workspace_changed(&self, workspace: &CodeWorkspace, status: &CodeWorkspaceStatus) {
        for event in of_workspace(workspace.status.as_ref(), status) {
            self.publish(&event, &workspace.object_ref(&())).await;
        }
    }

    /// Tells that version tags lead elsewhere than before, which they are not expected to.
    pub async fn tags_moved(&self, workspace: &CodeWorkspace, moved: &[String]) {
        for note in moved {
            let event = event(EventType::Warning, "TagMoved", "Materialize", note.clone());
            self.publish(&event, &workspace.object_ref(&())).await;
        }
    }

    /// Tells how a run ended.
    pub async fn run_finished(&self, run: &CodeRun, status: &CodeRunStatus) {
        let Some(outcome) = status.outcome else { return };
        let exit = match (status.exit_code, status.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => String::new(),
        };
        let parts = [exit, status.message.clone().unwrap_or_default()];
        let note = parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(": ");
        let type_ = if outcome == Outcome::Succeeded {
            EventType::Normal
        } else {
            EventType::Warning
        };
        self.publish(&event(type_, outcome.as_str(), "Run", note), &run.object_ref(&()))
            .await;
    }

    /// Tells how a session ended, unless it ended as sessions do.
    pub async fn session_ended(&self, session: &CodeSession, reason: SessionReason, message: &str) {
        if matches!(
            reason,
            SessionReason::Stopped | SessionReason::SessionTimeout | SessionReason::IdleTimeout
        ) {
            return;
        }
        let event = event(EventType::Warning, reason.as_str(), "End", message.to_owned());
        self.publish(&event, &session.object_ref(&())).await;
    }

    async fn publish(&self, event: &Event, object: &k8s_openapi::api::core::v1::ObjectReference) {
        if let Err(error) = self.0.publish(event, object).await {
            tracing::warn!(%error, reason = event.reason, name = object.name, "event could not be published");
        }
    }
}

fn of_workspace(former: Option<&CodeWorkspaceStatus>, status: &CodeWorkspaceStatus) -> Vec<Event> {
    let mut events = Vec::new();
    let digest = |status: &CodeWorkspaceStatus| status.bundle.as_ref().map(|bundle| bundle.digest.clone());
    if let (Some(bundle), true) = (&status.bundle, digest(status) != former.and_then(digest)) {
        events.push(event(
            EventType::Normal,
            "BundleBuilt",
            "Materialize",
            bundle.to_string(),
        ));
    }
    let run = |status: &CodeWorkspaceStatus| status.last_run.as_ref().map(|run| run.name.clone());
    if let (Some(name), true) = (run(status), run(status) != former.and_then(run)) {
        events.push(event(
            EventType::Normal,
            "RunCreated",
            "Run",
            format!("CodeRun {name}"),
        ));
    }
    let ready = ready(&status.conditions);
    if let Some(ready) = ready
        && former
            .and_then(|former| self::ready(&former.conditions))
            .map(essence)
            != Some(essence(ready))
        && ready.status == "False"
    {
        events.push(event(
            EventType::Warning,
            &ready.reason,
            "Materialize",
            ready.message.clone(),
        ));
    }
    let downgraded =
        |status: &CodeWorkspaceStatus| status.runner.as_ref().is_some_and(|runner| runner.downgraded);
    if downgraded(status) && !former.is_some_and(downgraded) {
        let note = "runner.engine in-process is not offered to manifests: the body runs as subprocess in a pod of its own";
        events.push(event(
            EventType::Warning,
            "EngineDowngraded",
            "Materialize",
            note.to_owned(),
        ));
    }
    events
}

fn ready(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == READY)
}

fn essence(condition: &Condition) -> (&str, &str, &str) {
    (&condition.status, &condition.reason, &condition.message)
}

fn event(type_: EventType, reason: &str, action: &str, note: String) -> Event {
    Event {
        type_,
        reason: reason.to_owned(),
        note: Some(condition::truncate(note, NOTE_MAX)),
        action: action.to_owned(),
        secondary: None,
    }
}
