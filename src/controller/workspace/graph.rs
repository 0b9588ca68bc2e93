//! What a workspace refers to: the references are followed until every source is one that has files of its own.

use std::borrow::Borrow;
use std::sync::Arc;

use codeworkspace_api::CodeWorkspace;
use codeworkspace_bundle::expand::workspace_keys;
use codeworkspace_bundle::manifest::block_files;
use codeworkspace_bundle::{
    self as bundle, Catalog, Expanded, Expansion, FileTree, Lookup as Answer, NodeKey, expand, nearest_paths,
    read_manifest,
};
use futures::future::join_all;
use kube::ResourceExt as _;

use super::lookup::Lookup;
use super::manifest::{Manifest, blocks, links};
use super::place::path;
use super::root::{Root, define_root};
use crate::controller::fault::Fault;
use crate::controller::{Dependency, Readable};

/// Parses a workspace. A root is read only when a block stands in a file of it.
pub async fn read(lookup: &Lookup<'_>, workspace: &CodeWorkspace) -> Manifest {
    match files_of_blocks(lookup, workspace).await {
        Ok(files) => Manifest::parse(workspace, Ok(files.as_deref())),
        Err(fault) => Manifest::parse(workspace, Err(fault)),
    }
}

/// Replaces every reference of a workspace by the sources of what it refers to.
pub async fn follow(lookup: &Lookup<'_>, workspace: &CodeWorkspace, manifest: &Manifest) -> Expanded {
    let name = workspace.name_any();
    let mut catalog = Catalog::new();
    loop {
        match expand(&manifest.blocks, &name, &catalog) {
            Expansion::Complete(expanded) => return *expanded,
            Expansion::Wanted(keys) => {
                let answers = keys.into_iter().map(async |key| {
                    let answer = find(lookup, &key).await;
                    (key, answer)
                });
                for (key, answer) in join_all(answers).await {
                    catalog.insert(key, answer);
                }
            }
        }
    }
}

/// What a path leads to: a manifest in the root of the object that refers to it, else an object of the namespace.
async fn find(lookup: &Lookup<'_>, key: &NodeKey) -> Answer {
    let Some(context) = lookup.workspace(&key.context) else {
        return Answer::Waiting(format!("CodeWorkspace {} is gone", key.context));
    };
    let Some(context) = context.read() else {
        return Answer::Unreadable(format!("CodeWorkspace {} cannot be read", key.context));
    };
    let files = match files(lookup, context).await {
        Ok(files) => files,
        Err(fault) => return unread(lookup, key, fault),
    };
    let in_root = files.as_deref().map(|files| read_manifest(files, &key.path));
    match in_root {
        Some(Err(wrong)) => Answer::Wrong(wrong),
        Some(Ok(Some(manifest))) => Answer::InRoot(Arc::new(manifest)),
        Some(Ok(None)) | None => object(lookup, key, files.is_some()).await,
    }
}

/// The object that stands for a path.
async fn object(lookup: &Lookup<'_>, key: &NodeKey, has_root: bool) -> Answer {
    let keys = workspace_keys(&key.path);
    for wanted in &keys {
        lookup.depends_on(Dependency::Path(wanted.clone()));
    }
    let all = lookup.workspaces();
    for wanted in keys {
        let mut found: Vec<_> = all
            .iter()
            .filter(|object| path(object).as_ref() == Some(&wanted))
            .collect();
        found.sort_by_key(|object| object.name_any());
        match found[..] {
            [] => {}
            [object] => return of_object(lookup, key, object).await,
            [first, second, ..] => {
                for object in found {
                    lookup.depends_on(Dependency::Workspace(object.name_any()));
                }
                return Answer::Waiting(format!(
                    "CodeWorkspaces {} and {} both have this path: give one of them another `path`",
                    first.name_any(),
                    second.name_any()
                ));
            }
        }
    }
    let paths: Vec<String> = all
        .iter()
        .filter_map(|object| Some(path(object)?.to_string()))
        .collect();
    let near = nearest_paths(&key.path.to_string(), paths.iter().map(String::as_str));
    Answer::Missing {
        has_root,
        near: near.first().map(|near| (*near).to_owned()),
    }
}

async fn of_object(lookup: &Lookup<'_>, key: &NodeKey, object: &Readable<CodeWorkspace>) -> Answer {
    let name = object.name_any();
    lookup.depends_on(Dependency::Workspace(name.clone()));
    let workspace = match &object.0 {
        Ok(workspace) => workspace,
        Err(unreadable) => {
            return Answer::Unreadable(format!("CodeWorkspace {name}: {}", unreadable.error));
        }
    };
    match files_of_blocks(lookup, workspace).await {
        Ok(files) => Answer::Object {
            name,
            manifest: Arc::new(bundle::Manifest::from_blocks(
                &blocks(&workspace.spec),
                files.as_deref().map(Borrow::borrow),
            )),
        },
        Err(fault) => unread(lookup, key, fault),
    }
}

/// The files of a workspace's root, if a block of it stands in one.
async fn files_of_blocks(
    lookup: &Lookup<'_>,
    workspace: &CodeWorkspace,
) -> Result<Option<Arc<FileTree>>, Fault> {
    if block_files(&blocks(&workspace.spec)).is_empty() {
        return Ok(None);
    }
    files(lookup, workspace).await
}

/// The files of a workspace's root, if it has one.
async fn files(lookup: &Lookup<'_>, workspace: &CodeWorkspace) -> Result<Option<Arc<FileTree>>, Fault> {
    match root(lookup, workspace).await? {
        None => Ok(None),
        Some(root) => {
            let files = root.files(lookup, links(&workspace.spec)).await?;
            Ok(Some(files.tree))
        }
    }
}

/// A workspace's root as it is now, if it has one.
pub async fn root(lookup: &Lookup<'_>, workspace: &CodeWorkspace) -> Result<Option<Arc<Root>>, Fault> {
    let Some(root) = &workspace.spec.root else {
        return Ok(None);
    };
    let definition = define_root(root).map_err(|wrong| Fault::invalid(&wrong))?;
    lookup.root(workspace, &definition).await.map(Some)
}

fn unread(lookup: &Lookup<'_>, key: &NodeKey, fault: Fault) -> Answer {
    let answer = if fault.may_pass() {
        Answer::Waiting(fault.message.clone())
    } else {
        Answer::Unreadable(fault.message.clone())
    };
    lookup.note_unread(key, fault);
    answer
}
