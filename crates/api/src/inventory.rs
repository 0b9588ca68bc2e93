//! `SecretInventory`: which secrets and connectors a namespace has (AIP-19), without their values.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which secrets and connectors the workspaces of a namespace may use (AIP-19 SECRETS.md), and in which Secrets their values are.
/// Values never stand in this object. The operator reads only the Secrets that an inventory names, by `get`, and only in
/// namespaces where the cluster's administrator bound its role for that.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "codeworkspace.dev",
    version = "v1alpha1",
    doc = "Secrets and connectors that the workspaces of a namespace may use, without their values (AIP-19).",
    kind = "SecretInventory",
    plural = "secretinventories",
    shortname = "sinv",
    category = "code",
    namespaced,
    status = "SecretInventoryStatus",
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
    printcolumn(
        name = "Connectors",
        json_path = ".spec.connectors[*].driver",
        type_ = "string"
    ),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date"),
    printcolumn(
        name = "Message",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        type_ = "string",
        priority = 1
    )
)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct SecretInventorySpec {
    /// The secrets, each by its slug. Recorded; workspaces cannot use them yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["slug".into()]))]
    pub secrets: Vec<SecretEntry>,
    /// Ways to other services, one for each driver. A namespace may have one connector of a driver, in whichever inventory: two
    /// are an error that names both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["driver".into()]))]
    pub connectors: Vec<Connector>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// One secret (AIP-19), without its value.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 24))]
pub struct SecretEntry {
    /// What manifests call it: lower-case letters, digits and dashes, with at most one `/`, for example `finance/stripe-api-key`.
    #[schemars(
        length(min = 2, max = 80),
        regex(pattern = "^([a-z][a-z0-9-]*[a-z0-9]/)?[a-z][a-z0-9-]*[a-z0-9]$")
    )]
    pub slug: String,
    /// What people call it.
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// What it is for.
    #[schemars(length(min = 1, max = 2000))]
    pub description: String,
    /// The shape of its value: `opaque` (the default) is one string, `oauth` an access token with what renews it, `keypair`
    /// a public and a private part, `json` anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<SecretKind>,
    /// Who may use it. Nobody when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// What is copied into each audit record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(length(max = 253), regex(pattern = "^[a-z][a-z0-9-]*$"))
    )]
    pub tags: Vec<String>,
    /// Anything else, for other tools. Never a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::blocks::open")]
    pub metadata: Option<Value>,
    /// How other hosts may show the secret to what uses it (AIP-19). This operator does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::blocks::open_list")]
    pub exposures: Option<Value>,
    /// The Secret of the same namespace that holds the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// The shape of a secret's value (AIP-19).
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretKind {
    /// One string.
    #[default]
    Opaque,
    /// An access token with what renews it.
    Oauth,
    /// A public and a private part.
    Keypair,
    /// Anything.
    Json,
}

/// Who may use a secret (AIP-19).
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct Access {
    /// Who may see the value. This operator shows values to nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub reveal: Vec<Grant>,
    /// Whose runs may get the value. None that matches means nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub bind: Vec<Grant>,
    /// Who may replace the value. This operator replaces none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub rotate: Vec<Grant>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// One grant: exactly one of its fields.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct Grant {
    /// Name of a workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub tool: Option<String>,
    /// Name of a workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub workflow: Option<String>,
    /// Every workspace of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any: Option<bool>,
    /// A role of another host. Skipped with a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub role: Option<String>,
    /// A user of another host. Skipped with a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub user_id: Option<String>,
    /// A capability, `cap://…`. Skipped with a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = "^cap://"))]
    pub cap: Option<String>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// What is copied into each audit record of a secret (AIP-19).
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct Audit {
    /// How long records are to be kept, for example `P7Y`, `7y` or `90d`. Records are log lines; keeping them is the log store's work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = "^(P[0-9]+[YMWD]|[0-9]+(y|m|w|d|h))$"))]
    pub retention: Option<String>,
    /// Whether the value is personal data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pii: Option<bool>,
    /// Classes of data, for example `pci`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub classification: Vec<String>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// A way to another service.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct Connector {
    /// Which service: `github` reads repositories. Its Secret holds `token` (a personal access token), or `appId`,
    /// `privateKey` (PEM) and, when there are several, `installationId` of a GitHub App.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z][a-z0-9-]*$"))]
    pub driver: String,
    /// The Secret of the same namespace that holds the credential.
    pub secret_ref: SecretReference,
    /// Where tokens are renewed, as an https URL. The `github` driver asks GitHub itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), regex(pattern = "^https://[^\\s?#@]+$"))]
    pub token_endpoint: Option<String>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// A Secret of the same namespace; it cannot name another one.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true, "maxProperties" = 16))]
pub struct SecretReference {
    /// Name of the Secret.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Key of the Secret that holds the value. For a connector: of the token, when it is not `token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$"))]
    pub key: Option<String>,
    /// Keys that this version does not know, kept so that they can be named.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// What the operator found. It holds names and never values.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretInventoryStatus {
    /// The generation that this status speaks of; -1 before the first look, so that a new object never counts as current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`: every connector has a readable credential. `Reconciling` and `Stalled` are there only while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// What became of each connector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["driver".into()]))]
    pub connectors: Vec<ConnectorStatus>,
}

/// What became of one connector.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectorStatus {
    /// The connector.
    pub driver: String,
    /// Whether its credential can be read and has a known shape.
    pub ready: bool,
    /// What the credential is: `PersonalAccessToken` or `GitHubApp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// One word of a closed list, when it is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For people: what is wrong, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What should be changed although it works, such as a token that may do more than read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
