//! What the watches know, for all who ask.

use codeworkspace_api::{CodeRun, CodeWorkspace, RunnerTemplate, SecretInventory};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::store::{Writer, WriterDropped};
use kube::runtime::reflector::{self, Store};

use super::Readable;

/// Read handles. Clones share what is known.
#[derive(Clone, Debug)]
pub struct Stores {
    /// Every workspace.
    pub workspaces: Store<Readable<CodeWorkspace>>,
    /// Every run.
    pub runs: Store<Readable<CodeRun>>,
    /// Every runner template.
    pub templates: Store<Readable<RunnerTemplate>>,
    /// Every inventory of secrets, which holds none.
    pub inventories: Store<Readable<SecretInventory>>,
    /// Labels of the namespaces.
    pub namespaces: Store<PartialObjectMeta<Namespace>>,
}

/// Write handles, for the watches.
#[derive(Debug)]
pub struct Writers {
    /// Every workspace.
    pub workspaces: Writer<Readable<CodeWorkspace>>,
    /// Every run.
    pub runs: Writer<Readable<CodeRun>>,
    /// Every runner template.
    pub templates: Writer<Readable<RunnerTemplate>>,
    /// Every inventory of secrets.
    pub inventories: Writer<Readable<SecretInventory>>,
    /// Labels of the namespaces.
    pub namespaces: Writer<PartialObjectMeta<Namespace>>,
}

impl Stores {
    /// Makes both ends, empty.
    pub fn new() -> (Self, Writers) {
        let (workspaces, workspaces_writer) = reflector::store();
        let (runs, runs_writer) = reflector::store();
        let (templates, templates_writer) = reflector::store();
        let (inventories, inventories_writer) = reflector::store();
        let (namespaces, namespaces_writer) = reflector::store();
        let stores = Self {
            workspaces,
            runs,
            templates,
            inventories,
            namespaces,
        };
        let writers = Writers {
            workspaces: workspaces_writer,
            runs: runs_writer,
            templates: templates_writer,
            inventories: inventories_writer,
            namespaces: namespaces_writer,
        };
        (stores, writers)
    }

    /// Waits until everything was listed once. Fails when the watches end before that.
    pub async fn wait_until_ready(&self) -> Result<(), WriterDropped> {
        self.workspaces.wait_until_ready().await?;
        self.runs.wait_until_ready().await?;
        self.templates.wait_until_ready().await?;
        self.inventories.wait_until_ready().await?;
        self.namespaces.wait_until_ready().await
    }
}
