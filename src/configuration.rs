//! The operator's configuration: one YAML file that the chart writes.

use std::path::Path;

use anyhow::Context as _;
use codeworkspace_bundle::Caps;
use codeworkspace_source::GithubConfiguration;
use jiff::SignedDuration;
use serde::Deserialize;

/// Everything that a cluster's administrator decides. Unknown keys are errors: a misspelled limit must not be ignored.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Configuration {
    /// Where GitHub is, and how hard we may ask it.
    #[serde(default)]
    pub github: GithubConfiguration,
    /// Limits of a bundle.
    #[serde(default)]
    pub bundle: BundleLimits,
    /// Limits of the ways in which a bundle reaches its pod.
    #[serde(default)]
    pub delivery: Delivery,
    /// Defaults and limits of runs.
    #[serde(default)]
    pub runs: Runs,
    /// How often sources are looked at.
    #[serde(default)]
    pub scan: Scan,
    /// Whether every `github` source of the cluster must name a whole commit id. A namespace can ask for it itself, by a label.
    #[serde(default)]
    pub require_pin: bool,
    /// Whether artifacts of Flux may be a root, and where they are.
    #[serde(default)]
    pub flux: Flux,
    /// Sessions of interpreters; without it nobody looks after them.
    #[serde(default)]
    pub sessions: Option<Sessions>,
    /// The image that brings the runner into pods.
    pub runner_image: RunnerImage,
}

/// Limits of a bundle; each is reported with both numbers when it is passed.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BundleLimits {
    /// Most files.
    pub entries: u64,
    /// Most bytes of one file.
    pub file_bytes: u64,
    /// Most bytes of all files.
    pub total_bytes: u64,
}

impl Default for BundleLimits {
    fn default() -> Self {
        let Caps {
            entries,
            file_bytes,
            total_bytes,
        } = Caps::default();
        Self {
            entries,
            file_bytes,
            total_bytes,
        }
    }
}

impl From<BundleLimits> for Caps {
    fn from(
        BundleLimits {
            entries,
            file_bytes,
            total_bytes,
        }: BundleLimits,
    ) -> Self {
        Self {
            entries,
            file_bytes,
            total_bytes,
        }
    }
}

/// Limits of delivery.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Delivery {
    /// Most compressed bytes that go into a ConfigMap. The API server takes 1 MiB in all, and etcd keeps every one of them.
    pub config_map_bytes: u64,
}

impl Default for Delivery {
    fn default() -> Self {
        Self {
            config_map_bytes: 512 * 1024,
        }
    }
}

/// Defaults and limits of runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Runs {
    /// Seconds from the pod's creation to the start of its body (scheduling, image pulls, unpacking). Then the run is given up.
    pub start_budget_seconds: i64,
    /// Seconds that a finished run stays when it says nothing itself.
    pub ttl_seconds_after_finished: i64,
    /// Seconds that no run may exceed, whatever its workspace says.
    pub maximum_timeout_seconds: i64,
    /// Size limit of the bundle's volume when the workspace says nothing.
    pub volume_size_limit: String,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            start_budget_seconds: 300,
            ttl_seconds_after_finished: 3600,
            maximum_timeout_seconds: 86_400,
            volume_size_limit: "1Gi".to_owned(),
        }
    }
}

/// How often sources are looked at.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Scan {
    /// Seconds between two scans of a workspace with floating references that says nothing itself.
    pub interval_seconds: i64,
    /// Least seconds between two scans.
    pub minimum_interval_seconds: i64,
    /// Seconds after which even a workspace with nothing to look up is checked against the cluster again.
    pub resync_seconds: i64,
    /// Seconds that the last good state of a source is used while it cannot be looked up. Then nothing new is started from it.
    pub stale_limit_seconds: i64,
}

impl Default for Scan {
    fn default() -> Self {
        Self {
            interval_seconds: 600,
            minimum_interval_seconds: 30,
            resync_seconds: 3600,
            stale_limit_seconds: 604_800,
        }
    }
}

impl Scan {
    /// The interval of a workspace that asks for `wanted`, never below the floor.
    pub fn interval(&self, wanted: Option<SignedDuration>) -> SignedDuration {
        wanted
            .unwrap_or(SignedDuration::from_secs(self.interval_seconds))
            .max(SignedDuration::from_secs(self.minimum_interval_seconds))
    }
}

/// Whether artifacts of Flux may be a root, and where they are.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Flux {
    /// Whether Flux's sources are read at all. Without it the operator asks nothing about them, which a cluster without Flux would
    /// answer by errors.
    pub enabled: bool,
    /// Hosts (`host` or `host:port`) that artifacts may be fetched from. The URL stands in a status that tenants may write, so
    /// that it can never choose the host.
    pub hosts: Vec<String>,
}

impl Default for Flux {
    fn default() -> Self {
        Self {
            enabled: false,
            hosts: vec!["source-controller.flux-system.svc.cluster.local.".to_owned()],
        }
    }
}

/// Limits of sessions, and the release that looks after them.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sessions {
    /// The release that operator and gateway belong to.
    pub release: Release,
    /// Name of the Service, in the release's namespace, through which pods reach the registration endpoint.
    pub service: String,
    /// Most pods of sessions in one namespace, waiting and claimed ones together.
    #[serde(default = "Sessions::maximum_pods_per_namespace")]
    pub maximum_pods_per_namespace: i32,
    /// Seconds from a pod's creation until its kernels are ready (scheduling, image pulls, registration). Then it is given up.
    #[serde(default = "Sessions::start_budget_seconds")]
    pub start_budget_seconds: i64,
    /// Seconds of that which the kernels may take.
    #[serde(default = "Sessions::kernel_start_seconds")]
    pub kernel_start_seconds: i64,
    /// Age of a waiting pod at which it is replaced, when no interpreter says something else.
    #[serde(default = "Sessions::day")]
    pub maximum_age_seconds: i64,
    /// Seconds that the record of a session stays after its end.
    #[serde(default = "Sessions::day")]
    pub record_seconds: i64,
}

impl Sessions {
    fn maximum_pods_per_namespace() -> i32 {
        100
    }

    fn start_budget_seconds() -> i64 {
        300
    }

    fn kernel_start_seconds() -> i64 {
        120
    }

    fn day() -> i64 {
        86_400
    }
}

/// Which pods are the release's own.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Release {
    /// Its namespace.
    pub namespace: String,
    /// Value of the label `app.kubernetes.io/name` of its pods.
    pub name: String,
    /// Value of their label `app.kubernetes.io/instance`.
    pub instance: String,
}

/// The image that brings the runner into pods.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunnerImage {
    /// Image reference as in a pod.
    pub reference: String,
    /// `Always`, `IfNotPresent` or `Never`; the cluster's default when absent.
    #[serde(default)]
    pub pull_policy: Option<String>,
}

impl Configuration {
    /// Reads the file, naming it and the place in it when it is wrong.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the configuration {}", path.display()))?;
        serde_saphyr::from_str(&text)
            .with_context(|| format!("the configuration {} is wrong", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimal_configuration_has_safe_defaults() {
        let configuration: Configuration =
            serde_saphyr::from_str("runnerImage: {reference: 'example/operator:1'}").unwrap();
        assert_eq!(configuration.delivery.config_map_bytes, 524_288);
        assert_eq!(configuration.runs.start_budget_seconds, 300);
        assert_eq!(configuration.scan.interval(None), SignedDuration::from_mins(10));
        assert_eq!(
            configuration.scan.interval(Some(SignedDuration::from_secs(1))),
            SignedDuration::from_secs(30)
        );
    }

    #[test]
    fn a_misspelled_key_is_an_error_that_names_it() {
        let error = serde_saphyr::from_str::<Configuration>(
            "runnerImage: {reference: x}\nruns: {startBudgetSecond: 3}",
        )
        .unwrap_err();
        assert!(error.to_string().contains("startBudgetSecond"), "{error}");
    }
}
