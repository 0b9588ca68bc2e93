//! How long what was known of a source is used while it cannot be looked up. Pure.

use codeworkspace_api::condition::STALE;
use codeworkspace_api::{CodeWorkspace, CodeWorkspaceStatus, SourceState, SourceStatus, reason};
use jiff::{SignedDuration, Timestamp};

use super::build;
use super::dereference::{Files, Looked};
use crate::controller::fault::{Fault, Healing};

/// Takes away files that are known from too long ago. Once they are, only a look-up that succeeds brings them back.
pub fn within(
    limit: SignedDuration,
    files: Vec<Result<Files, Fault>>,
    sources: &[Looked],
    former: &CodeWorkspaceStatus,
    now: Timestamp,
) -> Vec<Result<Files, Fault>> {
    let since = former
        .conditions
        .iter()
        .find(|condition| condition.type_ == STALE && condition.status == "True")
        .map(|condition| condition.last_transition_time.0);
    let over_since = since.filter(|since| now.duration_since(*since) > limit);
    let is_over = |field: &str| {
        former.sources.iter().any(|source| {
            source.path == field
                && source
                    .error
                    .as_ref()
                    .is_some_and(|error| error.reason == reason::STALE_TOO_LONG)
        })
    };
    let judge = |(files, looked): (Result<Files, Fault>, &Looked)| {
        let fault = match &files {
            Ok(Files {
                stale: Some(fault), ..
            }) => fault,
            Err(fault) if fault.healing == Healing::ByItself => fault,
            _ => return files,
        };
        if over_since.is_none() && !is_over(&looked.field) {
            return files;
        }
        let message = format!(
            "its last good state is older than the operator permits ({limit:#}), and nothing new is started from it: {}",
            fault.message
        );
        Err(Fault {
            retry_after: fault.retry_after,
            ..Fault::unresolved(reason::STALE_TOO_LONG, Healing::ByOthers, message)
        })
    };
    files.into_iter().zip(sources).map(judge).collect()
}

/// A source that cannot be looked up for now leaves the last good bundle in place, as long as the manifest and everything it refers
/// to name the same sources as when the bundle was made.
pub fn kept(
    workspace: &CodeWorkspace,
    former: &CodeWorkspaceStatus,
    looked: &[Looked],
    files: &[Result<Files, Fault>],
    now: Timestamp,
) -> Option<Vec<SourceStatus>> {
    let same_manifest = former.observed_generation == workspace.metadata.generation
        && former.sources.len() == looked.len()
        && former
            .sources
            .iter()
            .zip(looked)
            .all(|(former, looked)| (&former.path, &former.summary) == (&looked.field, &looked.summary));
    let was_good = |source: &SourceStatus| matches!(source.state, SourceState::Resolved | SourceState::Stale);
    let faults: Vec<_> = files.iter().filter_map(|files| files.as_ref().err()).collect();
    if !same_manifest
        || former.bundle.is_none()
        || faults.is_empty()
        || !former.sources.iter().all(was_good)
        || !faults.iter().all(|fault| fault.healing == Healing::ByItself)
    {
        return None;
    }
    let kept = former
        .sources
        .iter()
        .zip(files)
        .map(|(source, files)| match files {
            Ok(_) => source.clone(),
            Err(fault) => SourceStatus {
                state: SourceState::Stale,
                error: Some(build::source_failure(fault, Some(source), now)),
                ..source.clone()
            },
        });
    Some(kept.collect())
}
