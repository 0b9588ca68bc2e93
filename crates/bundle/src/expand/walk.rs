use std::collections::BTreeSet;

use super::{
    Catalog, Expanded, Expansion, Leaf, LeafError, LeafSource, Lookup, MAX_DEPTH, MAX_EXPANDED, NodeKey,
    RefError,
};
use crate::{
    code::{RefSource, Source, SourceEntry, WorkspacePath},
    field::FieldError,
    inherit::Inherited,
    manifest::{Manifest, ManifestError},
    path::BundlePath,
};

pub(super) fn walk<'a>(top: &'a Manifest, top_name: &str, catalog: &'a Catalog) -> Expansion {
    let mut walk = Walk {
        catalog,
        wanted: BTreeSet::new(),
        used: BTreeSet::new(),
        leaves: Vec::new(),
        warnings: Vec::new(),
        visited: 0,
    };
    let root = Node {
        identity: Identity::Object(top_name.to_owned()),
        context: top_name.to_owned(),
        way: None,
    };
    let inherited = match walk.enter(top, &mut vec![root]) {
        Ok(_) if !walk.wanted.is_empty() => return Expansion::Wanted(walk.wanted),
        Ok(grown) => grown.inherit(true),
        Err(TooMany) => {
            walk.leaves = vec![too_many(top_name)];
            Grown::alone(top).inherit(true)
        }
    };
    Expansion::Complete(Box::new(Expanded {
        leaves: walk.leaves,
        inherited,
        used: walk.used,
    }))
}

/// What stands in the place of everything when there is too much of it. What was gone through before would depend on chance.
fn too_many(top_name: &str) -> Leaf {
    Leaf {
        path: "code".to_owned(),
        place: "code".to_owned(),
        context: top_name.to_owned(),
        base: WorkspacePath::of(None),
        kind: None,
        summary: "all sources".to_owned(),
        source: Err(RefError::TooMany.into()),
        warnings: Vec::new(),
    }
}

/// The bound was reached.
struct TooMany;

/// A manifest, and those that its references lead to.
struct Grown<'a> {
    manifest: &'a Manifest,
    /// The others in their order, each with its place in this one.
    taken: Vec<(String, Self)>,
}

impl<'a> Grown<'a> {
    fn alone(manifest: &'a Manifest) -> Self {
        Self {
            manifest,
            taken: Vec::new(),
        }
    }

    /// Blocks are merged only once everything is found: it is most of the work.
    fn inherit(self, is_top: bool) -> Inherited {
        let mut inherited = Inherited::default();
        for (place, other) in self.taken {
            inherited.absorb(other.inherit(false), &place);
        }
        inherited.finish(self.manifest, is_top);
        inherited
    }
}

/// What makes two references lead to the same manifest.
#[derive(Clone, PartialEq, Eq)]
enum Identity {
    /// An object of the namespace.
    Object(String),
    /// A file in the root of an object.
    File(String, Option<BundlePath>),
}

impl Identity {
    /// How to call it where it has to be told apart from all others.
    fn name(&self) -> String {
        match self {
            Self::Object(name) => name.clone(),
            Self::File(_, file) => {
                let folder = file.as_ref().and_then(BundlePath::folder);
                folder.map_or_else(|| "./".to_owned(), |folder| format!("./{folder}"))
            }
        }
    }

    /// How to call it in a path that says already where it was found.
    fn label(&self) -> String {
        let name = self.name();
        match name.trim_end_matches('/').rsplit_once('/') {
            Some((_, last)) => last.to_owned(),
            None => name,
        }
    }
}

/// A manifest on the way from the top.
struct Node {
    identity: Identity,
    /// The object whose root and connectors count.
    context: String,
    /// The way to it and the place where that begins; none for the top itself.
    way: Option<Way>,
}

#[derive(Clone)]
struct Way {
    path: String,
    place: String,
}

impl Way {
    /// The way to an entry of a manifest that this is the way to.
    fn to_entry(way: Option<&Self>, field: &str) -> Self {
        match way {
            None => Self {
                path: field.to_owned(),
                place: field.to_owned(),
            },
            Some(way) => Self {
                path: format!("{} > {field}", way.path),
                place: way.place.clone(),
            },
        }
    }
}

struct Walk<'a> {
    catalog: &'a Catalog,
    wanted: BTreeSet<NodeKey>,
    used: BTreeSet<NodeKey>,
    leaves: Vec<Leaf>,
    /// Of manifests whose first leaf is still to come.
    warnings: Vec<String>,
    /// Entries that were gone through.
    visited: usize,
}

impl<'a> Walk<'a> {
    /// Goes through a manifest, which is the last of `stack`.
    fn enter(&mut self, manifest: &'a Manifest, stack: &mut Vec<Node>) -> Result<Grown<'a>, TooMany> {
        let mut grown = Grown::alone(manifest);
        for entry in manifest.code.iter().flat_map(|code| &code.sources) {
            self.visited += 1;
            if self.visited > MAX_EXPANDED {
                return Err(TooMany);
            }
            let Some(node) = stack.last() else { break };
            let way = Way::to_entry(node.way.as_ref(), &entry.field);
            let context = node.context.clone();
            let source = match &entry.source {
                Err(errors) => Err(LeafError::Invalid(errors.clone())),
                Ok(Source::Inline(inline)) => Ok(LeafSource::Inline(inline.clone())),
                Ok(Source::Local(local)) => Ok(LeafSource::Local(local.clone())),
                Ok(Source::Github(github)) => Ok(LeafSource::Github(github.clone())),
                Ok(Source::Ref(source)) => match self.follow(source, &way, stack)? {
                    Followed::Taken(label, other) => {
                        grown.taken.push((format!("{} > {label}", entry.field), other));
                        continue;
                    }
                    Followed::Wanted => continue,
                    Followed::Failed(error) => Err(LeafError::Ref(error)),
                },
            };
            self.leaf(manifest, entry, way, context, source);
        }
        Ok(grown)
    }

    fn leaf(
        &mut self,
        manifest: &Manifest,
        entry: &SourceEntry,
        way: Way,
        context: String,
        source: Result<LeafSource, LeafError>,
    ) {
        self.leaves.push(Leaf {
            path: way.path,
            place: way.place,
            context,
            base: manifest.base.clone(),
            kind: entry.kind,
            summary: entry.summary.clone(),
            source,
            warnings: std::mem::take(&mut self.warnings),
        });
    }

    fn follow(
        &mut self,
        source: &RefSource,
        way: &Way,
        stack: &mut Vec<Node>,
    ) -> Result<Followed<'a>, TooMany> {
        let Some(context) = stack.last().map(|node| node.context.clone()) else {
            return Ok(Followed::Wanted);
        };
        let key = NodeKey {
            context,
            path: source.path.clone(),
        };
        self.used.insert(key.clone());
        let Some(found) = self.catalog.get(&key) else {
            self.wanted.insert(key);
            return Ok(Followed::Wanted);
        };
        let NodeKey { context, path } = key;
        let failed = |error: RefError| {
            let is_too_deep = stack.len() > MAX_DEPTH;
            Ok(Followed::Failed(if is_too_deep {
                too_deep(stack, path.to_string())
            } else {
                error
            }))
        };
        let (identity, context, manifest) = match found {
            Lookup::InRoot(manifest) => {
                let file = manifest.file.clone().or_else(|| path.below_root().cloned());
                (Identity::File(context.clone(), file), context, manifest)
            }
            Lookup::Object { name, manifest } => (Identity::Object(name.clone()), name.clone(), manifest),
            Lookup::Missing { has_root, near } => {
                let (has_root, near) = (*has_root, near.clone());
                return failed(RefError::Missing {
                    path: path.clone(),
                    has_root,
                    near,
                });
            }
            Lookup::Waiting(reason) => {
                let reason = reason.clone();
                return failed(RefError::Waiting {
                    path: path.clone(),
                    reason,
                });
            }
            Lookup::Unreadable(reason) => {
                let reason = reason.clone();
                return failed(RefError::Unreadable {
                    path: path.clone(),
                    reason,
                });
            }
            Lookup::Wrong(error) => return failed(error.clone().into()),
        };
        // A cycle is the better explanation of a way that is too long.
        if let Some(start) = stack.iter().position(|node| node.identity == identity) {
            let mut names: Vec<_> = stack[start..].iter().map(|node| node.identity.name()).collect();
            names.push(identity.name());
            return Ok(Followed::Failed(RefError::Cycle(names)));
        }
        if stack.len() > MAX_DEPTH {
            return Ok(Followed::Failed(too_deep(stack, identity.name())));
        }
        if let Some(mut errors) = unusable(manifest) {
            if manifest.file.is_none() {
                let name = identity.name();
                errors = errors.into_iter().map(|error| error.within(&name)).collect();
            }
            return Ok(Followed::Failed(ManifestError::Invalid(errors).into()));
        }
        if manifest.file.is_some() {
            // An object shows its own in its own status.
            self.warnings.extend(manifest.warnings.iter().cloned());
        }
        let label = identity.label();
        let way = Way {
            path: format!("{} > {label}", way.path),
            place: way.place.clone(),
        };
        stack.push(Node {
            identity,
            context,
            way: Some(way),
        });
        let taken = self.enter(manifest, stack);
        stack.pop();
        Ok(Followed::Taken(label, taken?))
    }
}

/// What came of a reference.
enum Followed<'a> {
    /// What it leads to, with its label.
    Taken(String, Grown<'a>),
    /// It has to be looked up.
    Wanted,
    /// It leads nowhere.
    Failed(RefError),
}

fn too_deep(stack: &[Node], last: String) -> RefError {
    let names = stack.iter().map(|node| node.identity.name());
    RefError::TooDeep(names.chain([last]).collect())
}

/// Why there is nothing to take from a manifest, or not all of it.
fn unusable(manifest: &Manifest) -> Option<Vec<FieldError>> {
    match &manifest.code {
        Ok(code) => (!code.errors.is_empty()).then(|| code.errors.clone()),
        Err(errors) => Some(errors.clone()),
    }
}
