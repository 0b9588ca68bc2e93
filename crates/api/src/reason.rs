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
