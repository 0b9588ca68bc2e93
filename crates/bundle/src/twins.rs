//! Names that some file systems take for one.

use std::collections::{BTreeMap, BTreeSet};

use unicode_normalization::UnicodeNormalization;

use crate::{overlay::Layer, quote::Quoted, tree::FileTree};

/// Pairs that are spelled out; the rest are counted.
const MOST_SHOWN: usize = 3;

/// Warnings about places, files as well as folders, whose names differ only in case or in Unicode normalisation (`é` as
/// one character, or as `e` and an accent): on a volume that takes both for one they would be one place. Each warning
/// names both; the first three are spelled out, the rest counted.
pub fn twins(tree: &FileTree) -> Vec<String> {
    warnings(&pairs(&[tree]), |place, _| Quoted(place).to_string())
}

/// The same for names of different layers, which stay beside each other where a later source may have been meant to
/// replace a file of an earlier one. Names the layers too, and leaves out twins within one layer.
pub fn twins_between(layers: &[Layer<'_>]) -> Vec<String> {
    let trees: Vec<_> = layers.iter().map(|layer| layer.tree).collect();
    let mut pairs = pairs(&trees);
    pairs.retain(|[first, second]| first.tree != second.tree);
    warnings(&pairs, |place, tree| {
        let layer = layers.get(tree).map_or("", |layer| layer.name);
        format!("{} of {layer}", Quoted(place))
    })
}

/// A place, and the first tree that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    path: &'a str,
    tree: usize,
}

/// Twins in byte order. Their paths decide which is the first, not the order of the trees.
fn pairs<'a>(trees: &[&'a FileTree]) -> Vec<[Place<'a>; 2]> {
    let mut paths: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, tree) in trees.iter().enumerate() {
        for path in tree.paths() {
            paths.entry(path.as_str()).or_insert(index);
        }
    }
    let mut spellings: BTreeMap<String, Place<'_>> = BTreeMap::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut pairs = Vec::new();
    for (path, tree) in paths {
        let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        for place in folders.chain([path]) {
            let own = Place { path: place, tree };
            let first = *spellings.entry(folded(place)).or_insert(own);
            if first.path != place {
                if seen.insert(place) {
                    pairs.push([first, own]);
                }
                // What is below twin folders needs no warnings of its own.
                break;
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// What is left of a name without case and normalisation. The tables are those of this program, never of a locale.
fn folded(place: &str) -> String {
    if place.is_ascii() {
        place.to_ascii_lowercase()
    } else {
        place.nfd().flat_map(char::to_lowercase).nfc().collect()
    }
}

fn warnings(pairs: &[[Place<'_>; 2]], name: impl Fn(&str, usize) -> String) -> Vec<String> {
    let more = pairs.len().saturating_sub(MOST_SHOWN);
    let rest = (more > 0)
        .then(|| format!("{more} more pairs of names differ only in case or Unicode normalisation"));
    pairs
        .iter()
        .take(MOST_SHOWN)
        .map(|[first, second]| {
            let difference = if first.path.nfc().eq(second.path.nfc()) {
                "Unicode normalisation"
            } else {
                "case"
            };
            let (first, second) = (name(first.path, first.tree), name(second.path, second.tree));
            format!("{first} and {second} differ only in {difference}")
        })
        .chain(rest)
        .collect()
}

#[cfg(test)]
mod tests;
