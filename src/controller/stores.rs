//! What the watches know, for all who ask.

use codeworkspace_api::{
    CodeInterpreter, CodeRun, CodeSession, CodeWorkspace, RunnerTemplate, SecretInventory,
};
use k8s_openapi::api::core::v1::{Namespace, Pod};
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
    /// Every interpreter.
    pub interpreters: Store<Readable<CodeInterpreter>>,
    /// Every session.
    pub sessions: Store<Readable<CodeSession>>,
    /// Every pod of a session, waiting or claimed, as far as anybody here reads it.
    pub session_pods: Store<Pod>,
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
    /// Every interpreter.
    pub interpreters: Writer<Readable<CodeInterpreter>>,
    /// Every session.
    pub sessions: Writer<Readable<CodeSession>>,
    /// Every pod of a session.
    pub session_pods: Writer<Pod>,
}

impl Stores {
    /// Makes both ends, empty.
    pub fn new() -> (Self, Writers) {
        let (workspaces, workspaces_writer) = reflector::store();
        let (runs, runs_writer) = reflector::store();
        let (templates, templates_writer) = reflector::store();
        let (inventories, inventories_writer) = reflector::store();
        let (namespaces, namespaces_writer) = reflector::store();
        let (interpreters, interpreters_writer) = reflector::store();
        let (sessions, sessions_writer) = reflector::store();
        let (session_pods, session_pods_writer) = reflector::store();
        let stores = Self {
            workspaces,
            runs,
            templates,
            inventories,
            namespaces,
            interpreters,
            sessions,
            session_pods,
        };
        let writers = Writers {
            workspaces: workspaces_writer,
            runs: runs_writer,
            templates: templates_writer,
            inventories: inventories_writer,
            namespaces: namespaces_writer,
            interpreters: interpreters_writer,
            sessions: sessions_writer,
            session_pods: session_pods_writer,
        };
        (stores, writers)
    }

    /// Waits until everything was listed once, sessions with all that belongs to them only if somebody looks after them. Fails when
    /// the watches end before that.
    pub async fn wait_until_ready(&self, with_sessions: bool) -> Result<(), WriterDropped> {
        self.workspaces.wait_until_ready().await?;
        self.runs.wait_until_ready().await?;
        self.templates.wait_until_ready().await?;
        self.inventories.wait_until_ready().await?;
        self.namespaces.wait_until_ready().await?;
        if with_sessions {
            self.interpreters.wait_until_ready().await?;
            self.sessions.wait_until_ready().await?;
            self.session_pods.wait_until_ready().await?;
        }
        Ok(())
    }
}
