//! The operator's own Deployment, for stories that take it away or replace it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::helm;

/// Namespace of the operator.
pub const NAMESPACE: &str = "codeworkspace-system";
/// Its Deployment, and its release.
const NAME: &str = "codeworkspace";
/// The account that it acts as.
pub const SERVICE_ACCOUNT: &str = "codeworkspace";
/// Its metrics, through the API server's proxy.
const METRICS: &str = "/api/v1/namespaces/codeworkspace-system/services/codeworkspace:http/proxy/metrics";
/// Selects its pods.
const SELECTOR: &str = "app.kubernetes.io/component=operator";
/// Selects the pods of all of the product's processes.
pub const PROCESSES: &str = "app.kubernetes.io/component in (operator,gateway)";
const PATIENCE: Duration = Duration::from_mins(2);

/// The operator as the charts installed it.
pub struct Operator {
    client: Client,
    deployments: Api<Deployment>,
    pods: Api<Pod>,
}

impl Operator {
    /// The operator of the cluster.
    pub fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            deployments: Api::namespaced(client.clone(), NAMESPACE),
            pods: Api::namespaced(client.clone(), NAMESPACE),
        }
    }

    /// Deletes its pod and waits for the next one to be ready.
    pub async fn restart(&self) -> Result<()> {
        let former = self.pods().await?;
        for pod in &former {
            self.pods
                .delete(&pod.name_any(), &DeleteParams::default())
                .await?;
        }
        self.gone(&former).await?;
        self.ready(1).await
    }

    /// Stops it, and waits until nothing of it is left.
    pub async fn stop(&self) -> Result<()> {
        let former = self.pods().await?;
        self.scale(0).await?;
        self.gone(&former).await
    }

    /// Starts it again.
    pub async fn start(&self) -> Result<()> {
        self.scale(1).await?;
        self.ready(1).await
    }

    /// Upgrades its release with other values, as a new version of the chart would: with another pod, also when the values are the
    /// former ones.
    pub async fn upgrade(&self, values: &[&str]) -> Result<()> {
        let former = self.pods().await?;
        let mark = format!("podAnnotations.upgraded=at-{}", Timestamp::now().as_millisecond());
        let mut arguments = vec![
            "upgrade",
            NAME,
            "charts/codeworkspace",
            "--namespace",
            NAMESPACE,
            "--reuse-values",
            "--wait",
            "--timeout",
            "2m",
        ];
        for value in values.iter().chain([&mark.as_str()]) {
            arguments.extend(["--set", value]);
        }
        helm(&arguments)?.success()?;
        self.gone(&former).await?;
        self.ready(1).await
    }

    /// Its processes: which pods, and how often their containers were restarted. The same later means that none crashed.
    pub async fn processes(&self) -> Result<Vec<(Option<String>, i32)>> {
        let count = |pod: &Pod| {
            let containers = pod
                .status
                .as_ref()
                .and_then(|status| status.container_statuses.as_ref());
            containers
                .into_iter()
                .flatten()
                .map(|container| container.restart_count)
                .sum()
        };
        Ok(self
            .pods()
            .await?
            .iter()
            .map(|pod| (pod.uid(), count(pod)))
            .collect())
    }

    /// Its metrics, as a scraper reads them.
    pub async fn metrics(&self) -> Result<String> {
        let request = Request::get(METRICS).body(Vec::new())?;
        Ok(self.client.request_text(request).await?)
    }

    /// How often it has looked at a workspace since it started.
    pub async fn looks(&self) -> Result<u64> {
        let metrics = self.metrics().await?;
        let counts = metrics.lines().filter(|line| {
            line.starts_with("codeworkspace_reconciles_total{") && line.contains("kind=\"CodeWorkspace\"")
        });
        let counts = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        Ok(counts.sum())
    }

    /// Its memory, as the node counts it.
    pub async fn resident_bytes(&self) -> Result<u64> {
        let pods = self.pods().await?;
        let pod = pods.first().context("the operator has no pod")?;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let path = format!(
            "/api/v1/nodes/{}/proxy/stats/summary",
            node.context("no node yet")?
        );
        let summary: Value = self.client.request(Request::get(path).body(Vec::new())?).await?;
        let of_pods = summary["pods"].as_array().context("no pods in the summary")?;
        let ours = of_pods
            .iter()
            .find(|of_pod| of_pod["podRef"]["uid"].as_str() == pod.metadata.uid.as_deref());
        ours.and_then(|of_pod| of_pod["containers"][0]["memory"]["rssBytes"].as_u64())
            .context("the node does not know the operator's memory yet")
    }

    async fn pods(&self) -> Result<Vec<Pod>> {
        let pods = self
            .pods
            .list(&ListParams::default().labels(SELECTOR))
            .await?
            .items;
        ensure!(!pods.is_empty(), "the operator has no pod");
        Ok(pods)
    }

    async fn scale(&self, replicas: i32) -> Result<()> {
        let patch = json!({"spec": {"replicas": replicas}});
        self.deployments
            .patch_scale(NAME, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    async fn gone(&self, pods: &[Pod]) -> Result<()> {
        for pod in pods {
            let (name, uid) = (pod.name_any(), pod.uid());
            let gone = |found: Option<&Pod>| found.is_none_or(|found| found.uid() != uid);
            tokio::time::timeout(PATIENCE, await_condition(self.pods.clone(), &name, gone))
                .await
                .with_context(|| format!("pod {name} does not end"))??;
        }
        Ok(())
    }

    async fn ready(&self, replicas: i32) -> Result<()> {
        let ready = |deployment: Option<&Deployment>| {
            deployment.is_some_and(|deployment| {
                let status = deployment.status.as_ref();
                status.is_some_and(|status| {
                    status.observed_generation >= deployment.metadata.generation
                        && status.replicas == Some(replicas)
                        && status.available_replicas == Some(replicas)
                })
            })
        };
        tokio::time::timeout(PATIENCE, await_condition(self.deployments.clone(), NAME, ready))
            .await
            .context("the operator does not become ready")??;
        Ok(())
    }
}
