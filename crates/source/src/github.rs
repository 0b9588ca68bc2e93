//! Files of GitHub repositories: look-up, download, and the caches between.

mod answer;
mod breaker;
mod client;
mod download;
mod lookup;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use codeworkspace_bundle::FileTree;
use codeworkspace_bundle::code::{CommitId, GitReference, GithubSource, Repository};
use futures::future::FutureExt as _;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::archive::RepositoryTree;
use crate::cache::{CommitKey, Lookups, ReferenceKey, Refusals, Resolved, Trees};
use crate::clock::Clock;
use crate::configuration::{ConfigurationError, Endpoints, GithubConfiguration, Limits};
use crate::error::{SourceError, SourceErrorReason as Reason};
use crate::flights::Flights;
use crate::link_policy::LinkPolicy;
use crate::narrow::narrow;
use client::{Client, seconds};

pub use answer::RateLimit;

/// A source with its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Materialized {
    /// The commit that the files are of.
    pub revision: CommitId,
    /// The files that `path` takes, where `as` places them.
    pub tree: Arc<FileTree>,
    /// Set when GitHub could not be asked and the files are of the last commit that was known.
    pub stale: Option<SourceError>,
    /// What the manifest's author should know: files that the archive lacks, links that were left out, a new name of the
    /// repository.
    pub warnings: Vec<String>,
}

/// Where a source leads, without its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The commit.
    pub commit: CommitId,
    /// Set when GitHub could not be asked and the commit is the last one that was known.
    pub stale: Option<SourceError>,
}

/// Counts since the start, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Requests to the API, which count against its rate limit.
    pub api_requests: u64,
    /// Requests to download hosts.
    pub download_requests: u64,
    /// Trees that were served from memory.
    pub tree_cache_hits: u64,
    /// Memory that cached trees take, in bytes.
    pub tree_cache_bytes: u64,
    /// The rate limit, as the API last told it.
    pub rate_limit: Option<RateLimit>,
}

/// Resolves `github` sources. Clones share connections, caches and limits.
#[derive(Clone)]
pub struct Github(Arc<Inner>);

struct Inner {
    client: Client,
    clock: Arc<dyn Clock>,
    anonymous: bool,
    lookups: Lookups,
    trees: Trees,
    refusals: Refusals,
    tree_hits: AtomicU64,
    downloads: Arc<Semaphore>,
    looking_up: Flights<ReferenceKey, Result<Resolved, SourceError>>,
    downloading: Flights<CommitKey, Result<Arc<RepositoryTree>, SourceError>>,
}

impl fmt::Debug for Github {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Github")
            .field("client", &self.0.client)
            .finish_non_exhaustive()
    }
}

/// A source's repository and reference, as messages name it.
struct Subject<'a>(&'a GithubSource);

impl fmt::Display for Subject<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.0.repository, self.0.reference)
    }
}

impl Github {
    /// Makes a resolver for the configured host. Asks nobody yet.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a resolver is made from a configuration once"
    )]
    pub fn new(
        configuration: GithubConfiguration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigurationError> {
        let endpoints = Endpoints::parse(&configuration)?;
        let limits = Limits::parse(&configuration)?;
        let client = Client::new(endpoints, limits, Arc::clone(&clock))?;
        Ok(Self(Arc::new(Inner {
            client,
            clock,
            anonymous: configuration.anonymous,
            lookups: Lookups::new(limits.lookup_floor),
            trees: Trees::new(configuration.tree_cache_bytes),
            refusals: Refusals::new(limits.lookup_floor),
            tree_hits: AtomicU64::new(0),
            downloads: Arc::new(Semaphore::new(configuration.concurrent_downloads)),
            looking_up: Flights::default(),
            downloading: Flights::default(),
        })))
    }

    /// The commit that a source leads to, without its files: whoever made something of that commit before needs no more. A full
    /// commit id asks nobody; everything else as in [`materialize`](Self::materialize).
    pub async fn resolve(&self, source: &GithubSource) -> Result<Resolution, SourceError> {
        if let GitReference::Commit(commit) = &source.reference {
            return Ok(Resolution {
                commit: commit.clone(),
                stale: None,
            });
        }
        self.check_anonymous()?;
        let key = self.0.reference_key(source);
        match self.look_up(&key).await {
            Ok(resolved) => Ok(Resolution {
                commit: resolved.commit,
                stale: None,
            }),
            Err(error) => {
                let error = error.about(&Subject(source));
                match self.0.lookups.last_good(&key).filter(|_| error.is_transient()) {
                    Some(commit) => Ok(Resolution {
                        commit,
                        stale: Some(error),
                    }),
                    None => Err(error),
                }
            }
        }
    }

    /// The files of a source.
    ///
    /// A full commit id whose tree is cached asks nobody. A branch or tag is looked up, unless that was done a moment ago
    /// for anybody. When GitHub cannot be asked, the last known commit of that branch or tag serves, as
    /// [`stale`](Materialized::stale).
    pub async fn materialize(
        &self,
        source: &GithubSource,
        links: LinkPolicy,
    ) -> Result<Materialized, SourceError> {
        self.files(source, links)
            .await
            .map_err(|error| error.about(&Subject(source)))
    }

    /// Lets the next look-up of this source's branch or tag ask GitHub, although a version tag is otherwise believed for
    /// a day. The floor still holds.
    pub fn refresh(&self, source: &GithubSource) {
        self.0.lookups.expire(&self.0.reference_key(source));
    }

    /// Counts for metrics.
    pub fn statistics(&self) -> Statistics {
        let counters = &self.0.client.counters;
        Statistics {
            api_requests: counters.api.load(Ordering::Relaxed),
            download_requests: counters.downloads.load(Ordering::Relaxed),
            tree_cache_hits: self.0.tree_hits.load(Ordering::Relaxed),
            tree_cache_bytes: self.0.trees.bytes(),
            rate_limit: *counters.rate_limit.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    async fn files(&self, source: &GithubSource, links: LinkPolicy) -> Result<Materialized, SourceError> {
        self.check_anonymous()?;
        let (resolved, tree, stale) = match &source.reference {
            GitReference::Commit(commit) => {
                let tree = self.tree(&source.repository, commit).await?;
                (
                    Resolved {
                        commit: commit.clone(),
                        warnings: Vec::new(),
                    },
                    tree,
                    None,
                )
            }
            GitReference::Tag(_) | GitReference::Branch(_) | GitReference::Name(_) => {
                self.floating(source).await?
            }
        };
        let mut warnings = resolved.warnings;
        if warnings.is_empty() {
            // A renamed repository shows at the look-up, with its new name, and again at the download.
            warnings.clone_from(&tree.warnings);
        }
        let (wanted, whole) = (source.clone(), Arc::clone(&tree));
        let narrowed = tokio::task::spawn_blocking(move || narrow(&whole, &wanted, links)).await;
        let (tree, lacks) = narrowed
            .map_err(|_| SourceError::new(Reason::ArchiveRefused, "the tree cannot be narrowed"))??;
        warnings.extend(lacks);
        Ok(Materialized {
            revision: resolved.commit,
            tree: Arc::new(tree),
            stale,
            warnings,
        })
    }

    fn check_anonymous(&self) -> Result<(), SourceError> {
        if !self.0.anonymous {
            let text = "no credential is configured, and the operator's configuration (`anonymous`) forbids requests \
                        without one";
            return Err(SourceError::new(Reason::CredentialRequired, text));
        }
        Ok(())
    }

    /// The tree that a branch or tag leads to, or the last one it led to if that cannot be found out now.
    async fn floating(
        &self,
        source: &GithubSource,
    ) -> Result<(Resolved, Arc<RepositoryTree>, Option<SourceError>), SourceError> {
        let key = self.0.reference_key(source);
        let fresh = async {
            let resolved = self.look_up(&key).await?;
            let tree = self.tree(&source.repository, &resolved.commit).await?;
            self.0.lookups.set_last_good(&key, &resolved.commit);
            Ok::<_, SourceError>((resolved, tree))
        };
        let error = match fresh.await {
            Ok((resolved, tree)) => return Ok((resolved, tree, None)),
            Err(error) => error,
        };
        let last = self.0.lookups.last_good(&key).filter(|_| error.is_transient());
        let cached = last.and_then(|commit| {
            let tree = self
                .0
                .trees
                .get(&self.0.commit_key(&source.repository, &commit))?;
            Some((
                Resolved {
                    commit,
                    warnings: Vec::new(),
                },
                tree,
            ))
        });
        match cached {
            Some((resolved, tree)) => Ok((resolved, tree, Some(error.about(&Subject(source))))),
            None => Err(error),
        }
    }

    async fn look_up(&self, key: &ReferenceKey) -> Result<Resolved, SourceError> {
        if let Some(answer) = self.0.lookups.get(key, self.0.clock.now()) {
            return answer;
        }
        let (inner, asked) = (Arc::clone(&self.0), key.clone());
        let flight = self.0.looking_up.join(key.clone(), move || {
            async move {
                if let Some(answer) = inner.lookups.get(&asked, inner.clock.now()) {
                    return answer;
                }
                let looking = lookup::look_up(&inner.client, &asked.repository, &asked.reference);
                let answer = in_time(&inner.client, "the look-up", looking).await;
                inner.lookups.put(&asked, inner.clock.now(), &answer);
                answer
            }
            .boxed()
        });
        flight.await
    }

    async fn tree(
        &self,
        repository: &Repository,
        commit: &CommitId,
    ) -> Result<Arc<RepositoryTree>, SourceError> {
        let key = self.0.commit_key(repository, commit);
        if let Some(known) = self.0.known_tree(&key) {
            return known;
        }
        let (inner, asked) = (Arc::clone(&self.0), key.clone());
        let flight = self.0.downloading.join(key, move || {
            async move {
                match inner.known_tree(&asked) {
                    Some(known) => known,
                    None => inner.download(&asked).await,
                }
            }
            .boxed()
        });
        flight.await
    }
}

impl Inner {
    fn reference_key(&self, source: &GithubSource) -> ReferenceKey {
        ReferenceKey {
            host: self.client.api_host(),
            repository: source.repository.clone(),
            reference: source.reference.clone(),
        }
    }

    fn commit_key(&self, repository: &Repository, commit: &CommitId) -> CommitKey {
        CommitKey {
            host: self.client.api_host(),
            repository: repository.clone(),
            commit: commit.clone(),
        }
    }

    /// What memory knows about a commit: its tree, or that its archive was refused a moment ago.
    fn known_tree(&self, key: &CommitKey) -> Option<Result<Arc<RepositoryTree>, SourceError>> {
        if let Some(tree) = self.trees.get(key) {
            self.tree_hits.fetch_add(1, Ordering::Relaxed);
            return Some(Ok(tree));
        }
        self.refusals.get(key, self.clock.now()).map(Err)
    }

    async fn download(&self, key: &CommitKey) -> Result<Arc<RepositoryTree>, SourceError> {
        let permit = Arc::clone(&self.downloads).acquire_owned().await;
        let permit =
            permit.map_err(|_| SourceError::new(Reason::FetchFailed, "the operator is shutting down"))?;
        tracing::info!(
            host = key.host,
            repository = %key.repository,
            commit = %key.commit,
            credential = "none",
            "fetching an archive"
        );
        let downloading = download::download(&self.client, &key.repository, &key.commit, permit);
        match in_time(&self.client, "the download", downloading).await {
            Ok(tree) => {
                let tree = Arc::new(tree);
                self.trees.put(key.clone(), Arc::clone(&tree));
                Ok(tree)
            }
            Err(error) => {
                self.refusals.put(key, self.clock.now(), &error);
                Err(error)
            }
        }
    }
}

async fn in_time<T>(
    client: &Client,
    what: &str,
    work: impl Future<Output = Result<T, SourceError>>,
) -> Result<T, SourceError> {
    let total: Duration = client.limits().total;
    timeout(total, work).await.unwrap_or_else(|_| {
        let text = format!(
            "{what} takes longer than {} (totalTimeoutSeconds)",
            seconds(total)
        );
        Err(SourceError::new(Reason::FetchFailed, text))
    })
}
