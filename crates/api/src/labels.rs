//! Labels and annotations that the operator writes or reads.

/// Set on everything that the operator makes; its value is [`MANAGER`].
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY`], and the prefix of our field managers.
pub const MANAGER: &str = "codeworkspace-operator";
/// Name of the workspace an object belongs to, see [`value`].
pub const WORKSPACE: &str = "codeworkspace.dev/workspace";
/// Name of the CodeRun a pod belongs to, see [`value`].
pub const RUN: &str = "codeworkspace.dev/run";
/// What kind of pod this is; NetworkPolicies select by it.
pub const CLASS: &str = "codeworkspace.dev/class";
/// Value of [`CLASS`] for the pod of a CodeRun.
pub const CLASS_RUN: &str = "run";
/// Annotation on a CodeRun that the operator made: the key (bundle, run, runner) that it stands for.
pub const RUN_KEY: &str = "codeworkspace.dev/run-key";
/// Annotation on a bundle's ConfigMap: the whole digest, whose head is in the name.
pub const BUNDLE_DIGEST: &str = "codeworkspace.dev/bundle-digest";
/// Annotation that asks for a scan now: any new value counts once.
pub const RECONCILE_AT: &str = "codeworkspace.dev/reconcile-at";
/// Label of a namespace, value `true`: its `github` sources must name whole commit ids.
pub const REQUIRE_PIN: &str = "codeworkspace.dev/require-pin";
/// Value of [`CLASS`] for the pod that reads a volume for `spec.root`.
pub const CLASS_READER: &str = "reader";
/// Value of [`CLASS`] for the pod of a session, warm or claimed.
pub const CLASS_SESSION: &str = "session";
/// Label of a session's pod: the RunnerTemplate that it was made from, see [`value`].
pub const TEMPLATE: &str = "codeworkspace.dev/template";
/// Label of a session's pod: a hash of everything that it was made from. A pod with another hash than new ones get is outdated.
pub const POOL: &str = "codeworkspace.dev/pool";
/// Label of a session's pod: [`STATE_WARM`] until a session claims it, then [`STATE_CLAIMED`] for ever.
pub const STATE: &str = "codeworkspace.dev/state";
/// Value of [`STATE`]: no session has had this pod.
pub const STATE_WARM: &str = "warm";
/// Value of [`STATE`]: a session has this pod, or had it. It is never given to another.
pub const STATE_CLAIMED: &str = "claimed";
/// Label of a claimed pod: the CodeSession that has it.
pub const SESSION: &str = "codeworkspace.dev/session";
/// Annotation of a session's pod, written when it registers: the digest of its public key, by which the gateway knows it.
pub const KEY_DIGEST: &str = "codeworkspace.dev/key-digest";
/// Annotation of a CodeInterpreter that was made through the AgentCore API: the name that the caller gave it.
pub const AGENTCORE_NAME: &str = "codeworkspace.dev/agentcore-name";
/// Label of a CodeSession: the CodeInterpreter that it belongs to, see [`value`].
pub const INTERPRETER: &str = "codeworkspace.dev/interpreter";
/// Annotation of a CodeSession: digest of the token of the call that stopped it, which may be repeated.
pub const STOP_TOKEN: &str = "codeworkspace.dev/stop-token";
/// Annotation of a CodeSession that was opened through the gateway's native API: the name of the user who asked for it, as the API
/// server knows it.
pub const REQUESTED_BY: &str = "codeworkspace.dev/requested-by";

/// Longest label value (Kubernetes' limit).
const LABEL_MAX: usize = 63;

/// A name as a label value: the name itself, or its head and a checksum when it is longer than a label may be.
///
/// Object names may be 253 characters long, label values only 63. The checksum is FNV-1a: it tells names apart, and is
/// no protection against somebody who looks for collisions (selectors are therefore never the only check of ownership).
pub fn value(name: &str) -> String {
    if name.len() <= LABEL_MAX {
        return name.to_owned();
    }
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let head: String = name.chars().take(LABEL_MAX - 17).collect();
    format!("{}-{hash:016x}", head.trim_end_matches(['.', '-']))
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn short_names_stand_as_they_are_and_long_ones_stay_distinct_valid_labels() {
        assert_eq!(value("tool"), "tool");
        let (one, two) = (
            value(&format!("{}1", "a".repeat(200))),
            value(&format!("{}2", "a".repeat(200))),
        );
        assert_ne!(one, two);
        assert_eq!(one.len(), 63);
        assert_eq!(
            value(&format!("{}.{}", "a".repeat(45), "b".repeat(40))),
            format!("{}-19c895d6a485f53a", "a".repeat(45))
        );
    }
}
