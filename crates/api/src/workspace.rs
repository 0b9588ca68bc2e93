//! `CodeWorkspace`: which files make up a bundle, how to run it, in which runner.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blocks;
use crate::pod::{Pod, VolumeDelivery};
use crate::root::{Root, RootStatus};

/// A code workspace (AIP-26): the sources of one bundle, the command that runs it and the runner that hosts it. The
/// blocks `code`, `run`, `runner`, `runtime`, `sandbox`, `secrets`, `network`, `inputs`, `outputs`, `inputsFiles` and
/// `outputsFiles` stand as the AIP texts define them (draft of August 2026); everything else is this operator's own.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "codeworkspace.dev",
    version = "v1alpha1",
    doc = "Sources, command and runner of one bundle (AIP-26 code workspace).",
    kind = "CodeWorkspace",
    plural = "codeworkspaces",
    shortname = "cws",
    category = "code",
    namespaced,
    status = "CodeWorkspaceStatus",
    printcolumn(
        name = "Ready",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        type_ = "string"
    ),
    printcolumn(
        name = "Reason",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        type_ = "string"
    ),
    printcolumn(name = "Files", json_path = ".status.bundle.files", type_ = "integer"),
    printcolumn(name = "Last Run", json_path = ".status.lastRun.outcome", type_ = "string"),
    printcolumn(name = "Exit", json_path = ".status.lastRun.exitCode", type_ = "integer"),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date"),
    printcolumn(
        name = "Digest",
        json_path = ".status.bundle.digest",
        type_ = "string",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        type_ = "string",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 64))]
pub struct CodeWorkspaceSpec {
    /// What files make up the bundle (AIP-26 `code`): `{sources: [...]}`, overlaid in order so that the last one wins, or
    /// the path of another workspace as a string.
    #[schemars(schema_with = "blocks::code")]
    pub code: Value,
    /// What the runner invokes (AIP-26 `run`): a file of the bundle, a list of arguments, a shell command, or one of
    /// `{file}`, `{exec}`, `{shell}`. Without it the workspace is a shared bundle that nothing executes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::run")]
    pub run: Option<Value>,
    /// Where the process runs (AIP-17): engine, image (the name of a RunnerTemplate), needs and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::runner")]
    pub runner: Option<Value>,
    /// The older form of `runner` (AIP-17 before May 2026), which also held environment, files and network. It is
    /// converted, with a warning that says what to write instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::runtime")]
    pub runtime: Option<Value>,
    /// The sandbox that the body expects (AIP-36): the block itself, or one of `{inline}`, `{ref}` and `{file}`. Its limits and
    /// hosts are merged into those of `runner` and `network`; what this operator cannot give is refused by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::sandbox")]
    pub sandbox: Option<Value>,
    /// Secrets by environment variable (AIP-19). Not implemented yet: refused in status as NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::secrets")]
    pub secrets: Option<Value>,
    /// Hosts that the body may reach. Absent means none. Egress lists are recorded, but not opened yet: every pod runs
    /// without network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::network")]
    pub network: Option<Value>,
    /// JSON Schema of the input (AIP-16). Not implemented yet: refused in status as NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::open")]
    pub inputs: Option<Value>,
    /// JSON Schema of the output (AIP-16). Not implemented yet: refused in status as NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::open")]
    pub outputs: Option<Value>,
    /// Files staged before each run (AIP-16). Not implemented yet: refused in status as NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::files")]
    pub inputs_files: Option<Value>,
    /// Files kept after each run (AIP-16). Not implemented yet: refused in status as NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::files")]
    pub outputs_files: Option<Value>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,
    /// Where the manifest came from (AIP-26 `source.origin`). Shown, and never a reason to trust it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "blocks::origin")]
    pub source: Option<Value>,
    /// Capabilities that the manifest asks for (AIP-26). Shown; not enforced by this operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 253)))]
    pub required_capabilities: Vec<String>,
    /// The workspace-relative path that this object stands for, which `ref` and a string `code` of other workspaces look
    /// up; `./<name>` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
    /// Where `local` sources, and `ref` to a folder, read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Root>,
    /// When the workspace runs; `OnChange` when absent (`OnDemand` for a workspace with `inputs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,
    /// When to run by the clock, as a cron line. Not implemented yet: refused in status as NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub schedule: Option<String>,
    /// What a new run does while an older one is under way. Not implemented yet: refused in status as NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// How often floating references (branches, tags) are looked up, as a Go duration such as `10m` (the default). At
    /// least `30s`. Set the annotation `codeworkspace.dev/reconcile-at` to a new value to scan at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"))]
    pub scan_interval: Option<String>,
    /// Stop looking at sources and starting runs; what runs goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// What to do with links of an archive that cannot be kept: `Refuse` (the default) or `Skip` with a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// The volume that holds the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volume>,
    /// Where and as what the pod runs, as far as its template allows. Not implemented yet: refused in status as
    /// NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Pod>,
    /// Keys that this version does not know. The API server keeps them, so that they can be named instead of vanishing.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// When the workspace runs.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunPolicy {
    /// Once for each new combination of bundle, command and runner.
    OnChange,
    /// Only when somebody makes a CodeRun.
    OnDemand,
    /// Again as soon as it ended. Not implemented yet: refused in status as NotYetSupported.
    Always,
}

/// What a new run does while an older one is under way.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConcurrencyPolicy {
    /// Both run.
    Allow,
    /// The new one is left out.
    Forbid,
    /// The older one is ended.
    Replace,
}

/// What happens to links in archives that cannot be kept.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Links {
    /// The source fails and names the link.
    #[default]
    Refuse,
    /// The link is left out and a warning names it.
    Skip,
}

/// The volume that holds the bundle.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct Volume {
    /// Where the bundle stands in the container, and the working directory of the body; `/workspace` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 256), regex(pattern = "^(/[A-Za-z0-9._-]+)+$"))]
    pub mount_path: Option<String>,
    /// Most that the volume may hold, as a Kubernetes quantity; the operator's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = "^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|k|M|G)?$"))]
    pub size_limit: Option<String>,
    /// Mount the bundle read-only; the body can then write only below `/tmp` and its home.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// How the bundle reaches the pod; `Auto` when absent. `Fetch` and `PersistentVolume` are not implemented yet: refused
    /// in status as NotYetSupported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<VolumeDelivery>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// What the operator found and made.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeWorkspaceStatus {
    /// The generation that this status speaks of; -1 before the first look, so that a new object never counts as current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `SourcesResolved`, `RunnerResolved`, `NetworkEnforced`, `LastRunSucceeded`; `Reconciling`,
    /// `Stalled` and `Stale` are there only while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The bundle that runs use now. It stays while a newer state of the sources fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleStatus>,
    /// Hash of everything that the bundle and the command were made from; while it stays, nothing is fetched or built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// Digests of the last ten bundles, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<String>,
    /// The sources in the manifest's order, those that a `ref` brings in its place; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceStatus>,
    /// How many sources are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources_omitted: Option<i64>,
    /// What stands at `spec.root`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<RootStatus>,
    /// What should be written otherwise although it works, such as an older form of a block.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The value of the annotation `codeworkspace.dev/reconcile-at` that was acted upon last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// What will be executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunStatus>,
    /// The resolved runner (AIP-17's handle, every field filled in).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerStatus>,
    /// What the body may reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<EffectiveStatus>,
    /// The run of the current key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRunStatus>,
}

/// One bundle.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleStatus {
    /// sha256 of the uncompressed tar.
    pub digest: String,
    /// Number of files.
    pub files: i64,
    /// Bytes of all files.
    pub size_bytes: i64,
    /// Bytes of the compressed tar.
    pub compressed_bytes: i64,
    /// How the bundle reaches the pod: `ConfigMap`.
    pub delivery: String,
    /// What could surprise somebody, such as names that differ only in case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// For conditions and events.
impl fmt::Display for BundleStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = if self.files == 1 { "file" } else { "files" };
        write!(
            out,
            "{} {files}, {} bytes, {}",
            self.files, self.size_bytes, self.digest
        )
    }
}

/// What became of one source.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceStatus {
    /// Its place in the manifest, for example `code.sources[1]`, or `code.sources[1] > render-utils > code.sources[0]` for a
    /// source of another workspace.
    pub path: String,
    /// `inline`, `local`, `github` or `ref`; absent when the entry names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What it points at, for people.
    pub summary: String,
    /// What became of it.
    pub state: SourceState,
    /// What identifies its files: the whole commit id for `github`, the revision of the root for `local`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Number of files it contributes before overlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<i64>,
    /// Bytes of those files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// Why it failed or is stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<SourceFailure>,
    /// What will probably surprise somebody later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What became of one source.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceState {
    /// Its files are known.
    Resolved,
    /// It cannot be looked up now; its last files are used.
    Stale,
    /// It has no files; nothing new is started.
    Failed,
}

/// Why a source failed.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceFailure {
    /// AIP-26's class: `ManifestValidationError`, `SourceResolutionError` or `BundleSizeError`.
    pub class: String,
    /// One word of a closed list.
    pub reason: String,
    /// For people: what, where, and what to do.
    pub message: String,
    /// Since when it fails with this reason.
    pub since: Time,
}

/// The command.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunStatus {
    /// `file`, `exec` or `shell`.
    pub form: String,
    /// The exact argument list; files are absolute paths below the mount.
    pub argv: Vec<String>,
    /// What was guessed and could be meant otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The resolved runner.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerStatus {
    /// `sandbox` or `subprocess`; both are pods.
    pub engine: String,
    /// Name of the template as AIP-17's image id; absent for `subprocess`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The RunnerTemplate that the pod uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Whether the template was picked by needs instead of being named.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_picked: bool,
    /// Whether `in-process` was asked for and replaced by `subprocess`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub downgraded: bool,
    /// What the body needs.
    pub needs: ResolvedNeeds,
    /// What the body may use.
    pub limits: ResolvedLimits,
    /// Limits that are declared and not enforced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unenforced_limits: Vec<String>,
}

/// Needs with every default filled in (AIP-17).
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedNeeds {
    /// `node`, `python` or `multi`.
    pub language: String,
    /// Native packages.
    pub native: Vec<String>,
    /// npm packages.
    pub npm: Vec<String>,
    /// pip packages.
    pub pip: Vec<String>,
}

/// Limits with every default filled in (AIP-17's names).
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolvedLimits {
    /// Memory in MiB.
    pub memory_mb: i64,
    /// Wall-clock time in ms.
    pub timeout_ms: i64,
    /// CPU time in ms; absent means no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<i64>,
    /// CPU cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<f64>,
    /// Scratch space in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_storage_mb: Option<i64>,
}

/// What the body may reach.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveStatus {
    /// Hosts that the manifest asks for. Nothing is opened yet.
    pub egress: Vec<String>,
    /// Native packages that the manifest asks for.
    pub native: Vec<String>,
    /// Environment variables that the manifest binds to secrets, connectors or values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// The run of the current key.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRunStatus {
    /// The key (bundle, run, runner) that has been run; it never runs again by itself.
    pub key: String,
    /// Name of the CodeRun.
    pub name: String,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<crate::Outcome>,
    /// Exit code of the body, when it exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}
