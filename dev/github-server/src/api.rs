//! The part of GitHub's REST API that leads from a branch or tag to an archive.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::ServerError;
use crate::git;
use crate::paths;
use crate::repositories::{FullName, Lookup, Visible};
use crate::server::Shared;
use crate::switches::{Answer, Redirect, RequestKind};

/// How a caller names a repository.
#[derive(Debug, PartialEq, Eq)]
enum Address {
    Name(FullName),
    Number(u64),
}

/// What a caller wants from a repository.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    Repository,
    /// The reference's name below `refs/`.
    Reference(String),
    TagObject(String),
    Tarball(String),
}

impl Call {
    fn kind(&self) -> RequestKind {
        match self {
            Self::Repository => RequestKind::Repository,
            Self::Reference(_) => RequestKind::Reference,
            Self::TagObject(_) => RequestKind::TagObject,
            Self::Tarball(_) => RequestKind::Tarball,
        }
    }
}

/// Reads a request's path; `None` for everything that this server does not play.
fn parse(path: &str) -> Option<(Address, Call)> {
    let segments = paths::decode(path)?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (address, rest) = match segments.as_slice() {
        ["repos", owner, name, rest @ ..] => (Address::Name(FullName::new(owner, name).ok()?), rest),
        ["repositories", number, rest @ ..] => (Address::Number(number.parse().ok()?), rest),
        _ => return None,
    };
    let call = match rest {
        [] => Call::Repository,
        ["git", "ref", kind @ ("heads" | "tags"), name @ ..] if !name.is_empty() => {
            Call::Reference(format!("{kind}/{}", name.join("/")))
        }
        ["git", "tags", id] => Call::TagObject((*id).to_owned()),
        ["tarball", revision @ ..] if !revision.is_empty() => Call::Tarball(revision.join("/")),
        _ => return None,
    };
    Some((address, call))
}

/// Answers one request to the API.
pub(crate) async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let Some((address, call)) = parse(request.uri().path()) else {
        shared.requests.send_modify(|requests| requests.unknown += 1);
        return problem(StatusCode::NOT_FOUND, "Not Found");
    };
    let kind = call.kind();
    let lookup = match &address {
        Address::Name(name) => shared.repositories.lookup(name),
        Address::Number(number) => shared.repositories.lookup_number(*number),
    };
    let name = match (&address, &lookup) {
        (Address::Name(name), _) => name.to_string(),
        (Address::Number(_), Lookup::Found(visible)) => visible.name.to_string(),
        (Address::Number(number), _) => number.to_string(),
    };
    shared
        .requests
        .send_modify(|requests| requests.record(&name, kind, request.headers(), request.uri().query()));
    shared.wait(&name, kind).await;

    let (limited, rate_headers) = shared.rate_limit.count();
    let mut response = if let Some(answer) = shared.take_answer(&name, kind) {
        return with_headers(fixed(&answer), rate_headers, &answer);
    } else if !request.headers().contains_key(header::USER_AGENT) {
        problem(
            StatusCode::FORBIDDEN,
            "Request forbidden by administrative rules. Please make sure your request has a User-Agent header",
        )
    } else if limited {
        problem(StatusCode::FORBIDDEN, "API rate limit exceeded for 192.0.2.1.")
    } else {
        let host = request
            .headers()
            .get(header::HOST)
            .and_then(|host| host.to_str().ok())
            .unwrap_or("localhost");
        let base = format!("http://{host}");
        let tail = request
            .uri()
            .path()
            .splitn(5, '/')
            .nth(4)
            .unwrap_or_default()
            .to_owned();
        dispatch(shared, lookup, call, base, tail).await
    };
    response.headers_mut().extend(rate_headers);
    response
}

async fn dispatch(shared: Arc<Shared>, lookup: Lookup, call: Call, base: String, tail: String) -> Response {
    let repository = match lookup {
        Lookup::Found(repository) => repository,
        Lookup::Absent => return problem(StatusCode::NOT_FOUND, "Not Found"),
        Lookup::Moved(id) => return moved(&format!("{base}/repositories/{id}/{tail}")),
    };
    let work = move || match call {
        Call::Repository => Ok(describe(&repository, &base)),
        Call::Reference(name) => reference(&repository, &name, &base),
        Call::TagObject(id) => tag_object(&repository, &id, &base),
        Call::Tarball(revision) => tarball(&shared, &repository, &revision),
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn describe(repository: &Visible, base: &str) -> Response {
    Json(json!({
        "id": repository.id,
        "name": repository.name.name,
        "full_name": repository.name.to_string(),
        "private": false,
        "owner": { "login": repository.name.owner },
        "url": format!("{base}/repos/{}", repository.name),
        "default_branch": repository.default_branch,
    }))
    .into_response()
}

fn reference(repository: &Visible, name: &str, base: &str) -> Result<Response, ServerError> {
    let Some(object) = git::reference(&repository.directory, &format!("refs/{name}"))? else {
        return Ok(if git::is_empty(&repository.directory)? {
            problem(StatusCode::CONFLICT, "Git Repository is empty.")
        } else {
            problem(StatusCode::NOT_FOUND, "Not Found")
        });
    };
    let url = format!("{base}/repos/{}/git", repository.name);
    Ok(Json(json!({
        "ref": format!("refs/{name}"),
        "url": format!("{url}/refs/{}", paths::encode(name)),
        "object": object_json(&object.kind, &object.id, &url),
    }))
    .into_response())
}

fn tag_object(repository: &Visible, id: &str, base: &str) -> Result<Response, ServerError> {
    let tag =
        git::object(&repository.directory, id)?.filter(|object| object.kind == "tag" && object.id == id);
    let Some(tag) = tag else {
        return Ok(problem(StatusCode::NOT_FOUND, "Not Found"));
    };
    let text = git::run(&repository.directory, &["cat-file", "tag", &tag.id], b"")?;
    let text = String::from_utf8_lossy(&text);
    let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
    let field = |key: &str| {
        head.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
            .unwrap_or_default()
            .to_owned()
    };
    let url = format!("{base}/repos/{}/git", repository.name);
    Ok(Json(json!({
        "tag": field("tag"),
        "sha": tag.id,
        "url": format!("{url}/tags/{}", tag.id),
        "message": message,
        "object": object_json(&field("type"), &field("object"), &url),
    }))
    .into_response())
}

fn object_json(kind: &str, id: &str, url: &str) -> Value {
    json!({ "type": kind, "sha": id, "url": format!("{url}/{kind}s/{id}") })
}

fn tarball(shared: &Shared, repository: &Visible, revision: &str) -> Result<Response, ServerError> {
    let commit = git::object(&repository.directory, &format!("{revision}^{{commit}}"))?;
    let Some(commit) = commit else {
        return Ok(problem(StatusCode::NOT_FOUND, "Not Found"));
    };
    let name = &repository.name;
    let archive = format!("{}/{name}/legacy.tar.gz/{}", shared.download_base, commit.id);
    Ok(match &shared.switches.borrow().of(&name.to_string()).redirect {
        Redirect::Direct | Redirect::Chain(0 | 1) => found(Some(&archive)),
        Redirect::Chain(hops) => found(Some(&format!(
            "{}/{name}/hops/{}/{}",
            shared.download_base,
            hops - 1,
            commit.id
        ))),
        Redirect::NoLocation => found(None),
        Redirect::To(address) => found(Some(address)),
    })
}

/// A 302, with or without the header that says where to.
pub(crate) fn found(location: Option<&str>) -> Response {
    let mut response = StatusCode::FOUND.into_response();
    if let Some(location) = location.and_then(|location| HeaderValue::from_str(location).ok()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

fn moved(location: &str) -> Response {
    let body = json!({ "message": "Moved Permanently", "url": location });
    let mut response = (StatusCode::MOVED_PERMANENTLY, Json(body)).into_response();
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// GitHub's JSON error body.
pub(crate) fn problem(status: StatusCode, message: &str) -> Response {
    let body = json!({
        "message": message,
        "documentation_url": "https://docs.github.com/rest",
        "status": status.as_u16().to_string(),
    });
    (status, Json(body)).into_response()
}

/// The answer that a switch prescribes.
pub(crate) fn fixed(answer: &Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match &answer.body {
        Some(body) => (status, Body::from(body.clone())).into_response(),
        None => problem(status, status.canonical_reason().unwrap_or_default()),
    }
}

/// Adds the usual headers, then those of the switch, which win.
pub(crate) fn with_headers(
    mut response: Response,
    usual: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    answer: &Answer,
) -> Response {
    for (name, value) in usual {
        response.headers_mut().insert(name, value);
    }
    for (name, value) in &answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octo() -> Address {
        Address::Name("octo/tools".parse().unwrap())
    }

    #[test]
    fn a_reference_keeps_slashes_and_decoded_signs() {
        let heads = |path: &str| parse(path).map(|(_, call)| call);
        let branch = |name: &str| Some(Call::Reference(format!("heads/{name}")));
        assert_eq!(
            heads("/repos/octo/tools/git/ref/heads/feat/a%231"),
            branch("feat/a#1")
        );
        assert_eq!(heads("/repos/octo/tools/git/ref/heads/x%252Fy"), branch("x%2Fy"));
        assert_eq!(heads("/repos/octo/tools/git/ref/heads/%C3%BC"), branch("ü"));
    }

    #[test]
    fn paths_outside_the_played_part_are_unknown() {
        assert_eq!(parse("/repos/octo/tools"), Some((octo(), Call::Repository)));
        for path in [
            "/",
            "/user",
            "/repos/octo",
            "/repos/octo/tools/git/ref/notes/x",
            "/repos/../tools",
            "/x%FF",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
    }
}
