//! Files in and out, of any size: bodies pass through and are never collected. Whole output streams are files as well, at the path that
//! the end of an execution names.

use std::sync::Arc;

use axum::Json;
use axum::body::Body as Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use codeworkspace_protocol::session::{FileEntry, RemoveRequest, WrittenFiles, path};
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use reqwest::Method as RunnerMethod;
use serde::Deserialize;

use super::access::Right;
use super::endpoints::{Endpoints, Method, sessions};
use super::operation::{BYTES, Operation};
use super::problem::Problem;
use super::request::{Asked, Body};
use super::{Native, Place};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AtPath {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InFolder {
    path: Option<String>,
}

/// The endpoints of this module.
pub fn endpoints(endpoints: Endpoints) -> Endpoints {
    let file = "Path relative to the session's folder.";
    endpoints
        .on(
            Method::Get,
            sessions!("/{session}/file"),
            Operation::new("readFile", Right::Create, "Read a file")
                .describe("Whole output streams are read in this way as well: `finished` names their files.")
                .query("path", true, file)
                .answers_bytes("The file's bytes. The connection breaks when they cannot all be sent."),
            read,
        )
        .on(
            Method::Put,
            sessions!("/{session}/file"),
            Operation::new("writeFile", Right::Create, "Write a file")
                .describe("The file is there when all of it has arrived, and unchanged otherwise. Missing folders are made.")
                .query("path", true, file)
                .takes_bytes(BYTES)
                .answers::<WrittenFiles>(200, "What was written."),
            write,
        )
        .on(
            Method::Get,
            sessions!("/{session}/files"),
            Operation::new("listFiles", Right::Create, "List a folder")
                .query("path", false, "Path of the folder relative to the session's; that one itself when absent.")
                .answers::<Vec<FileEntry>>(200, "What is in the folder, sorted by name."),
            list,
        )
        .on(
            Method::Put,
            sessions!("/{session}/files"),
            Operation::new("writeFiles", Right::Create, "Write many files")
                .describe("All of them are written, or none.")
                .takes_bytes("application/x-tar")
                .answers::<WrittenFiles>(200, "What was written."),
            write_many,
        )
        .on(
            Method::Post,
            sessions!("/{session}/remove"),
            Operation::new("removeFiles", Right::Create, "Remove files and folders")
                .describe("All paths are checked before the first is removed.")
                .takes::<RemoveRequest>(),
            remove,
        )
}

impl Native {
    /// Has the runner take a body as it comes.
    pub async fn upload(
        &self,
        place: &Place,
        verb: &str,
        query: &[(&str, &str)],
        body: reqwest::Body,
    ) -> Result<WrittenFiles, Problem> {
        let (_, runner) = self.runner(place).await?;
        match runner.send(verb, query, body).await {
            Ok(written) => Ok(written),
            Err(error) => Err(self.failure(place, error).await),
        }
    }

    /// Removes files and folders.
    pub async fn remove(&self, place: &Place, request: &RemoveRequest) -> Result<(), Problem> {
        let (_, runner) = self.runner(place).await?;
        match runner.tell(RunnerMethod::POST, path::REMOVE, request).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failure(place, error).await),
        }
    }
}

/// A body that is passed on while it comes.
pub fn passed_on(body: Bytes) -> reqwest::Body {
    reqwest::Body::wrap_stream(body.into_data_stream())
}

async fn read(
    State(native): State<Arc<Native>>,
    place: Place,
    Asked(file): Asked<AtPath>,
) -> Result<Response, Problem> {
    let (_, runner) = native.runner(&place).await?;
    let (size, bytes) = match runner.read(&file.path).await {
        Ok(opened) => opened,
        Err(error) => return Err(native.failure(&place, error).await),
    };
    let mut response = Bytes::from_stream(bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(BYTES));
    Ok(response)
}

async fn write(
    State(native): State<Arc<Native>>,
    place: Place,
    Asked(file): Asked<AtPath>,
    body: Bytes,
) -> Result<Json<WrittenFiles>, Problem> {
    let query = [("path", file.path.as_str())];
    native
        .upload(&place, path::FILE, &query, passed_on(body))
        .await
        .map(Json)
}

async fn write_many(
    State(native): State<Arc<Native>>,
    place: Place,
    body: Bytes,
) -> Result<Json<WrittenFiles>, Problem> {
    native
        .upload(&place, path::FILES, &[], passed_on(body))
        .await
        .map(Json)
}

async fn list(
    State(native): State<Arc<Native>>,
    place: Place,
    Asked(folder): Asked<InFolder>,
) -> Result<Json<Vec<FileEntry>>, Problem> {
    let (_, runner) = native.runner(&place).await?;
    let query: Vec<_> = folder.path.iter().map(|path| ("path", path.as_str())).collect();
    match runner.get(path::LIST, &query).await {
        Ok(entries) => Ok(Json(entries)),
        Err(error) => Err(native.failure(&place, error).await),
    }
}

async fn remove(
    State(native): State<Arc<Native>>,
    place: Place,
    Body(request): Body<RemoveRequest>,
) -> Result<StatusCode, Problem> {
    native.remove(&place, &request).await?;
    Ok(StatusCode::NO_CONTENT)
}
