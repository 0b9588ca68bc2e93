//! Artifacts of Flux: from what the status of a Flux source says to files.
//!
//! That status may be written by tenants. So it can choose neither the host, which the configuration names, nor another
//! object's artifact on it, which everybody who knows its address could read there; and nothing is used whose digest is not
//! the one that the status names.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codeworkspace_bundle::{BundlePath, Digest, FileTree, LinkPolicy, link_destination, nearest_paths};
use futures::future::FutureExt as _;
use reqwest::{StatusCode, Url, redirect};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::archive::{self, Layout, RepositoryTree};
use crate::configuration::{ConfigurationError, GithubConfiguration, Host, Limits, authority, parse_hosts};
use crate::error::{SourceError, SourceErrorReason as Reason, listed, quoted};
use crate::flights::Flights;
use crate::recent::RecentTrees;

/// Memory for artifacts that several workspaces use, or one again and again.
const KEPT_BYTES: u64 = 64 * 1024 * 1024;
/// How many paths one sentence names.
const NAMES_SHOWN: usize = 3;

/// Files, and what their user should know.
type Read = (Arc<FileTree>, Vec<String>);

/// Where an artifact is, and what it must be: checked, and allowed to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    url: Url,
    digest: Digest,
}

impl Artifact {
    /// The digest of its bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Fetches artifacts from the configured hosts. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Artifacts(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    hosts: Vec<Host>,
    limits: Limits,
    slots: Semaphore,
    trees: RecentTrees<Vec<String>>,
    flights: Flights<String, Result<Read, SourceError>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Artifacts")
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

impl Artifacts {
    /// Artifacts may be on `hosts` (`host` or `host:port`); sizes and times are limited as those of GitHub's archives.
    pub fn new(hosts: &[String], limits: &GithubConfiguration) -> Result<Self, ConfigurationError> {
        let slots = Semaphore::new(limits.concurrent_downloads);
        let limits = Limits::parse(limits)?;
        let http = reqwest::Client::builder()
            .user_agent(concat!("codeworkspace-operator/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            // The digest is of the bytes that travel.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            // Artifacts are in the cluster. A proxy of the environment would be another host than the configured one.
            .no_proxy()
            .connect_timeout(limits.connect)
            .build()
            .map_err(|error| ConfigurationError::Client(error.to_string()))?;
        Ok(Self(Arc::new(Inner {
            http,
            hosts: parse_hosts("flux.hosts", hosts)?,
            limits,
            slots,
            trees: RecentTrees::new(KEPT_BYTES),
            flights: Flights::default(),
        })))
    }

    /// Checks what the status of an object says of its artifact. `owner` is the folder of the object's artifacts,
    /// `kind/namespace/name` with the kind in lower case, as source-controller keeps them.
    pub fn check(&self, url: &str, digest: &str, owner: &str) -> Result<Artifact, SourceError> {
        let refused = |text: String| SourceError::new(Reason::ArchiveRefused, text);
        let digest = digest.parse().map_err(|_| {
            refused(format!(
                "the artifact's digest {} is not `sha256:` and 64 hex digits, which are Flux's default",
                quoted(digest)
            ))
        })?;
        let parsed = Url::parse(url).map_err(|_| refused("the artifact's address is no URL".to_owned()))?;
        if !matches!(parsed.scheme(), "http" | "https")
            || !parsed.username().is_empty()
            || parsed.password().is_some()
            || parsed.query().is_some()
            || parsed.fragment().is_some()
        {
            let text = "the artifact's address has more than a host and a path, or is neither http nor https";
            return Err(refused(text.to_owned()));
        }
        if !self.0.hosts.iter().any(|host| host.matches(&parsed)) {
            return Err(refused(format!(
                "the artifact is on {}, which `flux.hosts` of the operator's configuration does not list",
                quoted(authority(&parsed))
            )));
        }
        let file = parsed
            .path()
            .strip_prefix('/')
            .and_then(|path| path.strip_prefix(owner)?.strip_prefix('/'));
        // The URL parser has resolved every `..`, but for encoded characters, which Flux never writes.
        if file.is_none_or(|file| file.is_empty() || file.contains(['/', '%'])) {
            return Err(refused(format!(
                "the artifact's address does not lie in the folder of this object, {}",
                quoted(owner)
            )));
        }
        Ok(Artifact { url: parsed, digest })
    }

    /// The files of an artifact, or of a folder of it, fetched once for all who ask at the same time and kept for a while.
    pub async fn fetch(
        &self,
        artifact: &Artifact,
        folder: Option<&BundlePath>,
        links: LinkPolicy,
    ) -> Result<Read, SourceError> {
        let folder_text = folder.map_or("", BundlePath::as_str);
        let identity = format!("{} {links:?} {folder_text}", artifact.digest);
        let (inner, artifact, folder) = (Arc::clone(&self.0), artifact.clone(), folder.cloned());
        self.0
            .flights
            .join(identity.clone(), move || {
                async move {
                    if let Some(kept) = inner.trees.get(&identity) {
                        return Ok(kept);
                    }
                    let tree = inner.read(&artifact).await?;
                    let (tree, warnings) = narrow(&tree, folder.as_ref(), links)?;
                    let tree = Arc::new(tree);
                    inner.trees.put(identity, Arc::clone(&tree), warnings.clone());
                    Ok((tree, warnings))
                }
                .boxed()
            })
            .await
    }
}

impl Inner {
    async fn read(&self, artifact: &Artifact) -> Result<RepositoryTree, SourceError> {
        // Closed never, so an error cannot come.
        let _slot = self.slots.acquire().await;
        let host = quoted(authority(&artifact.url));
        let bytes = timeout(self.limits.total, self.download(artifact, &host))
            .await
            .map_err(|_| slow(&host, self.limits.total))??;
        let (digest, limits) = (artifact.digest, self.limits.archive);
        tokio::task::spawn_blocking(move || {
            let found = Digest::of(&bytes);
            if found != digest {
                let text =
                    format!("the artifact has the digest {found}, and not {digest} as its source says");
                return Err(SourceError::new(Reason::ArchiveRefused, text));
            }
            Ok(archive::read(&bytes[..], Layout::Artifact, &limits)?)
        })
        .await
        .map_err(|_| SourceError::new(Reason::ArchiveRefused, "the artifact cannot be read"))?
    }

    async fn download(&self, artifact: &Artifact, host: &str) -> Result<Vec<u8>, SourceError> {
        let request = self.http.get(artifact.url.clone()).send();
        let mut response = self.patiently(host, request).await?;
        let status = response.status();
        if status.is_redirection() {
            let text = format!("{host} redirects the artifact elsewhere, which is never followed");
            return Err(SourceError::new(Reason::RedirectRefused, text));
        }
        if status != StatusCode::OK {
            let text = if status == StatusCode::NOT_FOUND {
                format!("{host} has the artifact no more; Flux may just be replacing it")
            } else {
                format!("{host} answers {} instead of the artifact", status.as_u16())
            };
            return Err(SourceError::new(Reason::FetchFailed, text));
        }
        self.check_size(response.content_length().unwrap_or_default())?;
        let mut bytes = Vec::new();
        while let Some(piece) = self.next(host, &mut response).await? {
            self.check_size((bytes.len() + piece.len()) as u64)?;
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    async fn next(&self, host: &str, response: &mut reqwest::Response) -> Result<Option<Bytes>, SourceError> {
        self.patiently(host, response.chunk()).await
    }

    async fn patiently<T>(
        &self,
        host: &str,
        work: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, SourceError> {
        match timeout(self.limits.idle, work).await {
            Ok(Ok(done)) => Ok(done),
            // What the client says may hold the address.
            Ok(Err(error)) => {
                let what = if error.is_connect() {
                    "cannot be reached"
                } else {
                    "broke off"
                };
                Err(SourceError::new(Reason::FetchFailed, format!("{host} {what}")))
            }
            Err(_) => Err(slow(host, self.limits.idle)),
        }
    }

    fn check_size(&self, bytes: u64) -> Result<(), SourceError> {
        let limit = self.limits.download_bytes;
        if bytes > limit {
            let text = format!(
                "the artifact has at least {bytes} bytes, more than the limit of {limit} (maxDownloadBytes of the operator's \
                 configuration)"
            );
            return Err(SourceError::new(Reason::TooLarge, text));
        }
        Ok(())
    }
}

fn slow(host: &str, limit: Duration) -> SourceError {
    let text = format!("{host} did not answer within {} seconds", limit.as_secs());
    SourceError::new(Reason::FetchFailed, text)
}

/// Takes the files below `folder`. Flux leaves links out of what it packs itself, but may pass on an archive of others.
fn narrow(
    tree: &RepositoryTree,
    folder: Option<&BundlePath>,
    links: LinkPolicy,
) -> Result<(FileTree, Vec<String>), SourceError> {
    let mut files = FileTree::new();
    let mut warnings = Vec::new();
    for (path, entry) in &tree.entries {
        let Some(path) = folder.map_or_else(|| Some(path.clone()), |folder| path.below(folder)) else {
            continue;
        };
        if let codeworkspace_bundle::Entry::Link { target } = entry
            && let Err(error) = link_destination(&path, target)
        {
            match links {
                LinkPolicy::Keep => {
                    let text = format!("{error}; set `links: Skip` to leave such links out");
                    return Err(SourceError::new(Reason::LinkRefused, text));
                }
                LinkPolicy::Skip => {
                    warnings.push(format!("{error}; left out since `links` is `Skip`"));
                    continue;
                }
            }
        }
        files
            .insert(path, entry.clone())
            .map_err(|error| SourceError::new(Reason::ArchiveRefused, error.to_string()))?;
    }
    match folder {
        Some(folder) if files.is_empty() => Err(missing(tree, folder)),
        _ => Ok((files, warnings)),
    }
}

fn missing(tree: &RepositoryTree, folder: &BundlePath) -> SourceError {
    let folders: std::collections::BTreeSet<&str> =
        tree.entries.keys().flat_map(BundlePath::folders).collect();
    let near: Vec<String> = nearest_paths(folder.as_str(), folders.iter().copied())
        .into_iter()
        .map(str::to_owned)
        .collect();
    let hint = if near.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", listed(&near, NAMES_SHOWN))
    };
    let text = format!("the artifact has no folder {}{hint}", quoted(folder.as_str()));
    SourceError::new(Reason::PathNotFound, text)
}

#[cfg(test)]
mod tests;
