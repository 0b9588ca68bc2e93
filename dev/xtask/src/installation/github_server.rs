//! The objects of the server that plays GitHub: its manifest, completed with the image and the repositories of this checkout.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const MANIFEST: &str = include_str!("../../../deploy/github-server.yaml");

/// Annotation whose change makes a new pod, which makes the repositories anew.
const CHECKSUM: &str = "codeworkspace.dev/repositories-checksum";

/// A file of the repositories.
struct RepositoryFile {
    /// Path below the folder of all repositories.
    path: String,
    contents: String,
    executable: bool,
}

/// Everything to apply. `repositories` is a folder of fixtures as the server reads them.
pub(super) fn objects(image: &str, repositories: &Path) -> Result<Vec<Value>> {
    let mut files = Vec::new();
    collect(repositories, "", &mut files)?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut objects: Vec<Value> =
        serde_saphyr::from_multiple(MANIFEST).context("dev/deploy/github-server.yaml")?;
    let deployment = objects
        .iter_mut()
        .find(|object| object["kind"] == "Deployment")
        .context("dev/deploy/github-server.yaml has no Deployment")?;
    let template = &mut deployment["spec"]["template"];
    template["spec"]["containers"][0]["image"] = image.into();
    template["metadata"]["annotations"][CHECKSUM] = checksum(&files).into();
    let volume = template["spec"]["volumes"]
        .as_array_mut()
        .and_then(|volumes| volumes.iter_mut().find(|volume| volume["name"] == "repositories"))
        .context("dev/deploy/github-server.yaml has no volume `repositories`")?;
    volume["configMap"]["items"] = items(&files);
    let metadata = json!({
        "name": volume["configMap"]["name"],
        "namespace": deployment["metadata"]["namespace"],
    });
    let data: BTreeMap<String, &str> = files
        .iter()
        .enumerate()
        .map(|(number, file)| (key(number), file.contents.as_str()))
        .collect();
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    // The namespace stays first.
    objects.insert(1, config_map);
    Ok(objects)
}

/// Keys of a `ConfigMap` may not hold slashes; the volume gives each file its path again.
fn key(number: usize) -> String {
    format!("file-{number}")
}

fn items(files: &[RepositoryFile]) -> Value {
    files
        .iter()
        .enumerate()
        .map(|(number, file)| {
            let mode = if file.executable { 0o755 } else { 0o644 };
            json!({"key": key(number), "path": file.path, "mode": mode})
        })
        .collect()
}

fn checksum(files: &[RepositoryFile]) -> String {
    let mut hash = Sha256::new();
    for file in files {
        for part in [file.path.as_str(), &file.executable.to_string(), &file.contents] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
    }
    let head = hash
        .finalize()
        .into_iter()
        .take(8)
        .fold(0_u64, |number, byte| number << 8 | u64::from(byte));
    format!("{head:016x}")
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<RepositoryFile>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name
            .to_str()
            .with_context(|| format!("{} is not UTF-8", entry.path().display()))?;
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
            continue;
        }
        ensure!(
            kind.is_file(),
            "{} is neither a file nor a folder",
            entry.path().display()
        );
        files.push(RepositoryFile {
            path,
            contents: fs::read_to_string(entry.path())?,
            executable: is_executable(&entry.metadata()?),
        });
    }
    Ok(())
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn repositories() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("octo/tools/bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("run.sh"), "#!/bin/sh\n").unwrap();
        fs::write(folder.path().join("octo/tools.json"), "{}").unwrap();
        fs::set_permissions(bin.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    fn find<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
        objects.iter().find(|object| object["kind"] == kind).unwrap()
    }

    #[test]
    fn files_keep_their_paths_and_executable_bits() {
        let folder = repositories();
        let objects = objects("example/github-server:1", folder.path()).unwrap();
        let pod = &find(&objects, "Deployment")["spec"]["template"]["spec"];
        let volume = pod["volumes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|volume| volume["name"] == "repositories")
            .unwrap();
        assert_eq!(
            volume["configMap"]["items"],
            json!([
                {"key": "file-0", "path": "octo/tools.json", "mode": 0o644},
                {"key": "file-1", "path": "octo/tools/bin/run.sh", "mode": 0o755},
            ])
        );
        assert_eq!(
            find(&objects, "ConfigMap")["data"],
            json!({"file-0": "{}", "file-1": "#!/bin/sh\n"})
        );
        assert_eq!(pod["containers"][0]["image"], "example/github-server:1");
    }

    #[test]
    fn a_changed_file_makes_a_new_pod() {
        let folder = repositories();
        let checksum = |folder: &tempfile::TempDir| {
            let objects = objects("example/github-server:1", folder.path()).unwrap();
            find(&objects, "Deployment")["spec"]["template"]["metadata"]["annotations"][CHECKSUM].clone()
        };
        let before = checksum(&folder);
        assert_eq!(before, checksum(&folder));
        fs::write(folder.path().join("octo/tools.json"), r#"{"tags": ["v1"]}"#).unwrap();
        assert_ne!(before, checksum(&folder));
    }

    #[test]
    fn the_namespace_comes_first_and_the_repositories_of_this_checkout_fit() {
        let repositories = crate::checkout().join("dev/deploy/repositories");
        let objects = objects("example/github-server:1", &repositories).unwrap();
        let kinds: Vec<_> = objects
            .iter()
            .map(|object| object["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["Namespace", "ConfigMap", "Deployment", "Service"]);
    }
}
