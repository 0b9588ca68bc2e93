//! The verbs about files.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use codeworkspace_protocol::session::{ErrorCode, FileEntry, RemoveRequest, SessionError, WrittenFiles};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Served;
use super::answer::{Answer, Asked};
use super::body::{blocking, contents, with_body};
use crate::serve::files::{self, SessionPath};

#[derive(Deserialize)]
struct AtPath {
    #[serde(default)]
    path: String,
}

#[derive(Deserialize)]
struct ByDigest {
    digest: String,
}

fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, SessionError> {
    Query::try_from_uri(uri)
        .map(|Query(query)| query)
        .map_err(|error| SessionError::new(ErrorCode::InvalidRequest, error.body_text()))
}

fn file_path(uri: &Uri) -> Result<SessionPath, SessionError> {
    SessionPath::parse_inner(&query::<AtPath>(uri)?.path)
}

pub(super) async fn write_tar(State(session): Served, body: Body) -> Answer<Json<WrittenFiles>> {
    let _activity = session.idle.begin();
    session.check_bound()?;
    let root = Arc::clone(&session.root);
    with_body(body, move |stream| files::write_tar(&root, stream))
        .await
        .map(Json)
}

pub(super) async fn write_file(State(session): Served, uri: Uri, body: Body) -> Answer<Json<WrittenFiles>> {
    let _activity = session.idle.begin();
    session.check_bound()?;
    let path = file_path(&uri)?;
    let root = Arc::clone(&session.root);
    with_body(body, move |stream| files::write_file(&root, path, stream))
        .await
        .map(Json)
}

pub(super) async fn read_file(State(session): Served, uri: Uri) -> Answer<Response> {
    let activity = session.idle.begin();
    session.check_bound()?;
    let path = file_path(&uri)?;
    let root = Arc::clone(&session.root);
    let (file, size) = blocking(move || files::open_file(&root, &path)).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, size.to_string()),
    ];
    Ok((headers, contents(file, size, activity)).into_response())
}

pub(super) async fn list(State(session): Served, uri: Uri) -> Answer<Json<Vec<FileEntry>>> {
    let _activity = session.idle.begin();
    session.check_bound()?;
    let path = SessionPath::parse(&query::<AtPath>(&uri)?.path)?;
    let root = Arc::clone(&session.root);
    blocking(move || files::list(&root, path.as_ref()))
        .await
        .map(Json)
}

pub(super) async fn remove(
    State(session): Served,
    Asked(request): Asked<RemoveRequest>,
) -> Answer<StatusCode> {
    let _activity = session.idle.begin();
    session.check_bound()?;
    let paths: Vec<SessionPath> = request
        .paths
        .iter()
        .map(|path| SessionPath::parse_inner(path))
        .collect::<Result<_, _>>()?;
    let root = Arc::clone(&session.root);
    blocking(move || files::remove(&root, paths)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn bundle(State(session): Served, uri: Uri, body: Body) -> Answer<StatusCode> {
    let _activity = session.idle.begin();
    let digest = query::<ByDigest>(&uri)?.digest;
    // One at a time, so that a repeated call finds what the first one did.
    let arriving = session.bundle_arrives().await;
    let wanted = arriving.wanted(&digest)?;
    if wanted {
        let root = Arc::clone(&session.root);
        with_body(body, move |stream| files::unpack(&root, &digest, stream)).await?;
        arriving.arrived();
    } else {
        with_body(body, |_| Ok(())).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
