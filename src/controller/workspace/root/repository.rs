//! A repository as a root.

use codeworkspace_api::{RootStatus, reason};
use codeworkspace_bundle::code::GithubSource;
use codeworkspace_source::{Access, LinkPolicy};

use super::{Content, Files, Root};
use crate::controller::fault::{Fault, Healing};
use crate::controller::workspace::lookup::Lookup;

/// Finds the commit.
pub async fn look_up(source: &GithubSource, lookup: &Lookup<'_>) -> Result<Root, Fault> {
    let access = lookup.access().await?;
    let found = lookup.resolve("root.github", source, &access).await?;
    let commit = found.commit.to_string();
    let folder = source
        .path
        .as_ref()
        .map_or_else(String::new, |path| format!(":{path}"));
    let status = RootStatus {
        kind: "github".to_owned(),
        summary: format!("{}@{}{folder}", source.repository, source.reference),
        revision: Some(commit.clone()),
    };
    let identity = format!("github {}{folder} {commit}", source.repository);
    let content = Content::Repository(Box::new(source.clone()), access);
    Ok(Root {
        stale: found
            .stale
            .as_ref()
            .map(|error| Fault::source("root.github", error)),
        ..Root::new(identity, status, content)
    })
}

/// Fetches the files of the folder that is the root.
pub async fn files(
    source: &GithubSource,
    access: &Access,
    commit: Option<&str>,
    links: LinkPolicy,
    lookup: &Lookup<'_>,
) -> Result<Files, Fault> {
    let found = lookup
        .github()
        .materialize(source, links, access)
        .await
        .map_err(|error| Fault::source("root.github", &error))?;
    if commit.is_some_and(|commit| commit != found.revision.to_string()) {
        let message = format!(
            "root.github: {}@{} moved while it was read; it is read again",
            source.repository, source.reference
        );
        return Err(Fault::unresolved(
            reason::ROOT_NOT_READY,
            Healing::ByItself,
            message,
        ));
    }
    Ok(Files {
        tree: found.tree,
        revision: None,
        warnings: found.warnings,
    })
}
