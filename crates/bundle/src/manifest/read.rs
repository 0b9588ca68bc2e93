//! Manifests in files: `manifest.yaml`, and the lean `CODE.md`.

use std::borrow::Borrow;

use serde_json::{Map, Value};

use super::{Blocks, Manifest, ManifestKind, Recorded, files::BlockFiles, in_file, yaml};
use crate::{
    code::{Code, WorkspacePath, define_code, define_source},
    field::FieldError,
    follow::read_file,
    object::{MOST_FAULTS, kind},
    path::BundlePath,
    quote::{Listed, Quoted},
    taken::Entries,
};

/// The names that a manifest's file may have, the one that counts first.
const NAMES: [&str; 2] = ["manifest.yaml", "CODE.md"];

/// What the head of a lean module says (AIP-26, "CODE.md — lean composable form").
const LEAN: &str = "code/v2";

/// Keys of a manifest that mean something here.
const KNOWN: [&str; 20] = [
    "kind",
    "name",
    "description",
    "code",
    "run",
    "runner",
    "runtime",
    "sandbox",
    "secrets",
    "network",
    "source",
    "requiredCapabilities",
    "schema",
    "id",
    "version",
    "driver",
    "identity",
    "suggests_skills",
    "requires_tools",
    "references",
];

/// Keys that belong to what a tool or workflow is for, and are never taken over (AIP-26, "Inheritance semantics").
const CALLS: [&str; 4] = ["inputs", "outputs", "inputsFiles", "outputsFiles"];

/// Why a file is no manifest that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is the manifest of something else.
    #[error(
        "KindError: `./{file}` is a manifest of kind {}; a `ref` needs `kind: code-workspace`, or `schema: {LEAN}`",
        Quoted(kind)
    )]
    Kind {
        /// The file.
        file: BundlePath,
        /// What it says that it is.
        kind: String,
    },
    /// It can't be read, or not as a manifest.
    #[error("{}", joined(.0))]
    Invalid(Vec<FieldError>),
}

fn joined(errors: &[FieldError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The files in which the manifest that a `ref` names may stand, the one that counts first. A path that names such a file itself stands
/// for that file alone; `code-workspaces/<name>`, as the guide's examples write it, also for what the convention calls
/// `.code-workspaces/<name>` and `.code/<name>`.
pub fn manifest_files(path: &WorkspacePath) -> Vec<BundlePath> {
    let in_folder = |folder: &str| {
        let files = NAMES.map(|name| format!("{folder}{name}"));
        files.into_iter().filter_map(|file| file.parse().ok())
    };
    let Some(path) = path.below_root() else {
        return in_folder("").collect();
    };
    if NAMES.contains(&path.file_name()) {
        return vec![path.clone()];
    }
    let mut files: Vec<_> = in_folder(&format!("{path}/")).collect();
    if let Some(name) = path.as_str().strip_prefix("code-workspaces/") {
        files.extend(in_folder(&format!(".code-workspaces/{name}/")));
        files.extend(in_folder(&format!(".code/{name}/")));
    }
    files
}

/// Reads the manifest of a folder in a root: `manifest.yaml`, or else `CODE.md`. `None` if there is neither.
///
/// Which form a manifest has is said by its head and not by its file's name: `kind: code-workspace` is the rich one,
/// `schema: code/v2` the lean one. Files that its blocks name are looked for in its own folder. `root` needs to hold that folder only.
pub fn read_manifest<Root: Borrow<Entries>>(
    root: &Root,
    folder: &WorkspacePath,
) -> Result<Option<Manifest>, ManifestError> {
    let root = root.borrow();
    let is_file = |file: &BundlePath| read_file(root, file).is_some();
    let mut files = manifest_files(folder).into_iter().filter(is_file);
    let Some(file) = files.next() else {
        return Ok(None);
    };
    let ignored = files.next().filter(|other| other.folder() == file.folder());
    let Some(bytes) = read_file(root, &file) else {
        return Ok(None);
    };
    let document = yaml::read_document(&file, bytes).map_err(|error| ManifestError::Invalid(vec![error]))?;
    let Value::Object(map) = document else {
        let message = format!(
            "must be an object with `kind: code-workspace`, or with `schema: {LEAN}`, not {}",
            kind(&document)
        );
        return Err(ManifestError::Invalid(vec![FieldError::new(
            format!("./{file}"),
            message,
        )]));
    };
    let mut manifest = read_map(root, &file, &map)?.located(file);
    if let Some(ignored) = ignored {
        let warning = format!("./{ignored} is not read, since `{}` is beside it", NAMES[0]);
        manifest.warnings.push(warning);
    }
    Ok(Some(manifest))
}

fn read_map(root: &Entries, file: &BundlePath, map: &Map<String, Value>) -> Result<Manifest, ManifestError> {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let folder = file.folder().and_then(|folder| folder.parse::<BundlePath>().ok());
    let files = BlockFiles {
        root: Some(root),
        folder: folder.as_ref(),
    };
    let blocks = Blocks {
        code: map.get("code"),
        run: map.get("run"),
        runner: map.get("runner"),
        runtime: map.get("runtime"),
        sandbox: map.get("sandbox"),
        secrets: map.get("secrets"),
        network: map.get("network"),
    };
    let (manifest_kind, is_lean) = head(file, map)?;
    let code = if is_lean { lean_code(map) } else { rich_code(map) };
    let mut manifest = Manifest::build(&blocks, code, files);
    if is_lean {
        manifest.base = WorkspacePath::of(folder);
    }
    manifest.kind = manifest_kind;
    manifest.name = text("name").map(str::to_owned);
    manifest.recorded = Recorded::read(map, is_lean);
    manifest.warnings.extend(unused(manifest_kind, map));
    Ok(manifest)
}

/// What a manifest says that it is.
fn head(file: &BundlePath, map: &Map<String, Value>) -> Result<(ManifestKind, bool), ManifestError> {
    let wrong = |field: &str, message: String| {
        let error = FieldError::new(field, message);
        Err(ManifestError::Invalid(vec![in_file(error, file)]))
    };
    match (map.get("kind"), map.get("schema")) {
        (Some(Value::String(text)), _) => {
            let known = ManifestKind::ALL.into_iter().find(|kind| kind.as_str() == text);
            known
                .map(|kind| (kind, false))
                .ok_or_else(|| ManifestError::Kind {
                    file: file.clone(),
                    kind: text.clone(),
                })
        }
        (Some(other), _) => wrong("kind", format!("must be a string, not {}", kind(other))),
        (None, Some(Value::String(text))) if text == LEAN => Ok((ManifestKind::CodeWorkspace, true)),
        (None, Some(Value::String(text))) => Err(ManifestError::Kind {
            file: file.clone(),
            kind: text.clone(),
        }),
        (None, Some(other)) => wrong("schema", format!("must be a string, not {}", kind(other))),
        (None, None) => wrong(
            "kind",
            format!("is missing: write `kind: code-workspace`, or `schema: {LEAN}` for the lean form"),
        ),
    }
}

fn rich_code(map: &Map<String, Value>) -> Result<Code, Vec<FieldError>> {
    match map.get("code") {
        Some(code) => define_code(code),
        None if map.contains_key("entry") => {
            let message = "is missing: a folder with an `entry` is the form of an old draft; list the files in `code` and name what is \
                           started in `run`";
            Err(vec![FieldError::new("code", message)])
        }
        None => Err(vec![FieldError::new("code", "is missing")]),
    }
}

fn lean_code(map: &Map<String, Value>) -> Result<Code, Vec<FieldError>> {
    match (map.get("source"), map.contains_key("code")) {
        (Some(source), false) => define_source(source),
        (_, true) => {
            let message = format!("does not belong to `schema: {LEAN}`: write its sources in `source`");
            Err(vec![FieldError::new("code", message)])
        }
        (None, false) => {
            let message = "is missing: it says what the module's files are, as in `{local: ./search.py}`";
            Err(vec![FieldError::new("source", message)])
        }
    }
}

/// What stands in a manifest without an effect on those that refer to it.
fn unused(manifest_kind: ManifestKind, map: &Map<String, Value>) -> Vec<String> {
    let calls: Vec<&str> = CALLS.into_iter().filter(|key| map.contains_key(*key)).collect();
    let mut warnings = Vec::new();
    if manifest_kind != ManifestKind::CodeWorkspace {
        warnings.push(format!(
            "is the manifest of a {}: its files, runner, secrets and network are taken over, its `run`, inputs and outputs are not",
            manifest_kind.as_str()
        ));
    } else if !calls.is_empty() {
        warnings.push(format!(
            "has {}, which belong to a tool and not to the code that it uses",
            Listed(&calls)
        ));
    }
    let unknown: Vec<&str> = map
        .keys()
        .map(String::as_str)
        .filter(|key| !KNOWN.contains(key) && !CALLS.contains(key))
        .take(MOST_FAULTS)
        .collect();
    if !unknown.is_empty() {
        warnings.push(format!("has keys without any effect: {}", Listed(&unknown)));
    }
    warnings
}
