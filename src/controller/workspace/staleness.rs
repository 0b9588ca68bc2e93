//! How long what was known of a source is used while it cannot be looked up. Pure.

use codeworkspace_api::{CodeWorkspace, CodeWorkspaceStatus, SourceState, SourceStatus, reason};
use jiff::{SignedDuration, Timestamp};

use super::build;
use super::dereference::{Files, Looked};
use crate::controller::fault::{Fault, Healing};

/// Delay after which a source that was stale for too long is tried again.
const RETRY: std::time::Duration = std::time::Duration::from_secs(30);

/// Takes away files that are known from too long ago. Once they are, only a look-up that succeeds brings them back.
pub fn within(
    limit: SignedDuration,
    files: Vec<Result<Files, Fault>>,
    sources: &[Looked],
    former: &CodeWorkspaceStatus,
    now: Timestamp,
) -> Vec<Result<Files, Fault>> {
    let judge = |(files, looked): (Result<Files, Fault>, &Looked)| {
        let fault = match &files {
            Ok(Files {
                stale: Some(fault), ..
            }) => fault,
            Err(fault) if fault.healing == Healing::ByItself => fault,
            _ => return files,
        };
        match former.sources.iter().find(|former| is_same(former, looked)) {
            Some(former) if is_over(former, limit, now) => Err(too_long(limit, fault)),
            _ => files,
        }
    };
    files.into_iter().zip(sources).map(judge).collect()
}

/// The fault of what is stale for too long.
pub fn too_long(limit: SignedDuration, fault: &Fault) -> Fault {
    let message = format!(
        "its last good state is older than the operator permits ({limit:#}), and nothing new is started from it: {}",
        fault.message
    );
    Fault {
        retry_after: fault.retry_after.or(Some(RETRY)),
        ..Fault::unresolved(reason::STALE_TOO_LONG, Healing::ByOthers, message)
    }
}

fn is_over(former: &SourceStatus, limit: SignedDuration, now: Timestamp) -> bool {
    former.error.as_ref().is_some_and(|error| {
        let lasts = now.duration_since(error.since.0);
        error.reason == reason::STALE_TOO_LONG || (former.state == SourceState::Stale && lasts > limit)
    })
}

fn is_same(former: &SourceStatus, looked: &Looked) -> bool {
    (&former.path, &former.summary) == (&looked.field, &looked.summary)
}

/// Whether a source of a former look was one of those that a reference brought in.
fn is_behind(former: &SourceStatus, reference: &Looked) -> bool {
    former
        .path
        .strip_prefix(&reference.field)
        .is_some_and(|rest| rest.starts_with(" > "))
}

/// A source that cannot be looked up for now leaves the last good bundle in place, as long as the manifest and everything it refers
/// to name the same sources as when the bundle was made. Of a reference that cannot be followed for now, its former sources stay.
pub fn kept(
    workspace: &CodeWorkspace,
    former: &CodeWorkspaceStatus,
    looked: &[Looked],
    files: &[Result<Files, Fault>],
    now: Timestamp,
) -> Option<Vec<SourceStatus>> {
    let was_good = |source: &SourceStatus| matches!(source.state, SourceState::Resolved | SourceState::Stale);
    let faults: Vec<_> = files.iter().filter_map(|files| files.as_ref().err()).collect();
    if former.observed_generation != workspace.metadata.generation
        || former.bundle.is_none()
        || faults.is_empty()
        || !former.sources.iter().all(was_good)
        || !faults.iter().all(|fault| fault.healing == Healing::ByItself)
    {
        return None;
    }
    let mut kept = Vec::with_capacity(former.sources.len());
    let mut rest = former.sources.as_slice();
    for (looked, files) in looked.iter().zip(files) {
        // Status lists only so many sources. What it leaves out cannot be compared.
        let Some(next) = rest.first() else { break };
        let behind = rest.iter().take_while(|former| is_behind(former, looked)).count();
        let count = match files {
            _ if is_same(next, looked) => 1,
            Err(_) if behind > 0 => behind,
            _ => return None,
        };
        let (these, others) = rest.split_at(count);
        kept.extend(these.iter().map(|former| match files {
            Ok(_) => former.clone(),
            Err(fault) => SourceStatus {
                state: SourceState::Stale,
                error: Some(build::source_failure(fault, Some(former), now)),
                ..former.clone()
            },
        }));
        rest = others;
    }
    rest.is_empty().then_some(kept)
}
