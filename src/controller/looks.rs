//! What a change of an object makes worth a look.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codeworkspace_api::{CodeRun, CodeRunStatus, CodeWorkspace, FluxKind, SecretInventory, labels};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt};

use super::dependencies::Dependency;
use super::watches::{Change, Wanted, Wants, all};
use super::{Context, Readable, workspace};

/// Turns changes of objects into looks at those whom they concern.
pub struct WantedLooks {
    workspaces: Wants<Readable<CodeWorkspace>>,
    runs: Wants<Readable<CodeRun>>,
    inventories: Wants<Readable<SecretInventory>>,
    context: Arc<Context>,
    /// The generation of each workspace that was last told to those who refer to it: they build from its spec, and its status, which
    /// changes far more often, does not concern them.
    generations: Generations<CodeWorkspace>,
    /// The same of inventories.
    inventory_generations: Generations<SecretInventory>,
    /// What each namespace's label says about pins.
    pins: Mutex<HashMap<String, Option<String>>>,
}

/// Objects that the controllers shall look at, as they wait for them.
pub struct WantedObjects {
    /// Workspaces.
    pub workspaces: Wanted<Readable<CodeWorkspace>>,
    /// Runs.
    pub runs: Wanted<Readable<CodeRun>>,
    /// Inventories.
    pub inventories: Wanted<Readable<SecretInventory>>,
}

impl WantedLooks {
    /// What the controllers work with.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Makes both ends.
    pub fn new(context: Arc<Context>) -> (Self, WantedObjects) {
        let (workspaces, wanted_workspaces) = Wants::new();
        let (runs, wanted_runs) = Wants::new();
        let (inventories, wanted_inventories) = Wants::new();
        let wants = Self {
            workspaces,
            runs,
            inventories,
            context,
            generations: Generations::default(),
            inventory_generations: Generations::default(),
            pins: Mutex::default(),
        };
        let wanted = WantedObjects {
            workspaces: wanted_workspaces,
            runs: wanted_runs,
            inventories: wanted_inventories,
        };
        (wants, wanted)
    }

    /// A workspace changed: it, those that refer to it, and its runs that wait.
    pub fn workspace(&self, change: &Change<'_, Readable<CodeWorkspace>>) {
        let stores = &self.context.stores;
        let workspace = match *change {
            Change::Any => {
                self.generations.forget();
                self.context.dependencies.retain_workspaces(|namespace, name| {
                    let workspace = ObjectRef::new(name).within(namespace);
                    stores.workspaces.get(&workspace).is_some()
                });
                self.workspaces.look_at(all(&stores.workspaces));
                self.runs.look_at(all(&stores.runs));
                return;
            }
            Change::Of(workspace) | Change::Gone(workspace) => workspace,
        };
        let this = ObjectRef::from_obj(workspace);
        if self.generations.is_news(change) {
            let namespace = workspace.namespace().unwrap_or_default();
            let stood_for = Dependency::Workspace(workspace.name_any());
            self.dependents(&namespace, &stood_for);
            if let Some(path) = workspace::path(workspace) {
                self.dependents(&namespace, &Dependency::Path(path));
            }
        }
        self.runs.look_at(waiting_for(workspace, &stores.runs));
        if matches!(change, Change::Gone(_)) {
            let namespace = workspace.namespace().unwrap_or_default();
            self.context
                .dependencies
                .retain(&namespace, &workspace.name_any(), &BTreeSet::new());
        } else {
            self.workspaces.look_at([this]);
        }
    }

    /// A run changed: it and its workspace.
    pub fn run(&self, change: &Change<'_, Readable<CodeRun>>) {
        match *change {
            Change::Any => self.runs.look_at(all(&self.context.stores.runs)),
            Change::Of(run) | Change::Gone(run) => {
                self.runs.look_at([ObjectRef::from_obj(run)]);
                if let (Ok(read), Some(namespace)) = (&run.0, run.namespace()) {
                    let workspace = ObjectRef::new(&read.spec.workspace_ref.name).within(&namespace);
                    self.workspaces.look_at([workspace]);
                }
            }
        }
    }

    /// Any template may be the one that a workspace lacks, or the one that it shall no longer have.
    pub fn template(&self) {
        self.workspaces.look_at(all(&self.context.stores.workspaces));
    }

    /// A ConfigMap changed: whoever has it as a root.
    pub fn config_map(&self, change: &Change<'_, PartialObjectMeta<ConfigMap>>) {
        match *change {
            Change::Any => self.workspaces.look_at(all(&self.context.stores.workspaces)),
            Change::Of(map) | Change::Gone(map) => {
                let dependency = Dependency::ConfigMap(map.name_any());
                self.dependents(&map.namespace().unwrap_or_default(), &dependency);
            }
        }
    }

    /// A source of Flux changed: whoever has it as a root.
    pub fn flux_source(&self, kind: FluxKind, change: &Change<'_, PartialObjectMeta<DynamicObject>>) {
        match *change {
            Change::Any => self.workspaces.look_at(all(&self.context.stores.workspaces)),
            Change::Of(source) | Change::Gone(source) => {
                let dependency = workspace::flux_dependency(kind, &source.name_any());
                self.dependents(&source.namespace().unwrap_or_default(), &dependency);
            }
        }
    }

    /// An inventory changed: the connectors of its namespace, and whoever uses them.
    pub fn inventory(&self, change: &Change<'_, Readable<SecretInventory>>) {
        match *change {
            Change::Any => {
                self.inventories.look_at(all(&self.context.stores.inventories));
                self.workspaces.look_at(all(&self.context.stores.workspaces));
            }
            Change::Of(inventory) | Change::Gone(inventory) => {
                // Its status is the operator's own.
                if !self.inventory_generations.is_news(change) {
                    return;
                }
                // A connector may be one of two, of which the other stands in another inventory.
                let inventories = all(&self.context.stores.inventories);
                let of_namespace = inventories
                    .into_iter()
                    .filter(|other| other.namespace == inventory.namespace());
                self.inventories.look_at(of_namespace);
                let namespace = inventory.namespace().unwrap_or_default();
                self.dependents(&namespace, &Dependency::Inventories);
            }
        }
    }

    /// A namespace's label says whether its workspaces may follow branches and tags.
    pub fn namespace(&self, change: &Change<'_, PartialObjectMeta<Namespace>>) {
        if let Change::Of(namespace) | Change::Gone(namespace) = *change
            && lock(&self.pins).get(&namespace.name_any()) == Some(&pin_of(namespace))
        {
            return;
        }
        let namespaces = self.context.stores.namespaces.state();
        let now: HashMap<String, Option<String>> = namespaces
            .iter()
            .map(|namespace| (namespace.name_any(), pin_of(namespace)))
            .collect();
        let former = std::mem::replace(&mut *lock(&self.pins), now.clone());
        let workspaces = all(&self.context.stores.workspaces);
        self.workspaces
            .look_at(workspaces.into_iter().filter(|workspace| {
                let namespace = workspace.namespace.as_deref().unwrap_or_default();
                former.get(namespace) != now.get(namespace)
            }));
    }

    fn dependents(&self, namespace: &str, dependency: &Dependency) {
        let dependents = self.context.dependencies.dependents(namespace, dependency);
        self.workspaces.look_at(
            dependents
                .iter()
                .map(|name| ObjectRef::new(name).within(namespace)),
        );
    }
}

/// The generation of each object that was told last.
pub struct Generations<K: Resource<DynamicType = ()> + Clone + 'static>(
    Mutex<HashMap<ObjectRef<Readable<K>>, Option<i64>>>,
);

impl<K: Resource<DynamicType = ()> + Clone + 'static> Default for Generations<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Generations<K> {
    /// Forgets all of them.
    pub fn forget(&self) {
        lock(&self.0).clear();
    }

    /// Whether an object has another spec than was told, or is gone.
    pub fn is_news(&self, change: &Change<'_, Readable<K>>) -> bool {
        match *change {
            Change::Any => true,
            Change::Gone(object) => {
                lock(&self.0).remove(&ObjectRef::from_obj(object));
                true
            }
            Change::Of(object) => {
                let generation = object.meta().generation;
                let former = lock(&self.0).insert(ObjectRef::from_obj(object), generation);
                former != Some(generation)
            }
        }
    }
}

fn pin_of(namespace: &PartialObjectMeta<Namespace>) -> Option<String> {
    namespace.labels().get(labels::REQUIRE_PIN).cloned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runs of a workspace that have not ended.
fn waiting_for(
    workspace: &Readable<CodeWorkspace>,
    runs: &Store<Readable<CodeRun>>,
) -> Vec<ObjectRef<Readable<CodeRun>>> {
    let (name, namespace) = (workspace.name_any(), workspace.namespace());
    let waits = |run: &Readable<CodeRun>| {
        run.0.as_ref().is_ok_and(|run| {
            run.spec.workspace_ref.name == name
                && run.namespace() == namespace
                && !run.status.as_ref().is_some_and(CodeRunStatus::is_finished)
        })
    };
    let runs = runs.state();
    runs.iter()
        .filter(|run| waits(run))
        .map(|run| ObjectRef::from_obj(run.as_ref()))
        .collect()
}
