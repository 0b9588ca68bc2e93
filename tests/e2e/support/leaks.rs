//! That no secret is written down anywhere: asked at the end of each story about everything that it produced.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use codeworkspace_api::{CodeInterpreter, CodeRun, CodeSession, CodeWorkspace, SecretInventory};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, LogParams};
use kube::core::PartialObjectMeta;
use serde::Serialize;

use super::operator::{NAMESPACE, PROCESSES};
use super::{Operator, Story};

/// What only stands in secrets: the head of an installation's token, which the server that plays GitHub makes itself, a private key, and
/// the query of an address that opens a download.
const TELLTALES: [&str; 3] = ["ghs_", "PRIVATE KEY", "?token="];
/// Shorter lines of a secret, such as numbers of Apps, may well stand elsewhere.
const LEAST_LENGTH: usize = 16;

/// Every secret that a story of this process used, line by line.
static SECRETS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Has a secret looked for from now on.
pub fn keep_secret(secret: &str) {
    let lines = secret.lines().map(str::trim);
    let lines = lines
        .filter(|line| line.len() >= LEAST_LENGTH && !line.starts_with("-----"))
        .map(str::to_owned);
    SECRETS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(lines);
}

/// Where a secret stands that should not, without the secret.
pub async fn leaks(story: &Story) -> Result<Vec<String>> {
    let mut places = vec![
        ("CodeWorkspaces", text(&story.list::<CodeWorkspace>().await?)?),
        ("CodeRuns", text(&story.list::<CodeRun>().await?)?),
        (
            "SecretInventories",
            text(&story.list::<SecretInventory>().await?)?,
        ),
        ("CodeInterpreters", text(&story.list::<CodeInterpreter>().await?)?),
        ("CodeSessions", text(&story.list::<CodeSession>().await?)?),
        ("Events", text(&story.list::<Event>().await?)?),
        ("Pods", text(&story.list::<Pod>().await?)?),
        (
            "metadata of ConfigMaps",
            text(&story.list::<PartialObjectMeta<ConfigMap>>().await?)?,
        ),
    ];
    places.push(("metrics", Operator::new(&story.client).metrics().await?));
    let processes: Api<Pod> = Api::namespaced(story.client.clone(), NAMESPACE);
    for pod in processes.list(&ListParams::default().labels(PROCESSES)).await? {
        let parameters = LogParams {
            since_time: Some(story.began),
            ..LogParams::default()
        };
        let name = pod.name_any();
        let log = processes.logs(&name, &parameters).await.context(name)?;
        places.push(("the log of operator or gateway", log));
    }
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let looked_for: Vec<&str> = TELLTALES
        .into_iter()
        .chain(secrets.iter().map(String::as_str))
        .collect();
    Ok(places
        .iter()
        .flat_map(|(place, text)| text.lines().map(move |line| (place, line)))
        .filter_map(|(place, line)| {
            let found = looked_for.iter().find_map(|secret| line.find(secret))?;
            let before: String = line.get(..found)?.chars().rev().take(200).collect();
            let before: String = before.chars().rev().collect();
            Some(format!("{place}: after `{before}`"))
        })
        .collect())
}

/// One object a line.
fn text<K: Serialize>(objects: &[K]) -> Result<String> {
    let lines = objects.iter().map(serde_json::to_string);
    Ok(lines.collect::<Result<Vec<_>, _>>()?.join("\n"))
}
