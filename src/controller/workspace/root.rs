//! `spec.root`, parsed once: where `local` sources, and `ref` to a folder, read. Pure.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use codeworkspace_api::{ConfigMapRoot, FluxKind, Root};
use codeworkspace_bundle::code::{GitReference, Repository, WorkspacePath};
use codeworkspace_bundle::{BundlePath, FieldError};

/// What a root is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootDefinition {
    /// ConfigMaps, overlaid in order.
    ConfigMaps(Vec<ConfigMapFiles>),
    /// A folder of a volume.
    PersistentVolumeClaim {
        /// Name of the claim.
        claim: String,
        /// The folder.
        path: WorkspacePath,
    },
    /// A folder of a repository.
    Github {
        /// The repository.
        repository: Repository,
        /// Its commit, tag or branch.
        reference: GitReference,
        /// The folder.
        path: WorkspacePath,
    },
    /// A folder of what Flux fetched.
    FluxSource {
        /// The kind of source.
        kind: FluxKind,
        /// Its name.
        name: String,
        /// The folder.
        path: WorkspacePath,
    },
}

/// The files of one ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigMapFiles {
    /// Name of the ConfigMap.
    pub name: String,
    /// Where the keys stand that are taken; all keys, each at its own name, when absent.
    pub items: Option<BTreeMap<BundlePath, String>>,
}

/// Reads a root, and finds every fault in it.
pub fn define_root(root: &Root) -> Result<RootDefinition, Vec<FieldError>> {
    let mut errors: Vec<FieldError> = root.unknown_keys().iter().map(|key| unknown(key)).collect();
    let definition = match root.kinds()[..] {
        [_] => read(root, &mut errors),
        [] => {
            errors.push(FieldError::new(
                "root",
                format!("is empty: use one of {}", Root::KINDS.join(", ")),
            ));
            None
        }
        ref several => {
            let message = format!("has {}: keep one", several.join(" and "));
            errors.push(FieldError::new("root", message));
            None
        }
    };
    match definition {
        Some(definition) if errors.is_empty() => Ok(definition),
        _ => Err(errors),
    }
}

fn unknown(key: &str) -> FieldError {
    let message = if key.ends_with(".namespace") {
        "a root is in the namespace of its workspace: leave it out"
    } else {
        "unknown field; `kubectl explain codeworkspace.spec.root --recursive` lists the fields"
    };
    FieldError::new(format!("root.{key}"), message)
}

fn read(root: &Root, errors: &mut Vec<FieldError>) -> Option<RootDefinition> {
    if let Some(config_maps) = &root.config_maps {
        let files = config_maps
            .iter()
            .enumerate()
            .map(|(index, config_map)| files(&format!("root.configMaps[{index}]"), config_map, errors))
            .collect();
        return Some(RootDefinition::ConfigMaps(files));
    }
    if let Some(claim) = &root.persistent_volume_claim {
        return Some(RootDefinition::PersistentVolumeClaim {
            claim: claim.claim_name.clone(),
            path: folder("root.persistentVolumeClaim.path", claim.path.as_deref(), errors)?,
        });
    }
    if let Some(github) = &root.github {
        let repository = parse("root.github.repo", &github.repo, errors);
        let reference = parse("root.github.ref", &github.reference, errors);
        let path = folder("root.github.path", github.path.as_deref(), errors);
        return Some(RootDefinition::Github {
            repository: repository?,
            reference: reference?,
            path: path?,
        });
    }
    let flux = root.flux_source.as_ref()?;
    Some(RootDefinition::FluxSource {
        kind: flux.kind,
        name: flux.name.clone(),
        path: folder("root.fluxSource.path", flux.path.as_deref(), errors)?,
    })
}

fn files(field: &str, config_map: &ConfigMapRoot, errors: &mut Vec<FieldError>) -> ConfigMapFiles {
    let items = config_map.items.as_ref().map(|items| {
        let mut files: BTreeMap<BundlePath, String> = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            let field = format!("{field}.items[{index}].path");
            let Some(path) = parse::<BundlePath>(&field, &item.path, errors) else {
                continue;
            };
            if let Some(other) = files.get(&path) {
                errors.push(FieldError::new(
                    field,
                    format!("is given by the key `{other}` too"),
                ));
            } else {
                files.insert(path, item.key.clone());
            }
        }
        files
    });
    ConfigMapFiles {
        name: config_map.name.clone(),
        items,
    }
}

fn folder(field: &str, path: Option<&str>, errors: &mut Vec<FieldError>) -> Option<WorkspacePath> {
    path.map_or_else(
        || Some(WorkspacePath::of(None)),
        |path| parse(field, path, errors),
    )
}

fn parse<T: FromStr<Err: Display>>(field: &str, text: &str, errors: &mut Vec<FieldError>) -> Option<T> {
    text.parse()
        .map_err(|error| errors.push(FieldError::new(field, error)))
        .ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn define(root: Value) -> Result<RootDefinition, Vec<String>> {
        let root: Root = serde_json::from_value(root).unwrap();
        define_root(&root).map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn each_kind_of_root_is_read() {
        let below = |path: &str| WorkspacePath::of(Some(path.parse().unwrap()));
        let items = BTreeMap::from([("lib/__init__.py".parse().unwrap(), "init".to_owned())]);
        for (written, read) in [
            (
                json!({"configMaps": [{"name": "a"}, {"name": "b", "items": [{"key": "init", "path": "lib/__init__.py"}]}]}),
                RootDefinition::ConfigMaps(vec![
                    ConfigMapFiles {
                        name: "a".to_owned(),
                        items: None,
                    },
                    ConfigMapFiles {
                        name: "b".to_owned(),
                        items: Some(items),
                    },
                ]),
            ),
            (
                json!({"persistentVolumeClaim": {"claimName": "data"}}),
                RootDefinition::PersistentVolumeClaim {
                    claim: "data".to_owned(),
                    path: WorkspacePath::of(None),
                },
            ),
            (
                json!({"github": {"repo": "octo/tools", "ref": "main", "path": "./src/"}}),
                RootDefinition::Github {
                    repository: "octo/tools".parse().unwrap(),
                    reference: GitReference::Name("main".to_owned()),
                    path: below("src"),
                },
            ),
            (
                json!({"fluxSource": {"kind": "OCIRepository", "name": "tools", "path": "deploy"}}),
                RootDefinition::FluxSource {
                    kind: FluxKind::OCIRepository,
                    name: "tools".to_owned(),
                    path: below("deploy"),
                },
            ),
        ] {
            assert_eq!(define(written), Ok(read));
        }
    }

    #[test]
    fn every_fault_of_a_root_is_named_at_once() {
        let faults = [
            json!({}),
            json!({"configMaps": [{"name": "a"}], "github": {"repo": "octo/tools", "ref": "main"}}),
            json!({"git": {"url": "x"}, "configMaps": [{"name": "a", "namespace": "other"}]}),
            json!({"configMaps": [{"name": "a", "items": [
                {"key": "a", "path": "../a"}, {"key": "b", "path": "b"}, {"key": "c", "path": "b"}
            ]}]}),
            json!({"github": {"repo": "tools", "ref": "-x", "path": "/x", "host": "y"}}),
        ]
        .map(|root| define(root).unwrap_err());
        insta::assert_yaml_snapshot!(faults);
    }
}
