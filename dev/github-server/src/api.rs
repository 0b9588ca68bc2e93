//! The part of GitHub's REST API that leads from a branch or tag to an archive.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::ServerError;
use crate::access::{Caller, TokenRefusal};
use crate::apps;
use crate::git;
use crate::paths;
use crate::repositories::{FullName, Lookup, Visible};
use crate::server::Shared;
use crate::switches::{Answer, Redirect, RequestKind};

/// No request and no JSON answer is larger.
const MAXIMUM_BODY_BYTES: usize = 1024 * 1024;

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
    Commit(String),
    Tarball(String),
    Installation,
}

impl Call {
    fn kind(&self) -> RequestKind {
        match self {
            Self::Repository => RequestKind::Repository,
            Self::Reference(_) => RequestKind::Reference,
            Self::TagObject(_) => RequestKind::TagObject,
            Self::Commit(_) => RequestKind::Commit,
            Self::Installation => RequestKind::Installation,
            Self::Tarball(_) => RequestKind::Tarball,
        }
    }

    /// Whether it takes the permission to read contents.
    fn needs_contents(&self) -> bool {
        !matches!(self, Self::Repository | Self::Installation)
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
        ["git", "commits", id] => Call::Commit((*id).to_owned()),
        ["installation"] => Call::Installation,
        ["git", "tags", id] => Call::TagObject((*id).to_owned()),
        ["tarball", revision @ ..] if !revision.is_empty() => Call::Tarball(revision.join("/")),
        _ => return None,
    };
    Some((address, call))
}

/// The installation for which an App wants a token.
fn parse_access_token(path: &str) -> Option<u64> {
    let rest = path.strip_prefix("/app/installations/")?;
    rest.strip_suffix("/access_tokens")?.parse().ok()
}

/// Answers one request to the API.
pub(crate) async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().strip_prefix(&shared.api_path).unwrap_or_default();
    let caller = shared.credentials.caller(&head.headers);
    let installation = parse_access_token(path).filter(|_| head.method == Method::POST);
    let parsed = parse(path).filter(|_| head.method == Method::GET);
    let sees = |name: &FullName| caller.sees(name);
    let lookup = match &parsed {
        Some((Address::Name(name), _)) => shared.repositories.lookup(name, sees),
        Some((Address::Number(number), _)) => shared.repositories.lookup_number(*number, sees),
        None => Lookup::Absent,
    };
    let kind = match (&parsed, installation) {
        (Some((_, call)), _) => call.kind(),
        (None, Some(_)) => RequestKind::AccessToken,
        (None, None) => {
            shared.requests.send_modify(|requests| requests.unknown += 1);
            return problem(StatusCode::NOT_FOUND, "Not Found");
        }
    };
    let name = match (&parsed, &lookup) {
        (Some((Address::Name(name), _)), _) => name.to_string(),
        (Some((Address::Number(_), _)), Lookup::Found(visible)) => visible.name.to_string(),
        (Some((Address::Number(number), _)), _) => number.to_string(),
        (None, _) => "app/installations".to_owned(),
    };
    shared.requests.send_modify(|requests| {
        requests.record(&name, caller.label(), kind, &head.headers, head.uri.query());
    });
    shared.wait(&name, kind).await;

    let counter = match &caller {
        Caller::Token(grant) => Arc::clone(&grant.counter),
        Caller::Anonymous | Caller::App(_) | Caller::Unknown => Arc::clone(&shared.rate_limit),
    };
    let (limited, mut usual) = counter.count();
    let mut response = if let Some(answer) = shared.take_answer(&name, kind) {
        return with_headers(fixed(&answer), usual, &answer);
    } else if let Some(refusal) = refuse(&caller, &head.headers, limited) {
        refusal
    } else if let Some(number) = installation {
        let body = axum::body::to_bytes(body, MAXIMUM_BODY_BYTES)
            .await
            .unwrap_or_default();
        let name_of = |number| shared.repositories.name(number);
        apps::issue(&shared.credentials, &caller, number, &body, name_of)
    } else if let Some((address, call)) = parsed {
        let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let base = format!("http://{}{}", host.unwrap_or("localhost"), shared.api_path);
        let tail = match address {
            Address::Name(_) => path
                .splitn(5, '/')
                .nth(4)
                .map(|tail| format!("/{tail}"))
                .unwrap_or_default(),
            Address::Number(_) => String::new(),
        };
        dispatch(&shared, lookup, call, &caller, base, tail).await
    } else {
        problem(StatusCode::NOT_FOUND, "Not Found")
    };
    if response.status() == StatusCode::OK {
        response = conditional(response, &head.headers).await;
        if response.status() == StatusCode::NOT_MODIFIED {
            shared.requests.send_modify(|requests| requests.confirmed += 1);
            if caller.grant().is_some() {
                usual = counter.give_back();
            }
        }
    }
    response.headers_mut().extend(usual);
    if let Some(scopes) = caller.grant().and_then(|grant| grant.scopes.as_ref())
        && let Ok(scopes) = HeaderValue::from_str(scopes)
    {
        response.headers_mut().insert("x-oauth-scopes", scopes);
    }
    response
}

/// What is refused whatever is asked for.
fn refuse(caller: &Caller, headers: &HeaderMap, limited: bool) -> Option<Response> {
    let refusal = caller.grant().and_then(|grant| grant.refusal);
    if !headers.contains_key(header::USER_AGENT) {
        return Some(problem(
            StatusCode::FORBIDDEN,
            "Request forbidden by administrative rules. Please make sure your request has a User-Agent header",
        ));
    }
    if limited {
        return Some(problem(
            StatusCode::FORBIDDEN,
            "API rate limit exceeded for 192.0.2.1.",
        ));
    }
    if matches!(caller, Caller::Unknown) {
        return Some(problem(StatusCode::UNAUTHORIZED, "Bad credentials"));
    }
    (refusal == Some(TokenRefusal::SecondaryLimit)).then(|| {
        let text =
            "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
        problem(StatusCode::FORBIDDEN, text)
    })
}

/// Adds the answer's tag, or answers 304 to a caller who has it (RFC 9110, 13.1.2). Tags differ between credentials, as on
/// GitHub.
async fn conditional(response: Response, headers: &HeaderMap) -> Response {
    let (mut head, body) = response.into_parts();
    let body = axum::body::to_bytes(body, MAXIMUM_BODY_BYTES)
        .await
        .unwrap_or_default();
    let mut hash = DefaultHasher::new();
    headers
        .get(header::AUTHORIZATION)
        .map(HeaderValue::as_bytes)
        .hash(&mut hash);
    body.hash(&mut hash);
    let tag = format!("W/\"{:016x}\"", hash.finish());
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == tag.as_bytes());
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        head.headers.insert(header::ETAG, tag);
    }
    if is_known {
        head.status = StatusCode::NOT_MODIFIED;
        head.headers.remove(header::CONTENT_TYPE);
        head.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(head, Body::empty());
    }
    Response::from_parts(head, Body::from(body))
}

async fn dispatch(
    shared: &Arc<Shared>,
    lookup: Lookup,
    call: Call,
    caller: &Caller,
    base: String,
    tail: String,
) -> Response {
    if call != Call::Installation && matches!(caller, Caller::App(_)) {
        return problem(StatusCode::UNAUTHORIZED, "Bad credentials");
    }
    let repository = match lookup {
        Lookup::Found(repository) => repository,
        Lookup::Absent => return problem(StatusCode::NOT_FOUND, "Not Found"),
        Lookup::Moved(id) => return moved(&format!("{base}/repositories/{id}{tail}")),
    };
    if let (true, true, Some(grant)) = (repository.private, call.needs_contents(), caller.grant()) {
        if grant.refusal == Some(TokenRefusal::SingleSignOn) {
            return single_sign_on(&repository.name.owner);
        }
        if !grant.contents {
            return problem(
                StatusCode::FORBIDDEN,
                "Resource not accessible by personal access token",
            );
        }
    }
    let (shared, caller) = (Arc::clone(shared), caller.clone());
    let work = move || match call {
        Call::Repository => Ok(describe(&repository, &base)),
        Call::Reference(name) => reference(&repository, &name, &base),
        Call::TagObject(id) => tag_object(&repository, &id, &base),
        Call::Commit(id) => commit(&repository, &id, &base),
        Call::Tarball(revision) => tarball(&shared, &repository, &revision),
        Call::Installation => Ok(apps::installation(&shared.credentials, &caller, &repository.name)),
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn single_sign_on(owner: &str) -> Response {
    let text = "Resource protected by organization SAML enforcement. You must grant your Personal Access token access to \
                this organization.";
    let mut response = problem(StatusCode::FORBIDDEN, text);
    let address = format!("required; url=https://github.com/orgs/{owner}/sso?authorization_request=A0B1");
    if let Ok(value) = HeaderValue::from_str(&address) {
        response.headers_mut().insert("x-github-sso", value);
    }
    response
}

fn describe(repository: &Visible, base: &str) -> Response {
    Json(json!({
        "id": repository.id,
        "name": repository.name.name,
        "full_name": repository.name.to_string(),
        "private": repository.private,
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

fn commit(repository: &Visible, id: &str, base: &str) -> Result<Response, ServerError> {
    let commit =
        git::object(&repository.directory, id)?.filter(|object| object.kind == "commit" && object.id == id);
    let Some(commit) = commit else {
        return Ok(problem(StatusCode::NOT_FOUND, "Not Found"));
    };
    let text = git::run(&repository.directory, &["cat-file", "commit", &commit.id], b"")?;
    let text = String::from_utf8_lossy(&text);
    let url = format!("{base}/repos/{}/git/commits/{}", repository.name, commit.id);
    Ok(Json(json!({
        "sha": commit.id,
        "url": url,
        "message": text.split_once("\n\n").map(|(_, message)| message),
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
    // The download host knows no credentials: a private repository's address carries a token of its own.
    let query = if repository.private {
        format!("?token={}", shared.download_token(name))
    } else {
        String::new()
    };
    let archive = format!(
        "{}/{name}/legacy.tar.gz/{}{query}",
        shared.download_base, commit.id
    );
    Ok(match &shared.switches.borrow().of(&name.to_string()).redirect {
        Redirect::Direct | Redirect::Chain(0 | 1) => found(Some(&archive)),
        Redirect::Chain(hops) => found(Some(&format!(
            "{}/{name}/hops/{}/{}{query}",
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
