//! Hashes that decide whether something is new: of what a bundle is made from, and of what a run executes.
//!
//! Each begins with a version. A value of another version is unknown, and unknown never means changed or unchanged: inputs are
//! built again, and a run key only counts together with the CodeRun or status that carries it.

use codeworkspace_api::{BundleStatus, CodeWorkspaceStatus, ResolvedLimits, RunStatus, RunnerStatus};
use codeworkspace_bundle::Digest;
use serde::Serialize;

const VERSION: u8 = 1;

/// What the bundle and its plan are made from; equal inputs give equal results.
#[derive(Debug, Serialize)]
pub struct Inputs<'a> {
    /// Each source: where it points and what it is now.
    pub sources: &'a [String],
    /// The `run` block.
    pub run: Option<&'a serde_json::Value>,
    /// The `runner` block.
    pub runner: Option<&'a serde_json::Value>,
    /// Name, uid and generation of the template.
    pub template: Option<(&'a str, &'a str, i64)>,
    /// Where the bundle is mounted, and how large its volume may be.
    pub volume: &'a codeworkspace_api::Volume,
    /// Whether links may be skipped.
    pub skip_links: bool,
    /// The resolved runner, when more than the `runner` block says what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<RunnerStatus>,
}

impl Inputs<'_> {
    /// The hash as it stands in status.
    pub fn hash(&self) -> String {
        hash(self)
    }
}

/// What one run executes. A changed part is a new run.
#[derive(Debug, Serialize)]
pub struct RunKey<'a> {
    /// Digest of the bundle.
    pub digest: &'a str,
    /// The exact argument list.
    pub argv: &'a [String],
    /// Name of the template.
    pub template: &'a str,
    /// What the body may use.
    pub limits: &'a ResolvedLimits,
    /// What the body may reach.
    pub egress: &'a [String],
}

impl<'a> RunKey<'a> {
    /// The key of what has been resolved.
    pub fn new(
        bundle: &'a BundleStatus,
        run: &'a RunStatus,
        runner: &'a RunnerStatus,
        egress: &'a [String],
    ) -> Self {
        Self {
            digest: &bundle.digest,
            argv: &run.argv,
            template: runner.template.as_deref().unwrap_or_default(),
            limits: &runner.limits,
            egress,
        }
    }

    /// The key of what a workspace's status says, if it says enough.
    pub fn of_status(status: &'a CodeWorkspaceStatus) -> Option<Self> {
        let egress = status
            .effective
            .as_ref()
            .map_or(&[][..], |effective| &effective.egress);
        Some(Self::new(
            status.bundle.as_ref()?,
            status.run.as_ref()?,
            status.runner.as_ref()?,
            egress,
        ))
    }

    /// The key as it stands in status and on the CodeRun.
    pub fn hash(&self) -> String {
        hash(self)
    }
}

/// Name of the CodeRun for a key: the head of the workspace's name, and a digest of the whole name and the key, since two long
/// names may have one head. At most 63 characters, so that it also is the name and the host name of its pod.
pub fn run_name(workspace: &str, key: &str) -> String {
    let digest = Digest::of(format!("{workspace} {key}").as_bytes()).hex();
    let head: String = workspace.chars().take(52).collect();
    format!("{}-{:.10}", head.trim_end_matches(['.', '-']), digest)
}

fn hash(value: &impl Serialize) -> String {
    // Serialising strings and numbers into memory cannot fail.
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    format!("{VERSION}:{}", Digest::of(&bytes).hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(memory_mb: i64) -> ResolvedLimits {
        ResolvedLimits {
            memory_mb,
            timeout_ms: 1000,
            cpu_ms: None,
            vcpus: None,
            ephemeral_storage_mb: None,
        }
    }

    #[test]
    fn every_part_of_a_run_makes_another_key() {
        let (argv, other_argv) = (["node".to_owned()], ["bash".to_owned()]);
        let (limits, other_limits) = (limits(1), limits(2));
        let key = |digest, argv, template, limits, egress| {
            RunKey {
                digest,
                argv,
                template,
                limits,
                egress,
            }
            .hash()
        };
        let base = key("sha256:a", &argv[..], "node", &limits, &[]);
        assert!(base.starts_with("1:"));
        assert_eq!(base, key("sha256:a", &argv, "node", &limits, &[]));
        for other in [
            key("sha256:b", &argv, "node", &limits, &[]),
            key("sha256:a", &other_argv, "node", &limits, &[]),
            key("sha256:a", &argv, "python", &limits, &[]),
            key("sha256:a", &argv, "node", &other_limits, &[]),
            key("sha256:a", &argv, "node", &limits, &argv),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn the_name_of_a_run_is_a_host_name_even_for_the_longest_workspace() {
        assert_eq!(run_name("tool", "1:0123456789abcdef"), "tool-96f061e0d2");
        let long = run_name(
            &format!("{}.{}", "a".repeat(51), "b".repeat(200)),
            "1:0123456789abcdef",
        );
        assert_eq!(long, format!("{}-de884a2e72", "a".repeat(51)));
    }

    #[test]
    fn workspaces_whose_long_names_begin_alike_have_runs_of_their_own() {
        let name = |last| run_name(&format!("{}{last}", "a".repeat(60)), "1:0123456789abcdef");
        assert_ne!(name("1"), name("2"));
    }
}
