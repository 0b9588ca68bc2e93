use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use codeworkspace_api::{CodeRun, CodeRunSpec, CodeRunStatus, CodeWorkspace, WorkspaceReference};
use futures::FutureExt as _;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::RwLock;

use super::{Github, Repository, account, leaks};

/// Longest that anything may take which a story waits for: a pod's start on a busy machine, and some scans.
const PATIENCE: Duration = Duration::from_mins(2);

/// Marks the namespaces of stories. The value is the story's name, as far as it fits.
const LABEL: &str = "codeworkspace.dev/e2e";

/// Held by each story while it is told: together with others, or alone.
static STAGE: RwLock<()> = RwLock::const_new(());

/// Tells a story side by side with others.
pub async fn story(tell: impl AsyncFnOnce(&Story) -> Result<()>) {
    let _shared = STAGE.read().await;
    Story::begin().await.unwrap().tell(tell).await;
}

/// Tells a story that disturbs what others rely on, and so is told alone.
pub async fn alone(tell: impl AsyncFnOnce(&Story) -> Result<()>) {
    let _exclusive = STAGE.write().await;
    Story::begin().await.unwrap().tell(tell).await;
}

/// A story with its namespace.
pub struct Story {
    pub client: Client,
    pub namespace: String,
    pub name: String,
    pub began: Timestamp,
}

impl Story {
    async fn begin() -> Result<Self> {
        let client = Client::try_default()
            .await
            .context("KUBECONFIG names no cluster: run `cargo xtask test e2e`")?;
        // The test runner names each thread by its test.
        let name = std::thread::current().name().unwrap_or("story").to_owned();
        let began = Timestamp::now();
        let namespace = namespace(&client, &name).await?;
        Ok(Self {
            client,
            namespace,
            name,
            began,
        })
    }

    async fn tell(self, tell: impl AsyncFnOnce(&Self) -> Result<()>) {
        // Boxed: a story is a large future.
        let outcome = AssertUnwindSafe(Box::pin(tell(&self))).catch_unwind().await;
        match outcome {
            Ok(Ok(())) => {
                let leaks = leaks(&self).await.unwrap();
                if !leaks.is_empty() {
                    account::write(&self, "a secret was written down").await;
                    panic!("a secret was written down: {leaks:#?}");
                }
                self.end().await;
            }
            Ok(Err(error)) => {
                account::write(&self, &format!("{error:#}")).await;
                panic!("{error:#}");
            }
            Err(panicked) => {
                account::write(&self, "an assertion failed").await;
                resume_unwind(panicked);
            }
        }
    }

    /// Deletes the namespace. A story that failed leaves it for people to look at.
    async fn end(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces
            .delete(&self.namespace, &DeleteParams::background())
            .await
            .unwrap();
    }

    /// Another namespace, which the next run of all stories removes.
    pub async fn other_namespace(&self) -> Result<Self> {
        let namespace = namespace(&self.client, &self.name).await?;
        Ok(Self {
            client: self.client.clone(),
            namespace,
            name: self.name.clone(),
            began: self.began,
        })
    }

    /// Objects of one kind in the story's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A repository of the story's own on the server that plays GitHub.
    pub async fn repository(&self) -> Result<Repository> {
        Github::new(self.client.clone()).create(&self.namespace).await
    }

    /// Applies a workspace with this `spec`, whole: fields that were there before and are not in it any more go away.
    pub async fn apply(&self, name: &str, spec: &Value) -> Result<CodeWorkspace> {
        self.apply_object(name, json!({"spec": spec})).await
    }

    /// Applies an object with these fields, whole.
    pub async fn apply_object<K>(&self, name: &str, mut fields: Value) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned,
    {
        fields["apiVersion"] = K::api_version(&()).into();
        fields["kind"] = K::kind(&()).into();
        fields["metadata"]["name"] = name.into();
        let parameters = PatchParams::apply("story").force();
        Ok(self.api().patch(name, &parameters, &Patch::Apply(fields)).await?)
    }

    /// Creates an object.
    pub async fn create<K>(&self, object: &K) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + Serialize + DeserializeOwned,
    {
        Ok(self.api().create(&PostParams::default(), object).await?)
    }

    /// Creates a run by hand. It stays until the story's end, however short the operator's own time to live is.
    pub async fn create_run(&self, name: &str, workspace: &str, args: &[&str]) -> Result<CodeRun> {
        self.create(&CodeRun::new(
            name,
            CodeRunSpec {
                workspace_ref: WorkspaceReference {
                    name: workspace.to_owned(),
                },
                args: args.iter().map(|arg| (*arg).to_owned()).collect(),
                timeout_seconds: None,
                ttl_seconds_after_finished: Some(3600),
                digest: None,
            },
        ))
        .await
    }

    /// Waits until an object is as `condition` wants it.
    pub async fn until<K>(&self, name: &str, what: &str, condition: impl Fn(&K) -> bool) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + Serialize + DeserializeOwned + Send + 'static,
    {
        self.within(PATIENCE, name, what, condition).await
    }

    /// Waits until an object is as `condition` wants it, and fails when that takes too long.
    pub async fn within<K>(
        &self,
        time: Duration,
        name: &str,
        what: &str,
        condition: impl Fn(&K) -> bool,
    ) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + Serialize + DeserializeOwned + Send + 'static,
    {
        let wanted = |object: Option<&K>| object.is_some_and(&condition);
        let waiting = await_condition(self.api::<K>(), name, wanted);
        if let Ok(met) = tokio::time::timeout(time, waiting).await {
            return met?.with_context(|| format!("{name} was deleted"));
        }
        let last = self.api::<K>().get_opt(name).await?;
        bail!(
            "after {} s still not so: {} {name} {what}; it is {}",
            time.as_secs(),
            K::kind(&()),
            serde_json::to_string_pretty(&last)?
        )
    }

    /// Waits until an object is gone.
    pub async fn until_gone<K>(&self, name: &str) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let gone = await_condition(self.api::<K>(), name, |object: Option<&K>| object.is_none());
        tokio::time::timeout(PATIENCE, gone).await.with_context(|| {
            format!(
                "after {} s {} {name} is still there",
                PATIENCE.as_secs(),
                K::kind(&())
            )
        })??;
        Ok(())
    }

    /// Waits until the operator has looked at the workspace as it stands now, and knows whether it is ready.
    pub async fn looked_at(&self, workspace: &CodeWorkspace) -> Result<CodeWorkspace> {
        let generation = workspace.metadata.generation;
        self.until(
            &workspace.name_any(),
            "was looked at",
            |workspace: &CodeWorkspace| {
                workspace.status.as_ref().is_some_and(|status| {
                    status.observed_generation >= generation
                        && status
                            .conditions
                            .iter()
                            .any(|condition| condition.type_ == "Ready" && condition.status != "Unknown")
                })
            },
        )
        .await
    }

    /// Waits until the workspace is ready and its own run has ended.
    pub async fn ran(&self, workspace: &CodeWorkspace) -> Result<(CodeWorkspace, CodeRun)> {
        self.ran_again(workspace, None).await
    }

    /// Waits until the workspace is ready and a run of its own has ended that is another one than `former`.
    pub async fn ran_again(
        &self,
        workspace: &CodeWorkspace,
        former: Option<&str>,
    ) -> Result<(CodeWorkspace, CodeRun)> {
        let generation = workspace.metadata.generation;
        let workspace = self
            .until(&workspace.name_any(), "ran", |workspace: &CodeWorkspace| {
                workspace.status.as_ref().is_some_and(|status| {
                    status.observed_generation >= generation
                        && status
                            .last_run
                            .as_ref()
                            .is_some_and(|last| last.outcome.is_some() && Some(last.name.as_str()) != former)
                })
            })
            .await?;
        let name = workspace
            .status
            .as_ref()
            .and_then(|status| status.last_run.as_ref())
            .map(|last| last.name.clone());
        let run = self.api().get(&name.context("no run")?).await?;
        Ok((workspace, run))
    }

    /// Waits until a run has ended.
    pub async fn ended(&self, name: &str) -> Result<CodeRun> {
        self.until(name, "ended", |run: &CodeRun| {
            run.status.as_ref().is_some_and(CodeRunStatus::is_finished)
        })
        .await
    }

    /// Waits until the body of a run is at work, and gives its pod.
    pub async fn body_runs(&self, name: &str) -> Result<Pod> {
        self.until(name, "runs its body", |pod: &Pod| {
            let containers = pod
                .status
                .as_ref()
                .and_then(|status| status.container_statuses.as_ref());
            containers.into_iter().flatten().any(|container| {
                container
                    .state
                    .as_ref()
                    .is_some_and(|state| state.running.is_some())
            })
        })
        .await
    }

    /// All objects of one kind in the namespace.
    pub async fn list<K>(&self) -> Result<Vec<K>>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned,
    {
        Ok(self.api().list(&ListParams::default()).await?.items)
    }

    /// Fails if anything was started in the namespace.
    pub async fn nothing_started(&self) -> Result<()> {
        let pods: Vec<_> = self
            .list::<Pod>()
            .await?
            .iter()
            .map(kube::ResourceExt::name_any)
            .collect();
        let runs: Vec<_> = self
            .list::<CodeRun>()
            .await?
            .iter()
            .map(kube::ResourceExt::name_any)
            .collect();
        assert_eq!((pods, runs), (Vec::new(), Vec::new()), "pods and runs");
        Ok(())
    }
}

async fn namespace(client: &Client, story: &str) -> Result<String> {
    let label: String = story
        .rsplit("::")
        .next()
        .unwrap_or(story)
        .chars()
        .take(63)
        .collect();
    let namespace: Namespace = serde_json::from_value(json!({
        "metadata": {
            "generateName": "e2e-",
            "labels": {
                LABEL: label.trim_end_matches('_'),
                "pod-security.kubernetes.io/enforce": "restricted",
            },
        },
    }))?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    Ok(namespaces
        .create(&PostParams::default(), &namespace)
        .await?
        .name_any())
}
