//! The only step that reads: the run's pod, its workspace, and the run that its workspace speaks of.

use codeworkspace_api::{CodeRun, CodeWorkspace};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt as _};

use crate::controller::workspace::without_spec;
use crate::controller::{Context, Error, Readable};

/// What the world outside the object looks like.
#[derive(Debug)]
pub struct World {
    /// The pod that bears the run's name.
    pub pod: Option<Pod>,
    /// The workspace.
    pub workspace: Option<CodeWorkspace>,
    /// The run of the workspace's current key.
    pub current: Option<CodeRun>,
}

/// The run as the API server has it now. The watch lags behind this operator's own writes: a run that seems to have no pod, or no
/// outcome yet, may have been given one a moment ago.
pub async fn current(context: &Context, run: &CodeRun) -> Result<Option<CodeRun>, Error> {
    let api: Api<CodeRun> = Api::namespaced(context.client.clone(), &run.namespace().unwrap_or_default());
    let found = api.get_opt(&run.name_any()).await?;
    Ok(found.filter(|found| found.uid() == run.uid()))
}

/// Asks the API server itself, not a cache: whether a pod is there decides whether one is made.
pub async fn dereference(context: &Context, run: &CodeRun) -> Result<World, Error> {
    let namespace = run.namespace().unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let workspaces: Api<Readable<CodeWorkspace>> = Api::namespaced(context.client.clone(), &namespace);
    let name = run.name_any();
    let (pod, workspace) = futures::future::try_join(
        pods.get_opt(&name),
        workspaces.get_opt(&run.spec.workspace_ref.name),
    )
    .await?;
    // Of one that cannot be read, the status says why nothing starts, and which run is the current one.
    let workspace =
        workspace.map(|workspace| workspace.0.unwrap_or_else(|unreadable| without_spec(&unreadable)));
    let current = workspace
        .as_ref()
        .and_then(|workspace| workspace.status.as_ref()?.last_run.as_ref())
        .map(|last| last.name.clone())
        .filter(|current| *current != name);
    let current = match current {
        Some(current) => {
            Api::<CodeRun>::namespaced(context.client.clone(), &namespace)
                .get_opt(&current)
                .await?
        }
        None => None,
    };
    Ok(World {
        pod,
        workspace,
        current,
    })
}
