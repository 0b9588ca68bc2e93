//! A server, a clock that stands still, and a resolver that knows both.

use std::sync::Arc;

use codeworkspace_bundle::code::{GithubSource, Target};
use codeworkspace_bundle::{Entry, FileTree};
use codeworkspace_source::{
    Access, Github, GithubConfiguration, LinkPolicy, ManualClock, Materialized, SourceError,
    SourceErrorReason,
};
use github_server::{Answer, Commit, GithubServer, RequestKind, Switches};
use jiff::Timestamp;

pub(crate) struct World {
    pub(crate) server: GithubServer,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) github: Github,
    /// With what the shorthands below ask.
    pub(crate) access: Access,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    /// A world whose resolver has another configuration than the usual.
    pub(crate) async fn with(change: impl FnOnce(&mut GithubConfiguration)) -> Self {
        let server = GithubServer::start().await.unwrap();
        let mut configuration = configuration(&server);
        change(&mut configuration);
        let clock = Arc::new(ManualClock::new(Timestamp::now()));
        let github = Github::new(configuration, clock.clone()).unwrap();
        Self {
            server,
            clock,
            github,
            access: Access::Anonymous,
        }
    }

    /// Makes `octo/tools` with one commit on `main` and returns the commit id.
    pub(crate) fn tools(&self, commit: &Commit) -> String {
        self.server.create("octo/tools").unwrap().commit(commit).unwrap()
    }

    /// Adds a commit to `octo/tools` and returns its id.
    pub(crate) fn tools_again(&self, commit: &Commit) -> String {
        self.server
            .repository("octo/tools")
            .unwrap()
            .commit(commit)
            .unwrap()
    }

    pub(crate) async fn materialize(&self, source: &GithubSource) -> Result<Materialized, SourceError> {
        self.github
            .materialize(source, LinkPolicy::Keep, &self.access)
            .await
    }

    /// Resolves `octo/tools` at this reference.
    pub(crate) async fn resolve(&self, reference: &str) -> Result<Materialized, SourceError> {
        self.materialize(&source("octo/tools", reference)).await
    }

    /// The commit that `octo/tools` at this reference leads to.
    pub(crate) async fn revision(&self, reference: &str) -> String {
        self.resolve(reference).await.unwrap().revision.to_string()
    }

    pub(crate) async fn failure(&self, reference: &str) -> SourceError {
        self.resolve(reference).await.unwrap_err()
    }

    pub(crate) fn set_switches(&self, switches: Switches) {
        self.server.set_switches(switches);
    }

    /// Has requests of this kind answered with this status.
    pub(crate) fn answer(&self, kind: RequestKind, status: u16, headers: &[(&str, &str)]) {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let answer = Answer {
            status,
            headers,
            kinds: vec![kind],
            ..Answer::default()
        };
        self.set_switches(Switches {
            answer: Some(answer),
            ..Switches::default()
        });
    }
}

pub(crate) fn configuration(server: &GithubServer) -> GithubConfiguration {
    GithubConfiguration {
        api_base: server.api_base(),
        download_hosts: vec![server.download_host()],
        insecure_hosts: vec![server.api_host(), server.download_host()],
        ..GithubConfiguration::default()
    }
}

pub(crate) fn source(repository: &str, reference: &str) -> GithubSource {
    GithubSource {
        repository: repository.parse().unwrap(),
        reference: reference.parse().unwrap(),
        path: None,
        target: Target::OwnPath,
    }
}

/// `octo/tools@main` narrowed to `path`.
pub(crate) fn narrowed(path: &str) -> GithubSource {
    GithubSource {
        path: Some(path.parse().unwrap()),
        ..source("octo/tools", "main")
    }
}

/// Each entry as one line: path, then content or link target.
pub(crate) fn lines(tree: &FileTree) -> Vec<String> {
    tree.iter()
        .map(|(path, entry)| match entry {
            Entry::File { contents, executable } => {
                let executable = if *executable { "*" } else { "" };
                format!("{path}{executable}: {}", String::from_utf8_lossy(contents))
            }
            Entry::Link { target } => format!("{path} -> {target}"),
        })
        .collect()
}

/// A message about `octo/tools@{reference}`.
pub(crate) fn fault(reason: SourceErrorReason, reference: &str, text: &str) -> SourceError {
    SourceError {
        reason,
        message: format!("octo/tools@{reference}: {text}"),
        retry_after: None,
    }
}

/// A commit with one file.
pub(crate) fn one_file() -> Commit {
    Commit::on("main").file("a.txt", "a")
}
