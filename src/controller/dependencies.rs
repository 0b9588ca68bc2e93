//! Which workspaces look at what, so that a change of it reaches them at once, however deep it lies.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use codeworkspace_bundle::code::WorkspacePath;

/// Something in a namespace that workspaces of the same namespace look at. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependency {
    /// Whatever workspace stands for a path.
    Path(WorkspacePath),
    /// A workspace by its name.
    Workspace(String),
    /// A ConfigMap.
    ConfigMap(String),
    /// The inventories of the namespace.
    Inventories,
    /// A Flux source, as `Kind/name`.
    FluxSource(String),
}

/// The dependencies of every workspace that was looked at. Lost with the process, and known again once each workspace was looked
/// at, which is the first thing that happens.
#[derive(Debug, Default)]
pub struct Dependencies(Mutex<HashMap<String, Namespace>>);

#[derive(Debug, Default)]
struct Namespace {
    of: HashMap<String, BTreeSet<Dependency>>,
    dependents: HashMap<Dependency, BTreeSet<String>>,
}

impl Dependencies {
    /// Notes that a workspace looks at something. To be called before it is read: then a change is either seen by the reading, or
    /// leads to another look.
    pub fn add(&self, namespace: &str, workspace: &str, dependency: Dependency) {
        let mut namespaces = self.namespaces();
        let namespace = namespaces.entry(namespace.to_owned()).or_default();
        let dependents = namespace.dependents.entry(dependency.clone()).or_default();
        dependents.insert(workspace.to_owned());
        namespace
            .of
            .entry(workspace.to_owned())
            .or_default()
            .insert(dependency);
    }

    /// Forgets everything that a workspace looked at except what it looks at now.
    pub fn retain(&self, namespace: &str, workspace: &str, now: &BTreeSet<Dependency>) {
        let mut namespaces = self.namespaces();
        let Some(in_namespace) = namespaces.get_mut(namespace) else {
            return;
        };
        let of = in_namespace.of.remove(workspace).unwrap_or_default();
        for gone in of.difference(now) {
            if let Some(dependents) = in_namespace.dependents.get_mut(gone) {
                dependents.remove(workspace);
                if dependents.is_empty() {
                    in_namespace.dependents.remove(gone);
                }
            }
        }
        if !now.is_empty() {
            in_namespace.of.insert(workspace.to_owned(), now.clone());
        }
        if in_namespace.of.is_empty() {
            namespaces.remove(namespace);
        }
    }

    /// Forgets workspaces that are gone.
    pub fn retain_workspaces(&self, exists: impl Fn(&str, &str) -> bool) {
        let gone: Vec<(String, String)> = self
            .namespaces()
            .iter()
            .flat_map(|(namespace, of)| of.of.keys().map(move |name| (namespace.clone(), name.clone())))
            .filter(|(namespace, name)| !exists(namespace, name))
            .collect();
        for (namespace, name) in gone {
            self.retain(&namespace, &name, &BTreeSet::new());
        }
    }

    /// Names of the workspaces that look at something.
    pub fn dependents(&self, namespace: &str, dependency: &Dependency) -> BTreeSet<String> {
        self.namespaces()
            .get(namespace)
            .and_then(|namespace| namespace.dependents.get(dependency))
            .cloned()
            .unwrap_or_default()
    }

    fn namespaces(&self) -> MutexGuard<'_, HashMap<String, Namespace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().copied().map(str::to_owned).collect()
    }

    #[test]
    fn a_change_reaches_those_who_look_at_it_and_nobody_else() {
        let dependencies = Dependencies::default();
        let map = Dependency::ConfigMap("files".to_owned());
        dependencies.add("team", "tool", map.clone());
        dependencies.add("team", "other", map.clone());
        dependencies.add("elsewhere", "tool", map.clone());
        dependencies.add("team", "tool", Dependency::Inventories);
        assert_eq!(dependencies.dependents("team", &map), names(&["other", "tool"]));
        assert_eq!(dependencies.dependents("elsewhere", &map), names(&["tool"]));
        let path = Dependency::Path("./files".parse().unwrap());
        assert_eq!(dependencies.dependents("team", &path), names(&[]));
    }

    #[test]
    fn what_a_workspace_no_longer_looks_at_is_forgotten() {
        let dependencies = Dependencies::default();
        let map = Dependency::ConfigMap("files".to_owned());
        dependencies.add("team", "tool", map.clone());
        dependencies.add("team", "tool", Dependency::Inventories);
        dependencies.retain("team", "tool", &BTreeSet::from([Dependency::Inventories]));
        assert_eq!(dependencies.dependents("team", &map), names(&[]));
        assert_eq!(
            dependencies.dependents("team", &Dependency::Inventories),
            names(&["tool"])
        );
        dependencies.retain("team", "tool", &BTreeSet::new());
        assert!(dependencies.namespaces().is_empty());
    }

    #[test]
    fn workspaces_that_are_gone_are_forgotten() {
        let dependencies = Dependencies::default();
        for workspace in ["here", "gone"] {
            dependencies.add("team", workspace, Dependency::Inventories);
        }
        dependencies.retain_workspaces(|namespace, name| (namespace, name) == ("team", "here"));
        assert_eq!(
            dependencies.dependents("team", &Dependency::Inventories),
            names(&["here"])
        );
    }
}
