//! Laying sources over each other (AIP-26, "Overlay merge").

use std::{collections::BTreeMap, fmt};

use crate::{
    path::BundlePath,
    tree::{Entry, FileTree, PlaceError},
};

/// Findings that a message spells out; the rest are counted.
const MOST_SHOWN: usize = 5;

/// One source's files, and what to call the source in a message.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a> {
    /// The source's place in the manifest: `code.sources[1]`.
    pub name: &'a str,
    /// Its files, already where they land in the bundle.
    pub tree: &'a FileTree,
}

/// Merges layers in their order: of two entries at the same path, the later one wins.
///
/// A file or link where another layer has a folder is an error that names both layers, whichever of them comes first:
/// no order of unpacking could honour both. All clashes are found, not only the first.
pub fn overlay(layers: &[Layer<'_>]) -> Result<FileTree, OverlayError> {
    let mut merged = FileTree::new();
    let mut origins: BTreeMap<&BundlePath, &str> = BTreeMap::new();
    let mut clashes = Vec::new();
    for layer in layers {
        for (path, entry) in layer.tree {
            match merged.place(path.clone(), entry.clone()) {
                Ok(_) => {
                    origins.insert(path, layer.name);
                }
                Err(error) => clashes.push(Clash::new(error, layer, &merged, &origins)),
            }
        }
    }
    if clashes.is_empty() {
        Ok(merged)
    } else {
        Err(OverlayError { clashes })
    }
}

/// Layers that can't be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayError {
    /// Every clash, in the order in which the layers were laid.
    pub clashes: Vec<Clash>,
}

/// One place that a layer has as a file or link, and another layer as a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The place.
    pub path: BundlePath,
    /// Whether it is a link in the layer that has no folder there.
    pub is_link: bool,
    /// The layer with the file or link.
    pub leaf_layer: String,
    /// The layer with the folder.
    pub folder_layer: String,
    /// An entry inside that folder.
    pub below: BundlePath,
}

impl Clash {
    fn new(
        error: PlaceError,
        layer: &Layer<'_>,
        merged: &FileTree,
        origins: &BTreeMap<&BundlePath, &str>,
    ) -> Self {
        let earlier = |path: &BundlePath| origins.get(path).copied().unwrap_or_default().to_owned();
        let is_link =
            |tree: &FileTree, path: &BundlePath| matches!(tree.get(path.as_str()), Some(Entry::Link { .. }));
        match error {
            PlaceError::BelowEntry {
                path: below,
                entry: path,
            } => Self {
                is_link: is_link(merged, &path),
                leaf_layer: earlier(&path),
                folder_layer: layer.name.to_owned(),
                path,
                below,
            },
            PlaceError::OverFolder { path, below } => Self {
                is_link: is_link(layer.tree, &path),
                leaf_layer: layer.name.to_owned(),
                folder_layer: earlier(&below),
                path,
                below,
            },
        }
    }
}

impl fmt::Display for Clash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            is_link,
            leaf_layer,
            folder_layer,
            below,
        } = self;
        let leaf = if *is_link { "link" } else { "file" };
        write!(
            out,
            "`{path}` is a {leaf} in {leaf_layer} and a folder in {folder_layer} (`{below}`)"
        )
    }
}

impl fmt::Display for OverlayError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, clash) in self.clashes.iter().take(MOST_SHOWN).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(out, "{separator}{clash}")?;
        }
        match self.clashes.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(out, "; and {more} more"),
        }
    }
}

impl std::error::Error for OverlayError {}

#[cfg(test)]
mod tests;
