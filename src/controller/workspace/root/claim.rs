//! A volume as a root. It is read when the manifest changes or somebody asks, and not at each scan: every reading is a pod.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codeworkspace_api::{CodeWorkspace, RootStatus, labels, reason};
use codeworkspace_bundle::{Caps, FileTree};
use codeworkspace_protocol::{FailedReading, FinishedReading, ReadFailure};
use codeworkspace_source::{LinkPolicy, RecentTrees, SourceErrorReason};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use tokio::sync::Semaphore;

use super::definition::ClaimDefinition;
use super::reader::{self, Failure, Reading};
use super::{Content, Files, Root};
use crate::controller::fault::{Fault, Healing};
use crate::controller::workspace::lookup::Lookup;
use crate::pod::ReaderPod;

const KIND: &str = "persistentVolumeClaim";
const FIELD: &str = "root.persistentVolumeClaim";
/// Volumes that are read at once. Reconciles wait for their reading, so that there are fewer of these than of those.
const READERS: usize = 4;
/// Memory for files of volumes, so that a workspace whose other sources have to be tried again does not read its volume again.
const RECENT_BYTES: u64 = 64 * 1024 * 1024;
/// Failed readings that are remembered.
const FAILED: usize = 1024;
/// Until a reading is tried again that may succeed without anybody's doing.
const RETRY: Duration = Duration::from_mins(1);
/// Until it is tried again when others are being read.
const TURN: Duration = Duration::from_secs(10);

/// What is remembered of a reading beside its files: their digest, and warnings.
type Note = (String, Vec<String>);

/// What is remembered of volumes, and how many are read at once.
#[derive(Debug)]
pub struct Volumes {
    slots: Semaphore,
    recent: RecentTrees<Note>,
    /// By identity: what a volume holds that no new reading would mend.
    failed: Mutex<HashMap<String, Fault>>,
}

impl Default for Volumes {
    fn default() -> Self {
        Self {
            slots: Semaphore::new(READERS),
            recent: RecentTrees::new(RECENT_BYTES),
            failed: Mutex::default(),
        }
    }
}

/// A claim that can be read.
#[derive(Debug)]
pub struct Volume {
    definition: ClaimDefinition,
    claim: PersistentVolumeClaim,
}

/// Finds out whether the claim can be read. `owner` is the workspace whose root it is.
pub async fn look_up(
    definition: &ClaimDefinition,
    owner: &CodeWorkspace,
    lookup: &Lookup<'_>,
) -> Result<Root, Fault> {
    let name = &definition.name;
    let api: Api<PersistentVolumeClaim> = Api::namespaced(lookup.client(), lookup.namespace());
    let claim = api.get_opt(name).await.map_err(|error| {
        let message = format!("{FIELD}: PersistentVolumeClaim {name} cannot be read: {error}");
        Fault::unresolved(reason::ROOT_NOT_READY, Healing::ByItself, message)
    })?;
    let Some(claim) = claim else {
        let message = format!("{FIELD}: there is no PersistentVolumeClaim {name} in this namespace");
        return Err(Fault::unresolved(reason::ROOT_NOT_FOUND, Healing::ByOthers, message).again_soon());
    };
    check_bound(&claim)?;
    let folder = definition
        .path
        .as_ref()
        .map_or_else(String::new, |path| format!(":{path}"));
    let asked = |workspace: &CodeWorkspace| {
        let annotation = workspace.annotations().get(labels::RECONCILE_AT).cloned();
        annotation.unwrap_or_default()
    };
    let identity = serde_json::json!([
        "volume",
        claim.uid(),
        definition.path,
        [owner.uid(), asked(owner)],
        owner.metadata.generation,
        asked(lookup.asker()),
    ]);
    let summary = format!("{name}{folder}");
    // What the last reading found stays true until the next one.
    let former = owner.status.as_ref().and_then(|status| status.root.as_ref());
    let status = RootStatus {
        kind: KIND.to_owned(),
        revision: former
            .filter(|former| former.kind == KIND && former.summary == summary)
            .and_then(|former| former.revision.clone()),
        summary,
    };
    let volume = Volume {
        definition: definition.clone(),
        claim,
    };
    Ok(Root::new(
        identity.to_string(),
        status,
        Content::Volume(Box::new(volume)),
    ))
}

fn check_bound(claim: &PersistentVolumeClaim) -> Result<(), Fault> {
    let name = claim.name_any();
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    let problem = match phase {
        _ if claim.metadata.deletion_timestamp.is_some() => "is being deleted".to_owned(),
        Some("Bound") => return Ok(()),
        phase => format!(
            "is {} and has no volume yet; it gets one, and files, from whatever writes to it first",
            phase.unwrap_or("Pending")
        ),
    };
    let message = format!("{FIELD}: PersistentVolumeClaim {name} {problem}");
    Err(Fault::unresolved(reason::ROOT_NOT_READY, Healing::ByOthers, message).again_soon())
}

/// Reads the files, unless they, or why there are none, are known from an earlier reading.
pub async fn files(
    volume: &Volume,
    identity: &str,
    links: LinkPolicy,
    lookup: &Lookup<'_>,
) -> Result<Files, Fault> {
    let context = lookup.context();
    let volumes = &context.volumes;
    let identity = format!("{identity} {links:?}");
    if let Some((tree, (digest, warnings))) = volumes.recent.get(&identity) {
        return Ok(files_of(tree, digest, warnings));
    }
    let known = volumes.failed().get(&identity).cloned();
    if let Some(fault) = known {
        return Err(fault);
    }
    let Ok(_slot) = volumes.slots.try_acquire() else {
        let message = format!("{FIELD}: other volumes are being read; this one's turn comes");
        return Err(Fault {
            retry_after: Some(TURN),
            ..Fault::unresolved(reason::ROOT_NOT_READY, Healing::ByItself, message)
        });
    };
    let usage = usage(&volume.claim, &active_pods(lookup).await?);
    if let Usage::Exclusively(user) = &usage {
        return Err(in_use(
            volume,
            user,
            "which allows a single pod (ReadWriteOncePod)",
        ));
    }
    let user = match &usage {
        Usage::OnNode(user) => Some(user),
        Usage::Free | Usage::Exclusively(_) => None,
    };
    let caps: Caps = context.configuration.bundle.into();
    let start = context.configuration.runs.start_budget_seconds;
    let pod = ReaderPod {
        workspace: lookup.asker(),
        claim: &volume.definition.name,
        folder: volume.definition.path.as_ref(),
        identity: &identity,
        node: user.map(|user| user.node.as_str()),
        skip_links: links == LinkPolicy::Skip,
        caps,
        deadline_seconds: start.saturating_add(reader::READING.as_secs().cast_signed()),
        runner_image: &context.configuration.runner_image,
    }
    .build();
    let began = std::time::Instant::now();
    match Box::pin(reader::read(context, &pod, caps)).await {
        Ok(Reading { tree, report }) => {
            let (files, milliseconds) = (tree.len(), began.elapsed().as_millis());
            let claim = &volume.definition.name;
            tracing::info!(
                namespace = lookup.namespace(),
                claim,
                files,
                milliseconds,
                "a volume was read"
            );
            let (tree, warnings) = (Arc::new(tree), warnings(&report));
            let note = (report.digest.clone(), warnings.clone());
            volumes.recent.put(identity, Arc::clone(&tree), note);
            Ok(files_of(tree, report.digest, warnings))
        }
        Err(Failure::Reported(failed)) => {
            let (fault, is_lasting) = reported(volume, &failed);
            if is_lasting {
                volumes.remember(identity, &fault);
            }
            Err(fault)
        }
        Err(Failure::NotRunning(why)) => Err(match user {
            Some(user) => in_use(volume, user, &format!("and could not be read there: {why}")),
            None => not_read(volume, &why, Healing::ByItself),
        }),
        Err(Failure::Foreign(pod)) => {
            let why = format!("a pod that is not the operator's has the name {pod}; delete it");
            Err(not_read(volume, &why, Healing::ByOthers))
        }
        Err(Failure::Broken(why)) => Err(not_read(volume, &why, Healing::ByItself)),
    }
}

fn files_of(tree: Arc<FileTree>, digest: String, warnings: Vec<String>) -> Files {
    Files {
        tree,
        revision: Some(digest),
        warnings,
    }
}

impl Volumes {
    fn failed(&self) -> std::sync::MutexGuard<'_, HashMap<String, Fault>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, identity: String, fault: &Fault) {
        let mut failed = self.failed();
        // What is forgotten is only read once more.
        if failed.len() >= FAILED {
            failed.clear();
        }
        failed.insert(identity, fault.clone());
    }
}

fn warnings(report: &FinishedReading) -> Vec<String> {
    let shown = report.skipped.len() as u64;
    let more = report.skipped_total.saturating_sub(shown);
    let mut warnings: Vec<_> = report
        .skipped
        .iter()
        .map(|link| format!("{link}; left out since `links` is `Skip`"))
        .collect();
    if more > 0 {
        warnings.push(format!("{more} more links were left out"));
    }
    warnings
}

/// What a reader's report means, and whether another reading would say the same until somebody changes the volume.
fn reported(volume: &Volume, failed: &FailedReading) -> (Fault, bool) {
    let name = &volume.definition.name;
    let (reason, healing, hint) = match failed.reason {
        ReadFailure::NotFound => (reason::PATH_NOT_FOUND, Healing::ByOthers, ""),
        ReadFailure::PermissionDenied => (
            reason::ROOT_REFUSED,
            Healing::ByOthers,
            "; make it readable for everybody, for example by `chmod -R a+rX`, since nothing in the volume is changed to read it",
        ),
        ReadFailure::Refused => (
            reason::ROOT_REFUSED,
            Healing::ByOthers,
            "; remove it, or set `path` to a folder without it; links that cannot be kept are left out with `links: Skip`",
        ),
        ReadFailure::TooLarge => (
            SourceErrorReason::TooLarge.as_str(),
            Healing::ByOthers,
            "; set `path` to a folder that has less",
        ),
        ReadFailure::Changed => (
            reason::ROOT_NOT_READY,
            Healing::ByItself,
            "; it is read again in a while",
        ),
        ReadFailure::Unreadable => (reason::ROOT_NOT_READY, Healing::ByItself, ""),
    };
    let is_lasting = healing == Healing::ByOthers;
    let again = if is_lasting {
        "; then let it be read again by a new value of the annotation codeworkspace.dev/reconcile-at"
    } else {
        ""
    };
    let message = format!(
        "{FIELD}: PersistentVolumeClaim {name}: {}{hint}{again}",
        failed.message
    );
    let mut fault = Fault::unresolved(reason, healing, message);
    if failed.reason == ReadFailure::TooLarge {
        fault.class = reason::BUNDLE_SIZE_ERROR;
    }
    fault.retry_after = (!is_lasting).then_some(RETRY);
    (fault, is_lasting)
}

fn not_read(volume: &Volume, why: &str, healing: Healing) -> Fault {
    let name = &volume.definition.name;
    let message = format!("{FIELD}: PersistentVolumeClaim {name} cannot be read: {why}");
    Fault {
        retry_after: Some(RETRY),
        ..Fault::unresolved(reason::ROOT_NOT_READY, healing, message)
    }
}

/// A pod that uses a claim, where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    pod: String,
    node: String,
}

/// How far others keep a claim from being read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Usage {
    Free,
    /// It can be read on this pod's node only.
    OnNode(User),
    /// It cannot be read.
    Exclusively(User),
}

fn usage(claim: &PersistentVolumeClaim, pods: &[Pod]) -> Usage {
    let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
    let has = |mode: &str| modes.is_some_and(|modes| modes.iter().any(|found| found == mode));
    if has("ReadWriteMany") || has("ReadOnlyMany") {
        return Usage::Free;
    }
    let name = claim.name_any();
    let mounts_it = |pod: &&Pod| {
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        volumes
            .filter_map(|volume| volume.persistent_volume_claim.as_ref())
            .any(|source| source.claim_name == name)
    };
    let user = pods.iter().filter(mounts_it).find_map(|pod| {
        Some(User {
            pod: pod.name_any(),
            node: pod.spec.as_ref()?.node_name.clone()?,
        })
    });
    match user {
        None => Usage::Free,
        Some(user) if has("ReadWriteOnce") => Usage::OnNode(user),
        Some(user) => Usage::Exclusively(user),
    }
}

async fn active_pods(lookup: &Lookup<'_>) -> Result<Vec<Pod>, Fault> {
    let api: Api<Pod> = Api::namespaced(lookup.client(), lookup.namespace());
    let active = ListParams::default().fields("status.phase!=Succeeded,status.phase!=Failed");
    let pods = api.list(&active).await.map_err(|error| {
        let message = format!("{FIELD}: the pods of the namespace cannot be listed: {error}");
        Fault::unresolved(reason::ROOT_NOT_READY, Healing::ByItself, message)
    })?;
    Ok(pods.items)
}

fn in_use(volume: &Volume, user: &User, why: &str) -> Fault {
    let message = format!(
        "{FIELD}: PersistentVolumeClaim {} is in use by pod {} on node {}, {why}; it is read when that pod has ended",
        volume.definition.name, user.pod, user.node
    );
    Fault::unresolved(reason::ROOT_IN_USE, Healing::ByOthers, message).again_soon()
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
