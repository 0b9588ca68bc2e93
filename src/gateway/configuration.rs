//! The gateway's configuration: one YAML file that the chart writes.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use codeworkspace_agentcore::result::ExecutionTimeUnit;
use serde::Deserialize;

/// Everything that a cluster's administrator decides about the gateway. Unknown keys are errors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GatewayConfiguration {
    /// The interpreter `aws.codeinterpreter.v1` as each tenant gets it.
    pub default_interpreter: DefaultInterpreter,
    /// Region that callers sign for; any when absent.
    pub region: Option<String>,
    /// Unit of `executionTime` in results.
    pub execution_time_unit: ExecutionTimeUnit,
    /// Limits.
    pub limits: Limits,
}

/// The spec of each tenant's default interpreter, when it is made. Its object may be changed afterwards like any other.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DefaultInterpreter {
    /// Name of the RunnerTemplate; the lightest that has kernels when absent.
    pub template: Option<String>,
    /// Pods that wait.
    pub warm_pool_size: i32,
}

impl Default for DefaultInterpreter {
    fn default() -> Self {
        Self {
            template: None,
            warm_pool_size: 1,
        }
    }
}

/// Limits of callers.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Open sessions of one tenant.
    pub sessions_per_tenant: usize,
    /// Calls a second of one tenant and replica, on average: one number for starting sessions, one for using them.
    pub starts_per_second: u32,
    /// See `starts_per_second`.
    pub calls_per_second: u32,
    /// Request bodies above a mebibyte that are held in memory at once.
    pub large_bodies: usize,
    /// Seconds that a start waits for a pod. Clients give up after 60 s and call again.
    pub start_patience_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions_per_tenant: 1000,
            starts_per_second: 50,
            calls_per_second: 200,
            large_bodies: 4,
            start_patience_seconds: 55,
        }
    }
}

impl Limits {
    /// How long a start waits for a pod.
    pub fn start_patience(&self) -> Duration {
        Duration::from_secs(self.start_patience_seconds)
    }
}

impl GatewayConfiguration {
    /// Reads the file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_saphyr::from_str(&text).with_context(|| format!("{} is wrong", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_limit_is_not_ignored() {
        let error =
            serde_saphyr::from_str::<GatewayConfiguration>("limits: {sessionsPerTennant: 3}").unwrap_err();
        assert!(error.to_string().contains("sessionsPerTennant"), "{error}");
    }

    #[test]
    fn nothing_has_to_be_said() {
        let configuration: GatewayConfiguration = serde_saphyr::from_str("{}").unwrap();
        assert_eq!(configuration.execution_time_unit, ExecutionTimeUnit::Seconds);
        assert_eq!(configuration.limits.start_patience(), Duration::from_secs(55));
    }
}
