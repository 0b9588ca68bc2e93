//! A workspace's spec, parsed once. Pure. Everything that is wrong is kept, not only the first thing.

use std::borrow::Borrow;

use codeworkspace_api::{CodeWorkspace, CodeWorkspaceSpec, Links, RunPolicy, Volume, VolumeDelivery};
use codeworkspace_bundle::code::WorkspacePath;
use codeworkspace_bundle::{self as bundle, Blocks, FieldError, FileTree, Run};
use codeworkspace_protocol::layout;
use codeworkspace_source::LinkPolicy;
use jiff::SignedDuration;

use super::duration;
use super::root::define_root;
use crate::controller::fault::Fault;

/// Keys that people paste from a whole manifest.
const MANIFEST_KEYS: [&str; 2] = ["kind", "name"];

/// Folders at which the pod has volumes of its own.
const OWN_FOLDERS: [&str; 4] = [
    layout::TOOLS_DIRECTORY,
    layout::BUNDLE_DIRECTORY,
    layout::HOME,
    layout::TEMPORARY_DIRECTORY,
];
/// Folders without which no program starts.
const SYSTEM_FOLDERS: [&str; 10] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr",
];

/// What a workspace asks for.
#[derive(Debug)]
pub struct Manifest {
    /// The AIP blocks, each right or wrong by itself.
    pub blocks: bundle::Manifest,
    /// Why the root cannot be read, when a block stands in a file of it.
    pub unread: Option<Fault>,
    /// What is wrong in the operator's own fields.
    pub errors: Vec<FieldError>,
    /// The operator's own fields that this version accepts and does not implement.
    pub unsupported: Vec<String>,
    /// When it runs.
    pub policy: RunPolicy,
    /// How often floating references are looked up; the operator's default when absent.
    pub scan_interval: Option<SignedDuration>,
    /// What happens to links that cannot be kept.
    pub links: LinkPolicy,
    /// The volume.
    pub volume: Volume,
}

impl Manifest {
    /// Parses a workspace. Files that its blocks name are looked for in `root`.
    pub fn parse(workspace: &CodeWorkspace, root: Result<Option<&FileTree>, Fault>) -> Self {
        let spec = &workspace.spec;
        let mut errors = unknown_keys(spec);
        errors.extend(mount_path(spec.volume.as_ref()));
        let path = spec.path.as_deref().map(str::parse::<WorkspacePath>).transpose();
        errors.extend(path.err().map(|error| FieldError::new("path", error)));
        let scan_interval = spec.scan_interval.as_deref().map(duration::parse).transpose();
        let (files, unread) = match root {
            Ok(files) => (files, None),
            Err(fault) => (None, Some(fault)),
        };
        errors.extend(
            spec.root
                .as_ref()
                .and_then(|root| define_root(root).err())
                .into_iter()
                .flatten(),
        );
        Self {
            blocks: bundle::Manifest::from_blocks(&blocks(spec), files.map(Borrow::borrow)),
            unread,
            unsupported: unsupported(spec),
            scan_interval: scan_interval.unwrap_or_else(|message| {
                errors.push(FieldError::new("scanInterval", message));
                None
            }),
            policy: spec.run_policy.unwrap_or(match spec.inputs {
                Some(_) => RunPolicy::OnDemand,
                None => RunPolicy::OnChange,
            }),
            links: links(spec),
            volume: spec.volume.clone().unwrap_or_default(),
            errors,
        }
    }

    /// The command; absent for a shared bundle.
    pub fn run(&self) -> Option<&Result<Run, Vec<FieldError>>> {
        self.blocks.run.as_ref()
    }
}

/// The AIP blocks of a spec.
pub fn blocks(spec: &CodeWorkspaceSpec) -> Blocks<'_> {
    Blocks {
        code: Some(&spec.code),
        run: spec.run.as_ref(),
        runner: spec.runner.as_ref(),
        runtime: spec.runtime.as_ref(),
        sandbox: spec.sandbox.as_ref(),
        secrets: spec.secrets.as_ref(),
        network: spec.network.as_ref(),
    }
}

/// What becomes of links that cannot be kept.
pub fn links(spec: &CodeWorkspaceSpec) -> LinkPolicy {
    match spec.links.unwrap_or_default() {
        Links::Refuse => LinkPolicy::Keep,
        Links::Skip => LinkPolicy::Skip,
    }
}

/// The API server keeps unknown keys so that they can be named; the admission policy refuses them where it is installed.
fn unknown_keys(spec: &CodeWorkspaceSpec) -> Vec<FieldError> {
    let of_pod = spec.pod.iter().flat_map(|pod| pod.unknown.keys()).map(|key| {
        let message = "unknown field; `kubectl explain codeworkspace.spec.pod` lists the fields";
        FieldError::new(format!("pod.{key}"), message)
    });
    let of_spec = spec.unknown.keys().map(|key| {
        let message = if MANIFEST_KEYS.contains(&key.as_str()) {
            "only the AIP blocks of a manifest belong under spec; its kind and name are the object's own"
        } else {
            "unknown field; `kubectl explain codeworkspace.spec` lists the fields"
        };
        FieldError::new(key.as_str(), message)
    });
    let of_volume = spec
        .volume
        .iter()
        .flat_map(|volume| volume.unknown.keys())
        .map(|key| {
            let message = "unknown field; `kubectl explain codeworkspace.spec.volume` lists the fields";
            FieldError::new(format!("volume.{key}"), message)
        });
    of_spec.chain(of_volume).chain(of_pod).collect()
}

/// A bundle that is mounted over what the pod itself needs makes a pod that the API server or the node refuses, minutes later and in
/// other words.
fn mount_path(volume: Option<&Volume>) -> Option<FieldError> {
    let path = volume?.mount_path.as_deref()?;
    let is_within = |folder: &str| {
        path.strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_above = |folder: &str| {
        folder
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let message = if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        "has a . or .. segment: write the path from the root".to_owned()
    } else if let Some(folder) = OWN_FOLDERS
        .iter()
        .find(|folder| is_within(folder) || is_above(folder))
    {
        format!(
            "collides with {folder}, which the pod needs: write for example {}",
            layout::DEFAULT_MOUNT
        )
    } else {
        let folder = SYSTEM_FOLDERS.iter().find(|folder| is_within(folder))?;
        format!(
            "lies in {folder}, which belongs to the image or the kernel: write for example {}",
            layout::DEFAULT_MOUNT
        )
    };
    Some(FieldError::new("volume.mountPath", message))
}

/// Fields of the operator's own that are accepted, so that they can be named.
fn unsupported(spec: &CodeWorkspaceSpec) -> Vec<String> {
    let fields = [
        ("inputs", spec.inputs.is_some()),
        ("outputs", spec.outputs.is_some()),
        ("inputsFiles", spec.inputs_files.is_some()),
        ("outputsFiles", spec.outputs_files.is_some()),
        ("runPolicy: Always", spec.run_policy == Some(RunPolicy::Always)),
        ("schedule", spec.schedule.is_some()),
        ("concurrencyPolicy", spec.concurrency_policy.is_some()),
        ("pod", spec.pod.is_some()),
    ];
    let fields = fields
        .into_iter()
        .filter(|(_, set)| *set)
        .map(|(field, _)| field.to_owned());
    let delivery = spec.volume.as_ref().and_then(|volume| volume.delivery);
    let delivery = delivery
        .filter(|delivery| !matches!(delivery, VolumeDelivery::Auto | VolumeDelivery::ConfigMap))
        .map(|delivery| format!("volume.delivery: {}", delivery.as_str()));
    fields.chain(delivery).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(spec: &serde_json::Value) -> Manifest {
        let spec: CodeWorkspaceSpec = serde_json::from_value(spec.clone()).unwrap();
        Manifest::parse(&CodeWorkspace::new("example", spec), Ok(None))
    }

    #[test]
    fn fields_that_this_version_only_accepts_are_named() {
        let manifest = parse(&serde_json::json!({
            "code": "./x", "inputs": {}, "outputs": {}, "inputsFiles": {}, "outputsFiles": {},
            "runPolicy": "Always", "schedule": "0 * * * *", "concurrencyPolicy": "Forbid", "pod": {"runtimeClassName": "gvisor"},
            "volume": {"delivery": "Fetch"}
        }));
        assert_eq!(
            manifest.unsupported,
            [
                "inputs",
                "outputs",
                "inputsFiles",
                "outputsFiles",
                "runPolicy: Always",
                "schedule",
                "concurrencyPolicy",
                "pod",
                "volume.delivery: Fetch"
            ]
        );
        for delivery in ["Auto", "ConfigMap"] {
            let manifest = parse(&serde_json::json!({"code": "./x", "volume": {"delivery": delivery}}));
            assert_eq!(manifest.unsupported, [""; 0], "{delivery}");
        }
    }

    #[test]
    fn keys_that_nobody_knows_and_wrong_places_are_named() {
        let manifest = parse(&serde_json::json!({
            "code": "./x", "runer": {}, "kind": "tool", "path": "../x",
            "volume": {"mountpath": "/x"}, "pod": {"hostNetwork": true}, "root": {"github": null}
        }));
        let errors: Vec<String> = manifest.errors.iter().map(ToString::to_string).collect();
        insta::assert_yaml_snapshot!(errors);
    }

    fn refusal(path: &str) -> Option<String> {
        let volume = Volume {
            mount_path: Some(path.to_owned()),
            ..Volume::default()
        };
        mount_path(Some(&volume)).map(|error| error.to_string())
    }

    #[test]
    fn the_bundle_may_be_mounted_where_nothing_else_is_needed() {
        for path in [
            "/workspace",
            "/srv/tool",
            "/home/somebody",
            "/data",
            "/codeworkspace-data",
            "/usrlocal",
        ] {
            assert_eq!(refusal(path), None, "{path}");
        }
    }

    #[test]
    fn a_mount_path_over_the_pods_own_folders_is_refused_by_name() {
        for (path, said) in [
            ("/codeworkspace", "collides with /codeworkspace,"),
            ("/codeworkspace-bundle/x", "collides with /codeworkspace-bundle,"),
            ("/tmp", "collides with /tmp,"),
            ("/home", "collides with /home/codeworkspace,"),
            ("/usr/local/bin", "lies in /usr,"),
            ("/proc", "lies in /proc,"),
            ("/workspace/../codeworkspace", "has a . or .. segment"),
        ] {
            let refusal = refusal(path).unwrap_or_default();
            assert!(
                refusal.starts_with(&format!("volume.mountPath: {said}")),
                "{path}: {refusal}"
            );
        }
    }
}
