//! What the demo reads of workspaces and runs: as little of their status as it shows.

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

/// The workspaces of a namespace and their runs.
#[derive(Debug, Default)]
pub(super) struct Workspaces {
    pub(super) workspaces: Vec<Workspace>,
    pub(super) runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) name: String,
    #[serde(default)]
    generation: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Workspace {
    pub(super) metadata: Metadata,
    pub(super) spec: WorkspaceSpec,
    #[serde(default)]
    pub(super) status: WorkspaceStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkspaceSpec {
    run: Option<Value>,
    run_policy: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WorkspaceStatus {
    observed_generation: i64,
    conditions: Vec<Condition>,
    pub(super) sources: Vec<Source>,
    pub(super) bundle: Option<Bundle>,
    pub(super) run: Option<Command>,
    pub(super) runner: Option<Runner>,
    last_run: Option<LastRun>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    r#type: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) kind: Option<String>,
    pub(super) summary: String,
    pub(super) state: String,
    pub(super) revision: Option<String>,
    pub(super) files: Option<u64>,
    pub(super) size_bytes: Option<u64>,
    pub(super) error: Option<Failure>,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Failure {
    pub(super) reason: String,
    pub(super) message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bundle {
    pub(super) digest: String,
    pub(super) files: u64,
    pub(super) size_bytes: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Command {
    pub(super) argv: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Runner {
    pub(super) template: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LastRun {
    name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Run {
    pub(super) metadata: Metadata,
    spec: RunSpec,
    #[serde(default)]
    pub(super) status: RunStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunSpec {
    workspace_ref: Reference,
}

#[derive(Debug, Deserialize)]
struct Reference {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RunStatus {
    pub(super) outcome: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) stdout: Option<Stream>,
    pub(super) stderr: Option<Stream>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stream {
    pub(super) tail: String,
    pub(super) total_bytes: u64,
    pub(super) truncated: bool,
}

impl Workspaces {
    /// Sorts a list of both kinds, as kubectl prints it.
    pub(super) fn from_list(list: Value) -> Result<Self> {
        #[derive(Deserialize)]
        struct List {
            items: Vec<Value>,
        }
        let mut sorted = Self::default();
        for item in serde_json::from_value::<List>(list)?.items {
            if item["kind"] == "CodeRun" {
                sorted.runs.push(serde_json::from_value(item)?);
            } else {
                sorted.workspaces.push(serde_json::from_value(item)?);
            }
        }
        Ok(sorted)
    }

    /// The runs of a workspace.
    pub(super) fn runs_of<'a>(&'a self, workspace: &'a Workspace) -> impl Iterator<Item = &'a Run> {
        self.runs
            .iter()
            .filter(|run| run.spec.workspace_ref.name == workspace.metadata.name)
    }

    /// Names of the workspaces that still move.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &str> {
        self.workspaces
            .iter()
            .filter(|workspace| !self.is_settled(workspace))
            .map(|workspace| workspace.metadata.name.as_str())
    }

    fn is_settled(&self, workspace: &Workspace) -> bool {
        let status = &workspace.status;
        if status.observed_generation != workspace.metadata.generation {
            return false;
        }
        let is_true = |type_| {
            status
                .conditions
                .iter()
                .any(|condition| condition.r#type == type_ && condition.status == "True")
        };
        if is_true("Stalled") {
            return true;
        }
        let finished = |run: &Run| run.status.outcome.is_some();
        is_true("Ready")
            && self.runs_of(workspace).all(finished)
            && (!workspace.runs_by_itself() || self.last_run(workspace).is_some_and(finished))
    }

    fn last_run(&self, workspace: &Workspace) -> Option<&Run> {
        let name = &workspace.status.last_run.as_ref()?.name;
        self.runs.iter().find(|run| run.metadata.name == *name)
    }
}

impl Workspace {
    fn runs_by_itself(&self) -> bool {
        self.spec.run.is_some()
            && self
                .spec
                .run_policy
                .as_deref()
                .is_none_or(|policy| policy == "OnChange")
    }

    /// The summary of all conditions.
    pub(super) fn ready(&self) -> Option<&Condition> {
        self.status
            .conditions
            .iter()
            .find(|condition| condition.r#type == "Ready")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workspace(spec: &Value, status: &Value) -> Value {
        json!({"kind": "CodeWorkspace", "metadata": {"name": "one", "generation": 2}, "spec": spec, "status": status})
    }

    fn run(name: &str, status: &Value) -> Value {
        json!({
            "kind": "CodeRun",
            "metadata": {"name": name, "generation": 1},
            "spec": {"workspaceRef": {"name": "one"}},
            "status": status,
        })
    }

    fn condition(type_: &str, status: &str) -> Value {
        json!({"type": type_, "status": status, "reason": "Some", "message": "words"})
    }

    fn waits(items: &[Value]) -> bool {
        let workspaces = Workspaces::from_list(json!({"items": items})).unwrap();
        workspaces.waiting().next().is_some()
    }

    #[test]
    fn a_workspace_that_was_not_looked_at_is_waited_for() {
        let ready = json!({"observedGeneration": 1, "conditions": [condition("Ready", "True")]});
        assert!(waits(&[workspace(&json!({}), &ready)]));
        assert!(waits(&[
            json!({"kind": "CodeWorkspace", "metadata": {"name": "one", "generation": 1}, "spec": {}})
        ]));
    }

    #[test]
    fn a_workspace_is_settled_when_only_a_change_can_help() {
        let stalled = json!({"observedGeneration": 2, "conditions": [condition("Stalled", "True")]});
        assert!(!waits(&[workspace(&json!({"run": "a.py"}), &stalled)]));
        let retrying = json!({"observedGeneration": 2, "conditions": [condition("Ready", "False"), condition("Reconciling", "True")]});
        assert!(waits(&[workspace(&json!({"run": "a.py"}), &retrying)]));
    }

    #[test]
    fn a_workspace_with_a_command_is_settled_when_its_run_has_ended() {
        let spec = json!({"run": "a.py"});
        let ready = json!({
            "observedGeneration": 2,
            "conditions": [condition("Ready", "True")],
            "lastRun": {"name": "one-1", "key": "k"},
        });
        assert!(waits(&[workspace(&spec, &ready)]));
        assert!(waits(&[
            workspace(&spec, &ready),
            run("one-1", &json!({"reason": "Running"}))
        ]));
        assert!(!waits(&[
            workspace(&spec, &ready),
            run("one-1", &json!({"outcome": "Failed"}))
        ]));
    }

    #[test]
    fn runs_made_by_hand_are_waited_for_and_nothing_else_when_a_workspace_runs_on_demand() {
        let ready = json!({"observedGeneration": 2, "conditions": [condition("Ready", "True")]});
        let workspace = workspace(&json!({"run": "a.py", "runPolicy": "OnDemand"}), &ready);
        assert!(!waits(std::slice::from_ref(&workspace)));
        assert!(waits(&[workspace.clone(), run("mine", &json!({}))]));
        assert!(!waits(&[
            workspace,
            run("mine", &json!({"outcome": "Succeeded"}))
        ]));
    }
}
