//! Workspaces whose files stand in a volume.

use std::fmt::Debug;

use anyhow::{Context as _, Result};
use codeworkspace_api::{CodeWorkspace, RunnerTemplate, labels};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{End, Story, end, source_error, story};

/// A volume of the node, and somebody who may write to it.
struct Volume<'a> {
    story: &'a Story,
    /// A namespace in which pods may mount folders of the node.
    writers: Story,
    folder: String,
}

impl<'a> Volume<'a> {
    /// Makes a volume with these files, and binds the claim `files` to it.
    async fn with(story: &'a Story, script: &str) -> Result<Self> {
        let writers = story.other_namespace().await?;
        let namespaces: Api<Namespace> = Api::all(story.client.clone());
        let level = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}});
        namespaces
            .patch(&writers.namespace, &PatchParams::default(), &Patch::Merge(level))
            .await?;
        let folder = format!("/var/lib/codeworkspace-e2e/{}", story.namespace);
        let volume = Self {
            story,
            writers,
            folder,
        };
        volume.write("first", script).await?;
        let persistent = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": story.namespace},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Mi"}, "storageClassName": "",
                "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": volume.folder},
                "claimRef": {"namespace": story.namespace, "name": "files"},
            }
        });
        let volumes: Api<PersistentVolume> = Api::all(story.client.clone());
        apply(&volumes, &story.namespace, persistent).await?;
        let claim = json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": story.namespace,
            "resources": {"requests": {"storage": "1Mi"}},
        }});
        story
            .apply_object::<PersistentVolumeClaim>("files", claim)
            .await?;
        story
            .until("files", "is bound", |claim: &PersistentVolumeClaim| {
                claim
                    .status
                    .as_ref()
                    .is_some_and(|status| status.phase.as_deref() == Some("Bound"))
            })
            .await?;
        Ok(volume)
    }

    /// Runs a script as root in the volume's folder.
    async fn write(&self, name: &str, script: &str) -> Result<()> {
        let templates: Api<RunnerTemplate> = Api::all(self.story.client.clone());
        let template = templates.get("python").await?.spec;
        let pod = json!({"spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "writer", "image": template.image, "imagePullPolicy": "IfNotPresent",
                "command": ["bash", "-euc", script], "workingDir": "/volume",
                "securityContext": {"runAsUser": 0, "runAsNonRoot": false},
                "volumeMounts": [{"name": "volume", "mountPath": "/volume"}],
            }],
            "volumes": [{"name": "volume", "hostPath": {"path": self.folder, "type": "DirectoryOrCreate"}}],
        }});
        self.writers.apply_object::<Pod>(name, pod).await?;
        let ended = self
            .writers
            .until(name, "has ended", |pod: &Pod| {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                matches!(phase, Some("Succeeded" | "Failed"))
            })
            .await?;
        assert_eq!(ended.status.unwrap().phase.as_deref(), Some("Succeeded"));
        Ok(())
    }

    /// Somebody wants the volume to be read again.
    async fn ask(&self, when: &str) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {labels::RECONCILE_AT: when}}});
        self.story
            .api::<CodeWorkspace>()
            .patch("tool", &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    async fn remove(&self) -> Result<()> {
        let volumes: Api<PersistentVolume> = Api::all(self.story.client.clone());
        volumes
            .delete(&self.story.namespace, &DeleteParams::default())
            .await?;
        let namespaces: Api<Namespace> = Api::all(self.story.client.clone());
        namespaces
            .delete(&self.writers.namespace, &DeleteParams::default())
            .await?;
        Ok(())
    }
}

async fn apply<K>(api: &Api<K>, name: &str, object: Value) -> Result<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let parameters = PatchParams::apply("story").force();
    Ok(api.patch(name, &parameters, &Patch::Apply(object)).await?)
}

fn spec() -> Value {
    json!({
        "root": {"persistentVolumeClaim": {"claimName": "files", "path": "team"}},
        "code": {"sources": [{"local": {"path": "./", "as": "./"}}]},
        "run": {"exec": ["bash", "-c", "./run.sh; cat latest"]},
        "scanInterval": "1s",
    })
}

/// Waits until no reader is left.
async fn no_reader_stays(story: &Story) -> Result<()> {
    let of_class = ListParams::default().labels(&format!("{}={}", labels::CLASS, labels::CLASS_READER));
    for pod in story.api::<Pod>().list(&of_class).await? {
        story.until_gone::<Pod>(&pod.name_any()).await?;
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_folder_of_a_volume_is_read_and_read_again_when_somebody_asks() {
    story(async |story| {
        let volume = Volume::with(
            story,
            "mkdir team; cd team; printf '#!/bin/bash\\necho run\\n' > run.sh; echo one > v1; ln -s v1 latest; \
             echo other > ../secret",
        )
        .await?;
        let (first, run) = story.ran(&story.apply("tool", &spec()).await?).await?;
        assert_eq!(end(&run), End::SUCCEEDED, "{:?}", run.status);
        assert_eq!(run.status.unwrap().stdout.unwrap().tail, "run\none\n");
        let status = first.status.clone().unwrap();
        let root = status.root.context("no root")?;
        assert_eq!(
            (root.kind.as_str(), root.summary.as_str()),
            ("persistentVolumeClaim", "files:team")
        );
        // All of the root is the bundle.
        assert_eq!(root.revision, Some(status.bundle.unwrap().digest));
        no_reader_stays(story).await?;

        volume
            .write("second", "cd team; echo two > v2; ln -sfn v2 latest")
            .await?;
        volume.ask("1").await?;
        let (_, next) = story.ran_again(&first, run.metadata.name.as_deref()).await?;
        assert_eq!(next.status.unwrap().stdout.unwrap().tail, "run\ntwo\n");
        volume.remove().await
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn what_cannot_be_read_of_a_volume_is_named() {
    story(async |story| {
        let volume = Volume::with(story, "mkdir team; mkfifo team/pipe").await?;
        let refused = story.looked_at(&story.apply("tool", &spec()).await?).await?;
        let place = "code.sources[0]: root.persistentVolumeClaim: PersistentVolumeClaim files:";
        let (reason, message) = source_error(&refused).context("no error")?;
        assert_eq!(reason, "RootRefused");
        assert!(
            message.starts_with(&format!(
                "{place} `pipe` is a named pipe; only files, folders and links can be read"
            )),
            "{message}"
        );
        volume
            .write("second", "rm team/pipe; echo key > team/key; chmod 600 team/key")
            .await?;
        volume.ask("1").await?;
        let denied = story
            .until("tool", "is told of the key", |workspace: &CodeWorkspace| {
                source_error(workspace).is_some_and(|(_, message)| message.contains("`key`"))
            })
            .await?;
        let (reason, message) = source_error(&denied).context("no error")?;
        assert_eq!(reason, "RootRefused");
        assert!(
            message.starts_with(&format!(
                "{place} `key` may not be read by user 65532, as which volumes are read"
            )),
            "{message}"
        );
        no_reader_stays(story).await?;
        volume.remove().await
    })
    .await;
}
