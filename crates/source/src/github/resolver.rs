//! What all sources share: look-ups, trees, and who may have them.

use std::sync::Arc;
use std::time::Duration;

use codeworkspace_bundle::code::{CommitId, Repository};
use futures::future::FutureExt as _;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::app::Tokens;
use super::audit::Fetch;
use super::client::{Client, seconds};
use super::session::Session;
use super::{download, lookup};
use crate::archive::RepositoryTree;
use crate::cache::{CommitKey, Lookups, Names, ProofKey, Proofs, ReferenceKey, Refusals, Resolved, Trees};
use jiff::Timestamp;

use crate::clock::Clock;
use crate::configuration::{ConfigurationError, Endpoints, GithubConfiguration, Limits, Reach};
use crate::credential::{Access, Asker};
use crate::error::{SourceError, SourceErrorReason as Reason, listed};
use crate::flights::Flights;
use crate::store::Store;

/// Scopes that a warning names.
const SHOWN_SCOPES: usize = 5;

type SharedTree = Result<Arc<RepositoryTree>, SourceError>;

/// The shared state of a [`Github`](super::Github) and its clones. Whatever can differ between credentials is kept by asker, and
/// requests are shared only among those who ask with the same one.
pub(crate) struct Resolver {
    pub(crate) client: Arc<Client>,
    pub(crate) anonymous: bool,
    pub(crate) lookups: Lookups,
    pub(crate) trees: Trees,
    pub(crate) store: Store,
    clock: Arc<dyn Clock>,
    tokens: Arc<Tokens>,
    proofs: Proofs,
    names: Names,
    refusals: Refusals,
    downloads: Arc<Semaphore>,
    looking_up: Flights<ReferenceKey, Result<Resolved, SourceError>>,
    downloading: Flights<(CommitKey, Asker), SharedTree>,
    proving: Flights<(CommitKey, Asker), Result<(), SourceError>>,
}

impl Resolver {
    /// The time by which answers grow old.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn new(
        configuration: &GithubConfiguration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigurationError> {
        let endpoints = Endpoints::parse(configuration)?;
        let limits = Limits::parse(configuration)?;
        let authorities = configuration.authorities()?;
        let client = Client::new(endpoints, limits, authorities, Arc::clone(&clock))?;
        let client = Arc::new(client);
        let folder = configuration.store(&limits)?;
        let store = Store::new(folder, Arc::clone(&clock));
        Ok(Self {
            anonymous: configuration.anonymous,
            lookups: Lookups::new(limits.lookup_floor, store.clone()),
            trees: Trees::new(configuration.tree_cache_bytes, store.clone()),
            tokens: Arc::new(Tokens::new(Arc::clone(&client))),
            client,
            clock,
            proofs: Proofs::new(limits.proof, store.clone()),
            names: Names::new(store.clone()),
            store,
            refusals: Refusals::new(limits.lookup_floor),
            downloads: Arc::new(Semaphore::new(configuration.concurrent_downloads)),
            looking_up: Flights::default(),
            downloading: Flights::default(),
            proving: Flights::default(),
        })
    }

    fn session<'a>(&'a self, repository: &'a Repository, access: &'a Access) -> Session<'a> {
        Session {
            client: &self.client,
            tokens: &self.tokens,
            proofs: &self.proofs,
            access,
            repository,
        }
    }

    pub(crate) async fn look_up(
        self: &Arc<Self>,
        key: &ReferenceKey,
        access: &Access,
    ) -> Result<Resolved, SourceError> {
        if let Some(answer) = self.lookups.get(key, self.clock.now()) {
            return answer;
        }
        let (resolver, asked, access) = (Arc::clone(self), key.clone(), access.clone());
        let flight = self.looking_up.join(key.clone(), move || {
            async move {
                resolver.lookups.recall(&asked).await;
                if let Some(answer) = resolver.lookups.get(&asked, resolver.clock.now()) {
                    return answer;
                }
                let session = resolver.session(&asked.repository, &access);
                let looking = async {
                    let looked_up = lookup::look_up(&session, &asked.reference).await?;
                    lookup::check_name(&session, &resolver.names, &looked_up).await?;
                    Ok(looked_up.resolved)
                };
                let answer = in_time(&resolver.client, "the look-up", looking).await;
                resolver.lookups.put(&asked, resolver.clock.now(), &answer);
                resolver.lookups.save(&asked).await;
                answer
            }
            .boxed()
        });
        flight.await
    }

    /// The tree of a commit, for an asker who may have it.
    pub(crate) async fn tree(
        self: &Arc<Self>,
        repository: &Repository,
        commit: &CommitId,
        access: &Access,
    ) -> SharedTree {
        let key = (self.commit_key(repository, commit), access.asker());
        if let Some(error) = self.refusals.get(&key, self.clock.now()) {
            return Err(error);
        }
        if let Some(tree) = self.trees.get(&key.0).await {
            self.prove(&key, access).await?;
            return Ok(tree);
        }
        let (resolver, asked, access) = (Arc::clone(self), key.clone(), access.clone());
        let flight = self.downloading.join(key, move || {
            async move {
                let (repository, commit) = (&asked.0.repository, &asked.0.commit);
                match resolver.cached_tree(repository, commit, &access).await {
                    Some(tree) => Ok(tree),
                    None => resolver.download(&asked, &access).await,
                }
            }
            .boxed()
        });
        flight.await
    }

    /// The tree of a commit if it is cached and the asker has shown to be allowed to read it.
    pub(crate) async fn cached_tree(
        &self,
        repository: &Repository,
        commit: &CommitId,
        access: &Access,
    ) -> Option<Arc<RepositoryTree>> {
        if !self.is_proven(repository, access).await {
            return None;
        }
        self.trees.get(&self.commit_key(repository, commit)).await
    }

    async fn is_proven(&self, repository: &Repository, access: &Access) -> bool {
        let key = self.session(repository, access).proof_key();
        self.proofs.permits(&key, self.clock.now()).await
    }

    /// Has GitHub show that the asker may read a commit whose tree is cached, unless it has done so lately.
    ///
    /// The request is for the commit itself: it takes the permission to read contents, which the repository's description does
    /// not.
    async fn prove(self: &Arc<Self>, key: &(CommitKey, Asker), access: &Access) -> Result<(), SourceError> {
        if self.is_proven(&key.0.repository, access).await {
            return Ok(());
        }
        let (resolver, asked, access) = (Arc::clone(self), key.clone(), access.clone());
        let flight = self.proving.join(key.clone(), move || {
            async move {
                if resolver.is_proven(&asked.0.repository, &access).await {
                    return Ok(());
                }
                let session = resolver.session(&asked.0.repository, &access);
                let path = format!("/git/commits/{}", asked.0.commit);
                let asking = session.get(&path, Reach::Api);
                let error = match in_time(&resolver.client, "the question", asking).await {
                    Ok(Some(_)) => return Ok(()),
                    Ok(None) => session.missing("commit"),
                    Err(error) => error,
                };
                if error.is_transient() {
                    let text = format!(
                        "{}; the files are cached, and are served again once it has confirmed that they may be read",
                        error.message
                    );
                    return Err(SourceError {
                        retry_after: error.retry_after,
                        ..SourceError::new(error.reason, text)
                    });
                }
                resolver.refusals.put(&asked, resolver.clock.now(), &error);
                Err(error)
            }
            .boxed()
        });
        flight.await
    }

    /// The warning for a token that may do more than read files, as far as GitHub tells.
    pub(crate) fn wide_access(&self, repository: &Repository, access: &Access) -> Option<String> {
        let name = access.name()?;
        let key: ProofKey = self.session(repository, access).proof_key();
        let scopes = self.proofs.own(&key, self.clock.now())?.scopes;
        // No scope of a classic token is limited to reading files.
        (!scopes.is_empty()).then(|| {
            format!(
                "the token of {name} may do more than read files (scopes {}); use a fine-grained token that may only read \
                 contents, or a GitHub App",
                listed(&scopes, SHOWN_SCOPES)
            )
        })
    }

    fn commit_key(&self, repository: &Repository, commit: &CommitId) -> CommitKey {
        CommitKey {
            host: self.client.api_host(),
            repository: repository.clone(),
            commit: commit.clone(),
        }
    }

    async fn download(&self, key: &(CommitKey, Asker), access: &Access) -> SharedTree {
        let permit = Arc::clone(&self.downloads).acquire_owned().await;
        let permit =
            permit.map_err(|_| SourceError::new(Reason::FetchFailed, "the operator is shutting down"))?;
        let fetch = Fetch::of(&key.0, access.name());
        let session = self.session(&key.0.repository, access);
        let downloading = download::download(&session, &key.0.commit, permit, &fetch.bytes);
        match in_time(&self.client, "the download", downloading).await {
            Ok(tree) => {
                fetch.ended("Fetched");
                let tree = Arc::new(tree);
                self.trees.put(&key.0, &tree).await;
                Ok(tree)
            }
            Err(error) => {
                fetch.ended(error.reason.as_str());
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
