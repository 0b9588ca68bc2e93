//! ConfigMaps as a root: each key is a file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use codeworkspace_api::{RootStatus, reason};
use codeworkspace_bundle::{BundlePath, Entry, FileTree};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use super::definition::MapDefinition;
use super::{Content, Root, digest};
use crate::controller::Dependency;
use crate::controller::fault::{Fault, Healing};
use crate::controller::workspace::lookup::Lookup;

/// Bytes of all ConfigMaps that are read at one look at a workspace.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a ConfigMap holds, text or not.
pub type Keys = BTreeMap<String, Bytes>;

fn keys(found: ConfigMap) -> Keys {
    let text = found.data.into_iter().flatten();
    let binary = found.binary_data.into_iter().flatten();
    text.map(|(key, text)| (key, Bytes::from(text)))
        .chain(binary.map(|(key, bytes)| (key, Bytes::from(bytes.0))))
        .collect()
}

/// Reads all ConfigMaps. They are small, so looking up is reading.
pub async fn look_up(maps: &[MapDefinition], lookup: &Lookup<'_>) -> Result<Root, Fault> {
    let found = try_join_all(
        maps.iter()
            .map(|map| lookup.config_map(&map.name, get(map, lookup))),
    )
    .await?;
    let mut files = FileTree::new();
    for (index, (map, found)) in maps.iter().zip(found).enumerate() {
        add(&mut files, index, map, &found)?;
    }
    let files = Arc::new(files);
    let identity = digest(Arc::clone(&files), lookup).await?;
    let names: Vec<&str> = maps.iter().map(|map| map.name.as_str()).collect();
    let status = RootStatus {
        kind: "configMaps".to_owned(),
        summary: names.join(", "),
        revision: Some(identity.clone()),
    };
    Ok(Root::new(identity, status, Content::Here(files)))
}

async fn get(map: &MapDefinition, lookup: &Lookup<'_>) -> Result<Arc<Keys>, Fault> {
    lookup.depends_on(Dependency::ConfigMap(map.name.clone()));
    let api: Api<ConfigMap> = Api::namespaced(lookup.client(), lookup.namespace());
    match api.get_opt(&map.name).await {
        Ok(Some(found)) => {
            let keys = keys(found);
            let bytes = keys.values().map(|content| content.len() as u64).sum();
            if lookup.read(bytes) <= BYTES_MAX {
                return Ok(Arc::new(keys));
            }
            Err(Fault {
                class: reason::BUNDLE_SIZE_ERROR,
                ..Fault::unresolved(
                    "TooLarge",
                    Healing::ByEdit,
                    format!(
                        "root.configMaps: the ConfigMaps that this workspace and those it refers to read have more than {BYTES_MAX} \
                         bytes together: take large files from a repository or a volume"
                    ),
                )
            })
        }
        Ok(None) => Err(Fault::unresolved(
            reason::ROOT_NOT_FOUND,
            Healing::ByOthers,
            format!(
                "root.configMaps: there is no ConfigMap {} in this namespace; it is read as soon as it is made",
                map.name
            ),
        )),
        Err(error) => Err(Fault::unresolved(
            reason::ROOT_NOT_READY,
            Healing::ByItself,
            format!("root.configMaps: ConfigMap {} cannot be read: {error}", map.name),
        )),
    }
}

/// Adds the files of one ConfigMap to those of the ones before.
fn add(files: &mut FileTree, index: usize, map: &MapDefinition, found: &Keys) -> Result<(), Fault> {
    let field = format!("root.configMaps[{index}]");
    let refused = |message: String| {
        Fault::unresolved(
            reason::ROOT_REFUSED,
            Healing::ByOthers,
            format!("{field}: ConfigMap {}: {message}", map.name),
        )
    };
    // Contents are shared, not copied.
    let mut contents = found.clone();
    for (position, (key, path)) in map.items.iter().flatten().enumerate() {
        let Some(content) = contents.get(key) else {
            let there: Vec<&str> = contents.keys().map(String::as_str).take(5).collect();
            let message = format!(
                "{field}.items[{position}].key: ConfigMap {} has no key {key}; it has {}",
                map.name,
                if there.is_empty() {
                    "none besides".to_owned()
                } else {
                    there.join(", ")
                }
            );
            return Err(Fault::unresolved(
                reason::KEY_NOT_FOUND,
                Healing::ByOthers,
                message,
            ));
        };
        insert(files, path.clone(), content.clone()).map_err(refused)?;
    }
    let placed = map.items.iter().flatten();
    let placed: BTreeSet<&String> = placed.map(|(key, _)| key).collect();
    contents.retain(|key, _| !placed.contains(key));
    for (key, content) in contents {
        let path: BundlePath = key
            .parse()
            .map_err(|error| refused(format!("key {key} is no path: {error}")))?;
        insert(files, path, content).map_err(refused)?;
    }
    Ok(())
}

fn insert(files: &mut FileTree, path: BundlePath, content: Bytes) -> Result<(), String> {
    let twice = format!("path {path} is given twice: leave one of them out, or map its key to another path");
    match files.insert(path, Entry::from_contents(content)) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(twice),
        Err(error) => Err(error.to_string()),
    }
}
