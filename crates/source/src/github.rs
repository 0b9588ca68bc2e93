//! Files of GitHub repositories: look-up, download, and the caches between.

mod answer;
mod app;
mod audit;
mod breaker;
mod client;
mod counters;
mod download;
mod lookup;
mod resolver;
mod session;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use codeworkspace_bundle::code::{CommitId, GitReference, GithubSource};
use codeworkspace_bundle::{FileTree, LinkPolicy};

use crate::archive::RepositoryTree;
use crate::cache::{ReferenceKey, Resolved};
use crate::clock::Clock;
use crate::configuration::{ConfigurationError, GithubConfiguration};
use crate::credential::Access;
use crate::error::{SourceError, SourceErrorReason as Reason};
use crate::narrow::narrow;
use resolver::Resolver;

pub use answer::RateLimit;
pub use counters::Statistics;

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

/// Resolves `github` sources. Clones share connections, caches and limits.
#[derive(Clone)]
pub struct Github(Arc<Resolver>);

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
        Ok(Self(Arc::new(Resolver::new(&configuration, clock)?)))
    }

    /// The commit that a source leads to, without its files: whoever made something of that commit before, from this source and
    /// with this access, needs no more. A full commit id asks nobody, so for one this says nothing about who may read it;
    /// everything else as in [`materialize`](Self::materialize).
    pub async fn resolve(&self, source: &GithubSource, access: &Access) -> Result<Resolution, SourceError> {
        if let GitReference::Commit(commit) = &source.reference {
            return Ok(Resolution {
                commit: commit.clone(),
                stale: None,
            });
        }
        self.check_anonymous(access)
            .map_err(|error| error.about(&Subject(source)))?;
        let key = self.reference_key(source, access);
        match self.0.look_up(&key, access).await {
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
    /// A full commit id whose tree is cached asks nobody, as long as GitHub has shown within `proofSeconds` that this access may
    /// read the repository. A branch or tag is looked up, unless that was done a moment ago with the same access. When GitHub
    /// cannot be asked, the last known commit of that branch or tag serves, as [`stale`](Materialized::stale).
    pub async fn materialize(
        &self,
        source: &GithubSource,
        links: LinkPolicy,
        access: &Access,
    ) -> Result<Materialized, SourceError> {
        self.files(source, links, access)
            .await
            .map_err(|error| error.about(&Subject(source)))
    }

    /// Lets the next look-up of this source's branch or tag ask GitHub, although a version tag is otherwise believed for
    /// a day. The floor still holds; if it does, the time is returned until it no longer will.
    pub fn refresh(&self, source: &GithubSource, access: &Access) -> Option<Duration> {
        let key = self.reference_key(source, access);
        self.0.lookups.expire(&key, self.0.now())
    }

    /// Counts for metrics.
    pub fn statistics(&self) -> Statistics {
        let counters = &self.0.client.counters;
        let disk = self.0.store.statistics();
        Statistics {
            api_requests: counters.api.load(Ordering::Relaxed),
            download_requests: counters.downloads.load(Ordering::Relaxed),
            tree_cache_hits: self.0.trees.hits(),
            tree_cache_bytes: self.0.trees.bytes(),
            disk_cache_hits: disk.tree_hits,
            disk_cache_bytes: disk.bytes,
            disk_cache_evictions: disk.evictions,
            rate_limits: counters.rate_limits(),
        }
    }

    async fn files(
        &self,
        source: &GithubSource,
        links: LinkPolicy,
        access: &Access,
    ) -> Result<Materialized, SourceError> {
        self.check_anonymous(access)?;
        let (resolved, tree, stale) = match &source.reference {
            GitReference::Commit(commit) => {
                let tree = self.0.tree(&source.repository, commit, access).await?;
                let resolved = Resolved {
                    commit: commit.clone(),
                    // Of a branch or tag, the look-up tells whether the repository has another name now.
                    warnings: tree.warnings.clone(),
                };
                (resolved, tree, None)
            }
            GitReference::Tag(_) | GitReference::Branch(_) | GitReference::Name(_) => {
                self.floating(source, access).await?
            }
        };
        let mut warnings = resolved.warnings;
        warnings.extend(self.0.wide_access(&source.repository, access));
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

    fn check_anonymous(&self, access: &Access) -> Result<(), SourceError> {
        if *access == Access::Anonymous && !self.0.anonymous {
            let text = "no credential is configured, and the operator's configuration (`anonymous`) forbids requests \
                        without one";
            return Err(SourceError::new(Reason::CredentialRequired, text));
        }
        Ok(())
    }

    fn reference_key(&self, source: &GithubSource, access: &Access) -> ReferenceKey {
        ReferenceKey {
            host: self.0.client.api_host(),
            repository: source.repository.clone(),
            reference: source.reference.clone(),
            asker: access.asker(),
        }
    }

    /// The tree that a branch or tag leads to, or the last one it led to if that cannot be found out now.
    async fn floating(
        &self,
        source: &GithubSource,
        access: &Access,
    ) -> Result<(Resolved, Arc<RepositoryTree>, Option<SourceError>), SourceError> {
        let key = self.reference_key(source, access);
        let fresh = async {
            let resolved = self.0.look_up(&key, access).await?;
            let tree = self.0.tree(&source.repository, &resolved.commit, access).await?;
            self.0.lookups.set_last_good(&key, &resolved.commit);
            self.0.lookups.save(&key).await;
            Ok::<_, SourceError>((resolved, tree))
        };
        let error = match fresh.await {
            Ok((resolved, tree)) => return Ok((resolved, tree, None)),
            Err(error) => error,
        };
        let last = self.0.lookups.last_good(&key).filter(|_| error.is_transient());
        let Some(commit) = last else { return Err(error) };
        let Some(tree) = self.0.cached_tree(&source.repository, &commit, access).await else {
            return Err(error);
        };
        let resolved = Resolved {
            commit,
            warnings: Vec::new(),
        };
        Ok((resolved, tree, Some(error.about(&Subject(source)))))
    }
}
