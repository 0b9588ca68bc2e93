//! The closed list of condition reasons. A reason names who must act: waiting reasons heal by themselves, the others
//! want a change of the manifest, of the cluster's templates, or of the world outside.

/// Everything needed is there.
pub const READY: &str = "Ready";
/// The generation has not been looked at yet.
pub const PROGRESSING: &str = "Progressing";
/// `spec.suspend` is set.
pub const SUSPENDED: &str = "Suspended";
/// All sources resolved.
pub const RESOLVED: &str = "Resolved";
/// The manifest itself is wrong (an AIP-26 error class).
pub const MANIFEST_VALIDATION_ERROR: &str = "ManifestValidationError";
/// A source could not be resolved (an AIP-26 error class).
pub const SOURCE_RESOLUTION_ERROR: &str = "SourceResolutionError";
/// The bundle or one of its files is over a limit (an AIP-26 error class).
pub const BUNDLE_SIZE_ERROR: &str = "BundleSizeError";
/// The manifest uses a field that this version does not implement yet.
pub const NOT_YET_SUPPORTED: &str = "NotYetSupported";
/// The bundle is larger than what the delivery can carry.
pub const DELIVERY_NOT_SUPPORTED: &str = "DeliveryNotSupported";
/// The API server refused to store the bundle, for example by quota.
pub const DELIVERY_FAILED: &str = "DeliveryFailed";
/// The CodeRun of the current key could not be made, for example by quota or because its name is taken.
pub const RUN_NOT_CREATED: &str = "RunNotCreated";
/// `run` cannot be resolved against the bundle.
pub const RUN_INVALID: &str = "RunInvalid";
/// The runner block is wrong or contradicts itself.
pub const RUNNER_INVALID: &str = "RunnerInvalid";
/// No runner template satisfies the needs.
pub const NO_MATCHING_TEMPLATE: &str = "NoMatchingTemplate";
/// `runner.image` names a template that does not exist.
pub const UNKNOWN_TEMPLATE: &str = "UnknownTemplate";
/// A workspace without `run`: a shared bundle that nothing executes by itself.
pub const NO_RUN: &str = "NoRun";
/// Isolation is applied, but whether the cluster enforces it has not been tested.
pub const NOT_VERIFIED: &str = "NotVerified";
/// A run of the current key is under way.
pub const RUNNING: &str = "Running";
/// A source cannot be looked up now; the last good bundle stands.
pub const SOURCE_UNAVAILABLE: &str = "SourceUnavailable";
/// The bundle does not fit into the workspace's volume.
pub const VOLUME_TOO_SMALL: &str = "VolumeTooSmall";
/// A failure that is tried again by itself.
pub const PROGRESSING_WITH_RETRY: &str = "ProgressingWithRetry";

/// A referenced workspace does not exist yet, or is not ready; its appearance heals the one that waits.
pub const WAITING: &str = "Waiting";
/// References lead back to where they came from; the message has the whole way.
pub const CYCLE: &str = "Cycle";
/// References go deeper than five edges.
pub const TOO_DEEP: &str = "TooDeep";
/// A `ref` names something that is no code workspace.
pub const KIND_ERROR: &str = "KindError";
/// A `ref` has a form that cannot be resolved here, for example a path that leaves the root.
pub const REFERENCE_REFUSED: &str = "ReferenceRefused";
/// The manifest of a referenced workspace is wrong.
pub const REFERENCE_INVALID: &str = "ReferenceInvalid";
/// What several referenced workspaces say about runner, secrets or network contradicts itself.
pub const INHERITANCE_CONFLICT: &str = "InheritanceConflict";

/// `local`, or `ref` to a folder, without `spec.root`.
pub const ROOT_MISSING: &str = "RootMissing";
/// An object of `spec.root` does not exist in the namespace.
pub const ROOT_NOT_FOUND: &str = "RootNotFound";
/// An object of `spec.root` is there and has no files yet; it heals by itself.
pub const ROOT_NOT_READY: &str = "RootNotReady";
/// `spec.root` needs something that this cluster or the operator's configuration does not have.
pub const ROOT_NOT_SUPPORTED: &str = "RootNotSupported";
/// What stands at `spec.root` is refused, for example a path that two ConfigMaps give, or an artifact with a wrong digest.
pub const ROOT_REFUSED: &str = "RootRefused";
/// The volume of `spec.root` is in use on another node.
pub const ROOT_IN_USE: &str = "RootInUse";
/// A key that `items` names is not in its ConfigMap.
pub const KEY_NOT_FOUND: &str = "KeyNotFound";
/// Nothing of the root matches.
pub const PATH_NOT_FOUND: &str = "PathNotFound";

/// A `github` reference is no whole commit id, and the cluster or the namespace wants one.
pub const PIN_REQUIRED: &str = "PinRequired";
/// The last good state of a source is older than the operator permits.
pub const STALE_TOO_LONG: &str = "StaleTooLong";

/// Two connectors of one driver in a namespace; the message names both.
pub const DUPLICATE_CONNECTOR: &str = "DuplicateConnector";
/// A connector of a driver that this version does not know.
pub const UNKNOWN_DRIVER: &str = "UnknownDriver";
/// The operator may not read Secrets in this namespace; the message says how it is permitted.
pub const SECRET_NOT_READABLE: &str = "SecretNotReadable";
/// The Secret does not exist.
pub const SECRET_NOT_FOUND: &str = "SecretNotFound";
/// The Secret lacks the key, or what is there is no credential.
pub const SECRET_INVALID: &str = "SecretInvalid";

/// Pods of an interpreter's template do not start, for the reason in the message; they are tried again.
pub const PODS_NOT_STARTING: &str = "PodsNotStarting";
