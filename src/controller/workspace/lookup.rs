//! What one look at a workspace asks the world, each thing once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codeworkspace_api::{CodeWorkspace, labels, reason};
use codeworkspace_bundle::NodeKey;
use codeworkspace_bundle::code::{GitReference, GithubSource};
use codeworkspace_source::{Access, Github, LinkPolicy, Resolution};
use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt as _};
use tokio::sync::OnceCell;

use super::manifest::links;
use super::root::config_maps::Keys;
use super::root::{Root, RootDefinition};
use crate::controller::connector::{self, GITHUB};
use crate::controller::fault::{Fault, Healing};
use crate::controller::{Context, Dependency, Readable};

/// A root, once it was looked up.
type LookedUpRoot = OnceCell<Result<Arc<Root>, Fault>>;

/// A ConfigMap, once it was read.
type ReadConfigMap = OnceCell<Result<Arc<Keys>, Fault>>;

/// One look at a workspace.
pub struct Lookup<'a> {
    context: &'a Context,
    namespace: String,
    workspace: &'a CodeWorkspace,
    /// Whether somebody asked for a look at everything, however lately it was looked at.
    refresh: bool,
    access: OnceCell<Result<Access, Fault>>,
    roots: Mutex<BTreeMap<String, Arc<LookedUpRoot>>>,
    dependencies: Mutex<BTreeSet<Dependency>>,
    /// Why the roots could not be read in which a reference would have been looked for first.
    unread: Mutex<BTreeMap<NodeKey, Fault>>,
    /// Each ConfigMap is read once, whoever's root it is in.
    config_maps: Mutex<BTreeMap<String, Arc<ReadConfigMap>>>,
    /// Bytes of ConfigMaps, and steps of globs, so far.
    bytes: AtomicU64,
    steps: AtomicU64,
    /// How long an answer is still believed that somebody asked to have anew.
    postponed: Mutex<Option<Duration>>,
}

/// A workspace of the namespace.
pub enum Known<'a> {
    /// The one that is being looked at.
    This(&'a CodeWorkspace),
    /// Another one.
    Other(Arc<Readable<CodeWorkspace>>),
}

impl Known<'_> {
    /// The workspace, unless it cannot be read.
    pub fn read(&self) -> Option<&CodeWorkspace> {
        match self {
            Self::This(workspace) => Some(workspace),
            Self::Other(other) => other.0.as_ref().ok(),
        }
    }
}

impl<'a> Lookup<'a> {
    /// Begins a look. Everything is asked again when the workspace's annotation has a value that was not acted upon yet.
    pub fn new(context: &'a Context, workspace: &'a CodeWorkspace) -> Self {
        let handled = workspace
            .status
            .as_ref()
            .and_then(|status| status.last_handled_reconcile_at.as_ref());
        let asked = workspace.annotations().get(labels::RECONCILE_AT);
        Self {
            context,
            namespace: workspace.namespace().unwrap_or_default(),
            workspace,
            refresh: asked.is_some() && asked != handled,
            access: OnceCell::new(),
            roots: Mutex::default(),
            dependencies: Mutex::default(),
            unread: Mutex::default(),
            config_maps: Mutex::default(),
            bytes: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            postponed: Mutex::default(),
        }
    }

    /// A ConfigMap, read once for all roots that it is in.
    pub async fn config_map(
        &self,
        name: &str,
        read: impl Future<Output = Result<Arc<Keys>, Fault>>,
    ) -> Result<Arc<Keys>, Fault> {
        let cell = {
            let mut read = self.config_maps.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(read.entry(name.to_owned()).or_default())
        };
        cell.get_or_init(|| read).await.clone()
    }

    /// Counts bytes that were read, and returns how many there are by now.
    pub fn read(&self, bytes: u64) -> u64 {
        self.bytes
            .fetch_add(bytes, Ordering::Relaxed)
            .saturating_add(bytes)
    }

    /// Counts steps that globs take, and returns how many there are by now.
    pub fn spend(&self, steps: u64) -> u64 {
        self.steps
            .fetch_add(steps, Ordering::Relaxed)
            .saturating_add(steps)
    }

    /// Notes why the root of a reference's context could not be read.
    pub fn note_unread(&self, key: &NodeKey, fault: Fault) {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        unread.insert(key.clone(), fault);
    }

    /// Why the root of a reference's context could not be read.
    pub fn unread(&self, key: &NodeKey) -> Option<Fault> {
        let unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        unread.get(key).cloned()
    }

    /// How long it takes until everything can be asked again, when somebody wants that and some answers are still too young.
    pub fn postponed(&self) -> Option<Duration> {
        *self.postponed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The namespace of the workspace, and of everything that it may refer to.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The API server.
    pub fn client(&self) -> Client {
        self.context.client.clone()
    }

    /// What all looks share.
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// GitHub.
    pub fn github(&self) -> &'a Github {
        &self.context.github
    }

    /// Every workspace of the namespace, this one as it is being looked at.
    pub fn workspaces(&self) -> Vec<Arc<Readable<CodeWorkspace>>> {
        let this = Arc::new(Readable(Ok(self.workspace.clone())));
        let others = self.context.stores.workspaces.state();
        let others = others.into_iter().filter(|other| {
            other.namespace().as_deref() == Some(&self.namespace)
                && other.name_any() != self.workspace.name_any()
        });
        others.chain([this]).collect()
    }

    /// The workspace that is being looked at, whoever's root is read for it.
    pub fn asker(&self) -> &'a CodeWorkspace {
        self.workspace
    }

    /// A workspace of the namespace, this one as it is being looked at.
    pub fn workspace(&self, name: &str) -> Option<Known<'a>> {
        if name == self.workspace.name_any() {
            return Some(Known::This(self.workspace));
        }
        let key = ObjectRef::new(name).within(&self.namespace);
        self.context.stores.workspaces.get(&key).map(Known::Other)
    }

    /// What becomes of links is said by the object that a source stands in.
    pub fn links(&self, name: &str) -> LinkPolicy {
        let workspace = self.workspace(name);
        let workspace = workspace.as_ref().and_then(Known::read);
        workspace.map_or(LinkPolicy::Keep, |workspace| links(&workspace.spec))
    }

    /// Every root that was looked up, whoever's it is.
    pub fn looked_up_roots(&self) -> Vec<Arc<Root>> {
        let roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let roots = roots.values().filter_map(|root| root.get()?.as_ref().ok());
        roots.cloned().collect()
    }

    /// Notes what the workspace depends on. To be called before it is read.
    pub fn depends_on(&self, dependency: Dependency) {
        self.context
            .dependencies
            .add(&self.namespace, &self.workspace.name_any(), dependency.clone());
        self.dependencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(dependency);
    }

    /// Forgets what the workspace depended on at former looks.
    pub fn finish(&self) {
        let now = self.dependencies.lock().unwrap_or_else(PoisonError::into_inner);
        self.context
            .dependencies
            .retain(&self.namespace, &self.workspace.name_any(), &now);
    }

    /// By what right repositories are read: the namespace's connector, or nobody's.
    pub async fn access(&self) -> Result<Access, Fault> {
        self.access.get_or_init(|| self.read_access()).await.clone()
    }

    async fn read_access(&self) -> Result<Access, Fault> {
        self.depends_on(Dependency::Inventories);
        let found = connector::of_driver(&self.context.stores.inventories, &self.namespace, GITHUB)?;
        match connector::the_only(&found)? {
            None => Ok(Access::Anonymous),
            Some(found) => {
                let read = connector::credential(&self.context.client, &self.namespace, found);
                read.await.map(|(_, credential)| Access::Credential(credential))
            }
        }
    }

    /// The commit of a source, unless the cluster or the namespace wants it pinned.
    pub async fn resolve(
        &self,
        field: &str,
        source: &GithubSource,
        access: &Access,
    ) -> Result<Resolution, Fault> {
        if self.pin_is_required() && !matches!(source.reference, GitReference::Commit(_)) {
            let message = format!(
                "{field}: {}@{} is no whole commit id, and only those are allowed here (requirePin): write the 40 hex digits of a \
                 commit as `ref`",
                source.repository, source.reference
            );
            return Err(Fault::unresolved(reason::PIN_REQUIRED, Healing::ByEdit, message));
        }
        if self.refresh
            && let Some(wait) = self.context.github.refresh(source, access)
        {
            let mut postponed = self.postponed.lock().unwrap_or_else(PoisonError::into_inner);
            *postponed = Some(postponed.map_or(wait, |known| known.max(wait)));
        }
        self.context
            .github
            .resolve(source, access)
            .await
            .map_err(|error| Fault::source(field, &error))
    }

    /// The root of a workspace of the namespace, looked up once for all who ask.
    pub async fn root(&self, owner: &CodeWorkspace, definition: &RootDefinition) -> Result<Arc<Root>, Fault> {
        let root = {
            let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(roots.entry(owner.name_any()).or_default())
        };
        let look_up = async { Root::look_up(definition, owner, self).await.map(Arc::new) };
        root.get_or_init(|| look_up).await.clone()
    }

    fn pin_is_required(&self) -> bool {
        let namespace = self
            .context
            .stores
            .namespaces
            .get(&ObjectRef::new(&self.namespace));
        self.context.configuration.require_pin
            || namespace.is_some_and(|namespace| {
                namespace.labels().get(labels::REQUIRE_PIN).map(String::as_str) == Some("true")
            })
    }
}
