//! Reads a volume through a short pod that the operator attaches to.

use std::io::Read;
use std::time::Duration;

use codeworkspace_bundle::{BundleReader, Caps, FileTree};
use codeworkspace_protocol::{BEGIN, FailedReading, FinishedReading, ReadReport, ReadingReader};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{AttachParams, DeleteParams, ListParams, PostParams, Preconditions};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, ResourceExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;
use tokio_util::io::SyncIoBridge;

use crate::controller::{Context, run};
use crate::pod::READER;

/// How long sending the files may take, once the pod runs.
pub const READING: Duration = Duration::from_mins(5);
/// How long a pod that is in the way may take to go.
const GOING: Duration = Duration::from_secs(30);
/// Bytes that wait between the connection and whoever reads them.
const BUFFER_BYTES: usize = 256 * 1024;
/// States of a container that do not pass without somebody's doing.
const STUCK: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// The files of a volume.
#[derive(Debug)]
pub struct Reading {
    /// The files.
    pub tree: FileTree,
    /// Their digest, and what was left out.
    pub report: FinishedReading,
}

/// Why there are none.
#[derive(Debug)]
pub enum Failure {
    /// The reader says why.
    Reported(FailedReading),
    /// The reader's pod does not run, for this reason.
    NotRunning(String),
    /// A pod that is not ours has the reader's name.
    Foreign(String),
    /// What it sent makes no sense or broke off.
    Broken(String),
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::NotRunning(match error {
            kube::Error::Api(status) => status.message.clone(),
            other => other.to_string(),
        })
    }
}

/// Reads through the given pod, which is made for that and gone afterwards. One that is left behind, because the operator was ended,
/// ends by its own deadline and goes with its workspace.
pub async fn read(context: &Context, pod: &Pod, caps: Caps) -> Result<Reading, Failure> {
    let namespace = pod.namespace().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    run::deny_network(context, &namespace)
        .await
        .map_err(|error| Failure::NotRunning(error.to_string()))?
        .map_err(Failure::NotRunning)?;
    let made = create(&api, pod).await?;
    let start = Duration::from_secs(context.configuration.runs.start_budget_seconds.unsigned_abs());
    let read = match wait_until_running(context, &api, &made, start).await {
        Ok(()) => timeout(READING, attach(&api, &made, caps))
            .await
            .unwrap_or_else(|_| {
                Err(Failure::Broken(format!(
                    "it took longer than {} s",
                    READING.as_secs()
                )))
            }),
        Err(failure) => Err(failure),
    };
    if let Err(error) = delete(&api, &made).await {
        tracing::warn!(namespace, pod = made.name_any(), %error, "a reader's pod cannot be deleted; it ends by itself");
    }
    read
}

async fn create(api: &Api<Pod>, pod: &Pod) -> Result<Pod, Failure> {
    let name = pod.name_any();
    match api.create(&PostParams::default(), pod).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        created => return Ok(created?),
    }
    // An earlier try has left it, or somebody made a pod of that name.
    if let Some(there) = api.get_opt(&name).await? {
        let (Some(uid), true) = (there.uid(), is_of_same_owner(pod, &there)) else {
            return Err(Failure::Foreign(name));
        };
        delete(api, &there).await?;
        let gone = await_condition(api.clone(), &name, conditions::is_deleted(&uid));
        if timeout(GOING, gone).await.is_err() {
            return Err(Failure::NotRunning(format!("the earlier pod {name} does not go")));
        }
    }
    Ok(api.create(&PostParams::default(), pod).await?)
}

/// Whether a pod was made for the same workspace. A name alone proves nothing.
fn is_of_same_owner(pod: &Pod, there: &Pod) -> bool {
    let owners = |pod: &Pod| -> Vec<String> {
        pod.owner_references()
            .iter()
            .map(|owner| owner.uid.clone())
            .collect()
    };
    owners(pod) == owners(there) && pod.labels() == there.labels()
}

async fn delete(api: &Api<Pod>, pod: &Pod) -> Result<(), kube::Error> {
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: pod.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match api.delete(&pod.name_any(), &parameters).await {
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        deleted => deleted.map(|_| ()),
    }
}

/// How far a reader's pod has come.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    Running,
    /// It may still run; what holds it up, if anything is known.
    Waiting(Option<String>),
    /// It will not, for this reason.
    Never(String),
}

fn standing(pod: Option<&Pod>) -> Standing {
    let Some(pod) = pod else {
        return Standing::Never("somebody deleted its pod".to_owned());
    };
    let Some(status) = &pod.status else {
        return Standing::Waiting(None);
    };
    let said = |reason: &Option<String>, message: &Option<String>| match (reason, message) {
        (Some(reason), Some(message)) => Some(format!("{reason}: {message}")),
        (Some(text), None) | (None, Some(text)) => Some(text.clone()),
        (None, None) => None,
    };
    let state = status
        .container_statuses
        .iter()
        .flatten()
        .find(|container| container.name == READER)
        .and_then(|container| container.state.as_ref());
    if let Some("Failed" | "Succeeded") = status.phase.as_deref() {
        let ended = state.and_then(|state| state.terminated.as_ref());
        let why = said(&status.reason, &status.message)
            .or_else(|| ended.and_then(|ended| said(&ended.reason, &ended.message)))
            .unwrap_or_else(|| "without a reason".to_owned());
        return Standing::Never(format!("its pod ended before it could be asked: {why}"));
    }
    if state.is_some_and(|state| state.running.is_some()) {
        return Standing::Running;
    }
    if let Some(waiting) = state.and_then(|state| state.waiting.as_ref()) {
        let is_stuck = waiting
            .reason
            .as_deref()
            .is_some_and(|reason| STUCK.contains(&reason));
        return match said(&waiting.reason, &waiting.message) {
            Some(why) if is_stuck => Standing::Never(why),
            why => Standing::Waiting(why),
        };
    }
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    Standing::Waiting(unscheduled.and_then(|condition| said(&condition.reason, &condition.message)))
}

async fn wait_until_running(
    context: &Context,
    api: &Api<Pod>,
    pod: &Pod,
    limit: Duration,
) -> Result<(), Failure> {
    let name = pod.name_any();
    let has_settled = |pod: Option<&Pod>| !matches!(standing(pod), Standing::Waiting(_));
    let settled = timeout(limit, await_condition(api.clone(), &name, has_settled)).await;
    let now = match settled {
        Ok(Ok(now)) => now,
        Ok(Err(error)) => {
            return Err(Failure::NotRunning(format!("its pod cannot be watched: {error}")));
        }
        Err(_) => api.get_opt(&name).await?,
    };
    match standing(now.as_ref()) {
        Standing::Running => Ok(()),
        Standing::Never(why) => Err(Failure::NotRunning(why)),
        Standing::Waiting(why) => {
            let told = last_warning(context, pod).await.or(why);
            let told = told.unwrap_or_else(|| "without a reason".to_owned());
            let seconds = limit.as_secs();
            Err(Failure::NotRunning(format!(
                "its pod did not start within {seconds} s: {told}"
            )))
        }
    }
}

/// What the kubelet, or whoever attaches volumes, last complained about: a pod's status says nothing of a volume that cannot be mounted.
async fn last_warning(context: &Context, pod: &Pod) -> Option<String> {
    let api: Api<Event> = Api::namespaced(context.client.clone(), &pod.namespace()?);
    let of_pod = format!("involvedObject.uid={},type=Warning", pod.uid()?);
    let events = api.list(&ListParams::default().fields(&of_pod)).await.ok()?;
    let last = events
        .items
        .into_iter()
        .max_by_key(|event| event.last_timestamp.clone().map(|time| time.0))?;
    Some(format!(
        "{}: {}",
        last.reason.unwrap_or_default(),
        last.message.unwrap_or_default()
    ))
}

async fn attach(api: &Api<Pod>, pod: &Pod, caps: Caps) -> Result<Reading, Failure> {
    let parameters = AttachParams::default()
        .container(READER)
        .stdin(true)
        .stdout(true)
        .stderr(false)
        .max_stdout_buf_size(BUFFER_BYTES);
    let mut attached = api.attach(&pod.name_any(), &parameters).await?;
    let broken = |what: &str| Failure::Broken(what.to_owned());
    let mut input = attached.stdin().ok_or_else(|| broken("it has no input"))?;
    let output = attached.stdout().ok_or_else(|| broken("it has no output"))?;
    // The reader's input stays open until all of its output has come; see there.
    let asked = async { input.write_all(BEGIN).await.and(input.flush().await) };
    asked
        .await
        .map_err(|error| Failure::Broken(format!("it cannot be asked: {error}")))?;
    let output = SyncIoBridge::new(output);
    let read = tokio::task::spawn_blocking(move || decode(output, caps)).await;
    drop(input);
    read.unwrap_or_else(|_| Err(broken("its files cannot be taken")))
}

/// Takes nothing on trust: the bundle is checked as every bundle is, and its digest must be the one that the report names.
fn decode(output: impl Read, caps: Caps) -> Result<Reading, Failure> {
    let mut stream = ReadingReader::new(output);
    let bundle = take(&mut stream, caps);
    let report = match stream.report() {
        Ok(ReadReport::Finished(report)) => report,
        Ok(ReadReport::Failed(failed)) => return Err(Failure::Reported(failed)),
        Err(error) => return Err(Failure::Broken(error.to_string())),
    };
    let (tree, digest) = bundle.map_err(Failure::Broken)?;
    if digest == report.digest {
        Ok(Reading { tree, report })
    } else {
        Err(Failure::Broken(format!(
            "its files have the digest {digest}, and not {}",
            report.digest
        )))
    }
}

fn take(stream: impl Read, caps: Caps) -> Result<(FileTree, String), String> {
    let mut bundle = BundleReader::with_caps(stream, caps).map_err(|error| error.to_string())?;
    let mut tree = FileTree::new();
    for entry in bundle.by_ref() {
        let (path, entry) = entry.map_err(|error| error.to_string())?;
        tree.insert(path, entry).map_err(|error| error.to_string())?;
    }
    let digest = bundle.finish().map_err(|error| error.to_string())?;
    Ok((tree, digest.to_string()))
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
