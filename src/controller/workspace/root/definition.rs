//! `spec.root`, parsed once. Pure.

use std::fmt::Display;
use std::str::FromStr;

use codeworkspace_api::{ConfigMapItem, ConfigMapRoot, FluxKind, Root};
use codeworkspace_bundle::code::{GithubSource, Target};
use codeworkspace_bundle::{BundlePath, FieldError};

/// What a workspace's root is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootDefinition {
    /// ConfigMaps, whose keys are files.
    ConfigMaps(Vec<MapDefinition>),
    /// A volume.
    Claim(ClaimDefinition),
    /// A repository, placed so that its folder `path` is the root.
    Github(Box<GithubSource>),
    /// A source of Flux.
    Flux(FluxDefinition),
}

/// One ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapDefinition {
    /// Its name.
    pub name: String,
    /// The keys to take with their paths; all when absent.
    pub items: Option<Vec<(String, BundlePath)>>,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimDefinition {
    /// Its name.
    pub name: String,
    /// The folder that is the root.
    pub path: Option<BundlePath>,
}

/// A Flux source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FluxDefinition {
    /// Its kind.
    pub kind: FluxKind,
    /// Its name.
    pub name: String,
    /// The folder that is the root.
    pub path: Option<BundlePath>,
}

/// Parses a root. Finds every fault, not only the first.
pub fn define_root(root: &Root) -> Result<RootDefinition, Vec<FieldError>> {
    let mut errors = Vec::new();
    for key in root.unknown_keys() {
        let message = if key.ends_with("namespace") {
            "objects of the workspace's own namespace are read, and no others: leave it out"
        } else {
            "unknown field; `kubectl explain codeworkspace.spec.root` lists the fields"
        };
        errors.push(FieldError::new(format!("root.{key}"), message));
    }
    let kinds = root.kinds();
    if kinds.len() != 1 {
        let found = if kinds.is_empty() {
            "none".to_owned()
        } else {
            kinds.join(" and ")
        };
        let message = format!("must have exactly one of {}, not {found}", Root::KINDS.join(", "));
        errors.push(FieldError::new("root", message));
        return Err(errors);
    }
    let definition = if let Some(maps) = &root.config_maps {
        Some(RootDefinition::ConfigMaps(define_maps(maps, &mut errors)))
    } else if let Some(github) = &root.github {
        let repository = parse("root.github.repo", Some(&github.repo), &mut errors);
        let reference = parse("root.github.ref", Some(&github.reference), &mut errors);
        let path = folder("root.github.path", github.path.as_deref(), &mut errors);
        repository.zip(reference).map(|(repository, reference)| {
            RootDefinition::Github(Box::new(GithubSource {
                repository,
                reference,
                path,
                target: Target::Folder(None),
            }))
        })
    } else if let Some(flux) = &root.flux_source {
        Some(RootDefinition::Flux(FluxDefinition {
            kind: flux.kind,
            name: flux.name.clone(),
            path: folder("root.fluxSource.path", flux.path.as_deref(), &mut errors),
        }))
    } else {
        root.persistent_volume_claim.as_ref().map(|claim| {
            RootDefinition::Claim(ClaimDefinition {
                name: claim.claim_name.clone(),
                path: folder(
                    "root.persistentVolumeClaim.path",
                    claim.path.as_deref(),
                    &mut errors,
                ),
            })
        })
    };
    definition.filter(|_| errors.is_empty()).ok_or(errors)
}

fn define_maps(maps: &[ConfigMapRoot], errors: &mut Vec<FieldError>) -> Vec<MapDefinition> {
    if maps.is_empty() {
        errors.push(FieldError::new(
            "root.configMaps",
            "must name at least one ConfigMap",
        ));
    }
    maps.iter()
        .enumerate()
        .map(|(index, map)| MapDefinition {
            name: map.name.clone(),
            items: map
                .items
                .as_ref()
                .map(|items| define_items(&format!("root.configMaps[{index}].items"), items, errors)),
        })
        .collect()
}

fn define_items(
    field: &str,
    items: &[ConfigMapItem],
    errors: &mut Vec<FieldError>,
) -> Vec<(String, BundlePath)> {
    let mut defined: Vec<(String, BundlePath)> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let field = format!("{field}[{index}].path");
        let Some(path) = parse(&field, Some(&item.path), errors) else {
            continue;
        };
        match defined.iter().find(|(_, other)| *other == path) {
            Some((key, _)) => errors.push(FieldError::new(field, format!("is given by the key `{key}` too"))),
            None => defined.push((item.key.clone(), path)),
        }
    }
    defined
}

fn parse<T: FromStr>(field: &str, text: Option<&str>, errors: &mut Vec<FieldError>) -> Option<T>
where
    T::Err: Display,
{
    match text?.parse() {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            errors.push(FieldError::new(field, error));
            None
        }
    }
}

/// A folder, with or without a leading `./` or a `/` at its end; `./` is the root itself.
fn folder(field: &str, text: Option<&str>, errors: &mut Vec<FieldError>) -> Option<BundlePath> {
    let path: codeworkspace_bundle::code::WorkspacePath = parse(field, text, errors)?;
    path.below_root().cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn define(root: Value) -> Result<RootDefinition, Vec<String>> {
        let root: Root = serde_json::from_value(root).unwrap();
        define_root(&root).map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    fn path(text: &str) -> BundlePath {
        text.parse().unwrap()
    }

    #[test]
    fn each_kind_of_root_is_understood() {
        let maps = define(json!({"configMaps": [
            {"name": "files"}, {"name": "more", "items": [{"key": "a", "path": "lib/a.py"}]}
        ]}));
        let expected = vec![
            MapDefinition {
                name: "files".to_owned(),
                items: None,
            },
            MapDefinition {
                name: "more".to_owned(),
                items: Some(vec![("a".to_owned(), path("lib/a.py"))]),
            },
        ];
        assert_eq!(maps, Ok(RootDefinition::ConfigMaps(expected)));
        let github = define(json!({"github": {"repo": "octo/tools", "ref": "main", "path": "./work/"}}));
        let expected = GithubSource {
            repository: "octo/tools".parse().unwrap(),
            reference: "main".parse().unwrap(),
            path: Some(path("work")),
            target: Target::Folder(None),
        };
        assert_eq!(github, Ok(RootDefinition::Github(Box::new(expected))));
        let flux = define(json!({"fluxSource": {"kind": "OCIRepository", "name": "files", "path": "."}}));
        let expected = FluxDefinition {
            kind: FluxKind::OCIRepository,
            name: "files".to_owned(),
            path: None,
        };
        assert_eq!(flux, Ok(RootDefinition::Flux(expected)));
        let claim = define(json!({"persistentVolumeClaim": {"claimName": "files", "path": "work"}}));
        let expected = ClaimDefinition {
            name: "files".to_owned(),
            path: Some(path("work")),
        };
        assert_eq!(claim, Ok(RootDefinition::Claim(expected)));
    }

    #[test]
    fn a_root_of_another_namespace_or_of_two_kinds_is_refused() {
        let elsewhere = define(json!({"configMaps": [{"name": "files", "namespace": "kube-system"}]}));
        assert_eq!(
            elsewhere,
            Err(vec![
                "root.configMaps[0].namespace: objects of the workspace's own namespace are read, and no others: leave it out"
                    .to_owned()
            ])
        );
        let none = define(json!({}));
        assert_eq!(
            none,
            Err(vec![
                "root: must have exactly one of configMaps, persistentVolumeClaim, github, fluxSource, not none"
                    .to_owned()
            ])
        );
        let two = define(json!({
            "configMaps": [{"name": "files"}],
            "github": {"repo": "octo/tools", "ref": "main"}
        }));
        assert_eq!(
            two,
            Err(vec![
                "root: must have exactly one of configMaps, persistentVolumeClaim, github, fluxSource, not configMaps and github"
                    .to_owned()
            ])
        );
    }

    #[test]
    fn every_path_that_leaves_the_root_or_is_given_twice_is_named() {
        let escapes = define(json!({"configMaps": [
            {"name": "files", "items": [
                {"key": "a", "path": "../a"}, {"key": "b", "path": "/b"}, {"key": "c", "path": "c"}, {"key": "d", "path": "c"}
            ]}
        ]}));
        let fields: Vec<_> = escapes
            .unwrap_err()
            .into_iter()
            .filter_map(|error| error.split(':').next().map(str::to_owned))
            .collect();
        assert_eq!(
            fields,
            [
                "root.configMaps[0].items[0].path",
                "root.configMaps[0].items[1].path",
                "root.configMaps[0].items[3].path"
            ]
        );
    }
}
