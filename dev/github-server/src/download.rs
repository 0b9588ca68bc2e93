//! The download host: archives of commits, made by `git archive`.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures::stream;

use crate::ServerError;
use crate::api::{fixed, found, problem, with_headers};
use crate::git;
use crate::paths;
use crate::repositories::{FullName, Lookup, Visible};
use crate::server::Shared;
use crate::switches::{AfterCut, Archive, Body as BodySwitch, RequestKind};

/// Length of a commit id in a SHA-1 repository.
const COMMIT_LENGTH: usize = 40;
/// Where the commit id starts in an archive: a header block, then `52 comment=`.
const COMMENT_OFFSET: usize = 512 + 11;
/// Pieces of a body that flows slowly, each second.
const PIECES_PER_SECOND: usize = 10;
/// Largest piece of a body that flows freely.
const PIECE_BYTES: usize = 64 * 1024;

/// Answers one request to the download listener.
pub(crate) async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let segments = paths::decode(request.uri().path()).unwrap_or_default();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let name = match segments.as_slice() {
        [owner, name, ..] => FullName::new(owner, name).ok(),
        _ => None,
    };
    let Some(name) = name else {
        shared.requests.send_modify(|requests| requests.unknown += 1);
        return (StatusCode::NOT_FOUND, "404: Not Found").into_response();
    };
    let full_name = name.to_string();
    let (headers, query) = (request.headers(), request.uri().query());
    let token = query.and_then(|query| query.strip_prefix("token="));
    let opened = token.is_some_and(|token| shared.opens(token, &name));
    let caller = shared.credentials.caller(headers);
    shared.requests.send_modify(|requests| {
        let query = query.filter(|_| !opened);
        requests.record(&full_name, caller.label(), RequestKind::Download, headers, query);
    });
    shared.wait(&full_name, RequestKind::Download).await;
    if let Some(answer) = shared.take_answer(&full_name, RequestKind::Download) {
        return with_headers(fixed(&answer), [], &answer);
    }
    let Lookup::Found(repository) = shared.repositories.lookup(&name, |_| opened) else {
        return (StatusCode::NOT_FOUND, "404: Not Found").into_response();
    };
    match segments.as_slice() {
        [_, _, "hops", hops, commit] => {
            let left: u32 = hops.parse().unwrap_or_default();
            let base = &shared.download_base;
            let query = request.uri().query().map(|query| format!("?{query}"));
            let query = query.unwrap_or_default();
            found(Some(&if left > 1 {
                format!("{base}/{name}/hops/{}/{commit}{query}", left - 1)
            } else {
                format!("{base}/{name}/legacy.tar.gz/{commit}{query}")
            }))
        }
        [_, _, "legacy.tar.gz", commit] => archive(&shared, repository, (*commit).to_owned()).await,
        _ => (StatusCode::NOT_FOUND, "404: Not Found").into_response(),
    }
}

async fn archive(shared: &Shared, repository: Visible, commit: String) -> Response {
    let switches = shared.switches.borrow().of(&repository.name.to_string()).clone();
    let made = tokio::task::spawn_blocking(move || make(&repository, &commit, &switches.archive)).await;
    let bytes = match made {
        Ok(Ok(Some(bytes))) => bytes,
        Ok(Ok(None)) => return (StatusCode::NOT_FOUND, "404: Not Found").into_response(),
        Ok(Err(error)) => return problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        Err(error) => return problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    };
    let mut response = flow(bytes, &switches.body).into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/x-gzip"),
    );
    response
}

/// The archive's bytes, or `None` when the repository has no such commit.
fn make(repository: &Visible, commit: &str, switch: &Archive) -> Result<Option<Vec<u8>>, ServerError> {
    if let Some(bytes) = &switch.bytes {
        return Ok(Some(bytes.clone()));
    }
    let asked = git::object(&repository.directory, commit)?;
    let Some(asked) = asked.filter(|object| object.kind == "commit") else {
        return Ok(None);
    };
    let top = switch.top_folder.clone().unwrap_or_else(|| {
        let short = asked.id.get(..7).unwrap_or_default();
        format!("{}-{}-{short}", repository.name.owner, repository.name.name)
    });
    let prefix = format!("--prefix={top}/");
    let level = format!("-{}", switch.level.unwrap_or(6));
    let revision = switch.revision.as_ref().unwrap_or(&asked.id);
    let bytes = git::run(
        &repository.directory,
        &["archive", "--format=tar.gz", &level, &prefix, revision],
        b"",
    )?;
    match &switch.comment {
        Some(comment) => replace_comment(&bytes, comment).map(Some),
        None => Ok(Some(bytes)),
    }
}

fn replace_comment(archive: &[u8], comment: &str) -> Result<Vec<u8>, ServerError> {
    let failed = |error: std::io::Error| ServerError::Invalid(format!("archive: {error}"));
    let mut tar = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut tar).map_err(failed)?;
    match tar.get_mut(COMMENT_OFFSET..COMMENT_OFFSET + COMMIT_LENGTH) {
        Some(place) if comment.len() == COMMIT_LENGTH => place.copy_from_slice(comment.as_bytes()),
        _ => {
            return Err(ServerError::Invalid(format!(
                "archive.comment has {} bytes, not {COMMIT_LENGTH}",
                comment.len()
            )));
        }
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&tar).map_err(failed)?;
    encoder.finish().map_err(failed)
}

/// A chunked body, as GitHub's: its length is not announced.
fn flow(bytes: Vec<u8>, switch: &BodySwitch) -> Body {
    let piece = switch
        .bytes_per_second
        .map_or(PIECE_BYTES, |rate| {
            usize::try_from(rate).unwrap_or(PIECE_BYTES) / PIECES_PER_SECOND
        })
        .max(1);
    let slow = switch.bytes_per_second.is_some();
    let after = switch.cut.map(|cut| cut.then);
    let mut bytes = Bytes::from(bytes);
    if let Some(cut) = switch.cut {
        bytes.truncate(bytes.len() * usize::from(cut.percent.min(100)) / 100);
    }
    let pause = Duration::from_secs(1) / u32::try_from(PIECES_PER_SECOND).unwrap_or(1);
    let pieces = stream::unfold(Some(bytes), move |rest| async move {
        let mut rest = rest?;
        if rest.is_empty() {
            return match after {
                None | Some(AfterCut::End) => None,
                Some(AfterCut::Close) => {
                    // A moment for the bytes before, which a broken connection may take along.
                    tokio::time::sleep(pause).await;
                    Some((
                        Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
                        None,
                    ))
                }
                Some(AfterCut::Stall) => std::future::pending().await,
            };
        }
        if slow {
            tokio::time::sleep(pause).await;
        }
        let next = rest.split_to(piece.min(rest.len()));
        Some((Ok(next), Some(rest)))
    });
    Body::from_stream(pieces)
}
