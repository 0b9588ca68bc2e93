//! The resources of `codeworkspace.dev`: types, schemas, conditions, reasons and labels.
//!
//! This crate holds data only. It has no client and does no I/O, so that the command line, tests and every process of
//! the product can speak about the same objects.

// Each printer column has a type of its own; the lint takes the words inside `printcolumn(…)` for repeated attributes.
#![allow(clippy::duplicated_attributes)]

mod blocks;
pub mod condition;
mod crd;
mod interpreter;
mod inventory;
pub mod labels;
mod pod;
pub mod reason;
mod root;
mod run;
mod session;
mod template;
mod workspace;

pub use crd::{crds, file_name};
pub use interpreter::{
    CodeInterpreter, CodeInterpreterSpec, CodeInterpreterStatus, Commands, DEFAULT_IDENTIFIER, DEFAULT_NAME,
    InterpreterNetwork, SessionLanguage, SessionTimeout, WarmPool, WarmPoolStatus,
};
pub use inventory::{
    Access, Audit, Connector, ConnectorStatus, Grant, SecretEntry, SecretInventory, SecretInventorySpec,
    SecretInventoryStatus, SecretKind, SecretReference,
};
pub use pod::{Pod, VolumeDelivery};
pub use root::{
    ClaimRoot, ConfigMapItem, ConfigMapRoot, FluxKind, FluxSourceRoot, GithubRoot, Root, RootStatus,
};
pub use run::{
    CodeRun, CodeRunSpec, CodeRunStatus, Outcome, OutcomeReason, StreamStatus, WorkspaceReference,
};
pub use session::{
    CodeSession, CodeSessionSpec, CodeSessionStatus, InterpreterReference, SessionReason, SessionState,
};
pub use template::{ImagePullPolicy, RunnerLanguage, RunnerTemplate, RunnerTemplateSpec, SessionLimits};
pub use workspace::{
    BundleStatus, CodeWorkspace, CodeWorkspaceSpec, CodeWorkspaceStatus, ConcurrencyPolicy, EffectiveStatus,
    LastRunStatus, Links, ResolvedLimits, ResolvedNeeds, RunPolicy, RunStatus, RunnerStatus, SourceFailure,
    SourceState, SourceStatus, Volume,
};

/// API group of every kind in this crate.
pub const GROUP: &str = "codeworkspace.dev";
/// The version that is served and stored.
pub const VERSION: &str = "v1alpha1";
