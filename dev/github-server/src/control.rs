//! The control endpoints: repositories, references, counts and switches, for tests in other processes.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ServerError;
use crate::access::Token;
use crate::apps::{App, Issued, Revoked};
use crate::commit::Commit;
use crate::rate_limit::RateLimit;
use crate::repositories::{FullName, TagKind};
use crate::requests::Requests;
use crate::server::Shared;
use crate::switches::Switches;

/// Large enough for a commit of the biggest fixture.
const MAXIMUM_BODY_BYTES: usize = 256 * 1024 * 1024;

type Server = State<Arc<Shared>>;

pub(crate) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/repositories", post(create))
        .route(
            "/repositories/{owner}/{name}",
            axum::routing::delete(delete_repository),
        )
        .route("/repositories/{owner}/{name}/visibility", put(set_visibility))
        .route("/repositories/{owner}/{name}/name", put(rename))
        .route("/repositories/{owner}/{name}/commits", post(commit))
        .route(
            "/repositories/{owner}/{name}/branches/{*branch}",
            put(set_branch).delete(delete_branch),
        )
        .route(
            "/repositories/{owner}/{name}/tags/{*tag}",
            put(set_tag).delete(delete_tag),
        )
        .route(
            "/repositories/{owner}/{name}/switches",
            get(get_switches).put(set_switches).delete(delete_switches),
        )
        .route(
            "/switches",
            get(get_global_switches)
                .put(set_global_switches)
                .delete(delete_global_switches),
        )
        .route("/requests", get(get_requests).delete(reset_requests))
        .route("/tokens/{name}", put(set_token).delete(remove_token))
        .route(
            "/tokens/{name}/rate-limit",
            get(get_rate_limit_of).put(set_rate_limit_of),
        )
        .route("/apps/{id}", put(set_app))
        .route("/apps/{id}/tokens", get(get_issued).delete(revoke))
        .route("/rate-limit", get(get_rate_limit).put(set_rate_limit))
        .layer(axum::extract::DefaultBodyLimit::max(MAXIMUM_BODY_BYTES))
}

impl IntoResponse for ServerError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Invalid(_) | Self::Git { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::File { .. } | Self::Listen(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, Json(json!({ "message": self.to_string() }))).into_response()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewRepository {
    owner: String,
    name: String,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    default_branch: Option<String>,
}

async fn create(State(shared): Server, Json(new): Json<NewRepository>) -> Result<StatusCode, ServerError> {
    let name = FullName::new(&new.owner, &new.name)?;
    shared
        .repositories
        .create(&name, new.default_branch.as_deref().unwrap_or("main"))?;
    shared.repositories.set_private(&name, new.private)?;
    Ok(StatusCode::CREATED)
}

async fn delete_repository(
    State(shared): Server,
    Path((owner, name)): Path<(String, String)>,
) -> Result<StatusCode, ServerError> {
    shared.repositories.delete(&FullName::new(&owner, &name)?)?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Visibility {
    private: bool,
}

async fn set_visibility(
    State(shared): Server,
    Path((owner, name)): Path<(String, String)>,
    Json(visibility): Json<Visibility>,
) -> Result<StatusCode, ServerError> {
    shared
        .repositories
        .set_private(&FullName::new(&owner, &name)?, visibility.private)?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewName {
    to: String,
}

async fn rename(
    State(shared): Server,
    Path((owner, name)): Path<(String, String)>,
    Json(new): Json<NewName>,
) -> Result<StatusCode, ServerError> {
    shared
        .repositories
        .rename(&FullName::new(&owner, &name)?, &new.to.parse()?)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn commit(
    State(shared): Server,
    Path((owner, name)): Path<(String, String)>,
    Json(commit): Json<Commit>,
) -> Result<Response, ServerError> {
    let id = shared
        .repositories
        .commit(&FullName::new(&owner, &name)?, &commit)?;
    Ok((StatusCode::CREATED, Json(json!({ "commit": id }))).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BranchTarget {
    target: String,
}

async fn set_branch(
    State(shared): Server,
    Path((owner, name, branch)): Path<(String, String, String)>,
    Json(new): Json<BranchTarget>,
) -> Result<Json<Value>, ServerError> {
    let id = shared
        .repositories
        .set_branch(&FullName::new(&owner, &name)?, &branch, &new.target)?;
    Ok(Json(json!({ "object": id })))
}

async fn delete_branch(
    State(shared): Server,
    Path((owner, name, branch)): Path<(String, String, String)>,
) -> Result<StatusCode, ServerError> {
    let name = FullName::new(&owner, &name)?;
    shared
        .repositories
        .delete_reference(&name, &format!("refs/heads/{branch}"))?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TagTarget {
    target: String,
    #[serde(default)]
    annotated: bool,
    #[serde(default)]
    date: Option<Timestamp>,
}

async fn set_tag(
    State(shared): Server,
    Path((owner, name, tag)): Path<(String, String, String)>,
    Json(new): Json<TagTarget>,
) -> Result<Json<Value>, ServerError> {
    let kind = if new.annotated {
        TagKind::Annotated
    } else {
        TagKind::Lightweight
    };
    let name = FullName::new(&owner, &name)?;
    let id = shared
        .repositories
        .set_tag(&name, &tag, &new.target, kind, new.date)?;
    Ok(Json(json!({ "object": id })))
}

async fn delete_tag(
    State(shared): Server,
    Path((owner, name, tag)): Path<(String, String, String)>,
) -> Result<StatusCode, ServerError> {
    let name = FullName::new(&owner, &name)?;
    shared
        .repositories
        .delete_reference(&name, &format!("refs/tags/{tag}"))?;
    Ok(StatusCode::NO_CONTENT)
}

async fn get_switches(State(shared): Server, Path((owner, name)): Path<(String, String)>) -> Json<Switches> {
    Json(shared.switches.borrow().of(&format!("{owner}/{name}")).clone())
}

async fn set_switches(
    State(shared): Server,
    Path((owner, name)): Path<(String, String)>,
    Json(switches): Json<Switches>,
) -> Result<StatusCode, ServerError> {
    shared.set_switches(&FullName::new(&owner, &name)?, switches);
    Ok(StatusCode::NO_CONTENT)
}

async fn delete_switches(State(shared): Server, Path((owner, name)): Path<(String, String)>) -> StatusCode {
    shared.switches.send_modify(|board| {
        board.repositories.remove(&format!("{owner}/{name}"));
    });
    StatusCode::NO_CONTENT
}

async fn get_global_switches(State(shared): Server) -> Json<Switches> {
    Json(shared.switches.borrow().global.clone())
}

async fn set_global_switches(State(shared): Server, Json(switches): Json<Switches>) -> StatusCode {
    shared.switches.send_modify(|board| board.global = switches);
    StatusCode::NO_CONTENT
}

async fn delete_global_switches(State(shared): Server) -> StatusCode {
    shared
        .switches
        .send_modify(|board| board.global = Switches::default());
    StatusCode::NO_CONTENT
}

async fn get_requests(State(shared): Server) -> Json<Requests> {
    Json(shared.requests.borrow().clone())
}

async fn reset_requests(State(shared): Server) -> StatusCode {
    shared.requests.send_replace(Requests::default());
    StatusCode::NO_CONTENT
}

async fn get_rate_limit(State(shared): Server) -> Json<RateLimit> {
    Json(shared.rate_limit.get())
}

async fn set_rate_limit(State(shared): Server, Json(limit): Json<RateLimit>) -> StatusCode {
    shared.rate_limit.set(limit);
    StatusCode::NO_CONTENT
}

async fn set_token(State(shared): Server, Path(name): Path<String>, Json(token): Json<Token>) -> StatusCode {
    shared.credentials.set_token(&name, token);
    StatusCode::NO_CONTENT
}

async fn remove_token(State(shared): Server, Path(name): Path<String>) -> Result<StatusCode, ServerError> {
    shared.credentials.remove_token(&name)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn get_rate_limit_of(
    State(shared): Server,
    Path(name): Path<String>,
) -> Result<Json<RateLimit>, ServerError> {
    Ok(Json(shared.credentials.counter(&name)?.get()))
}

async fn set_rate_limit_of(
    State(shared): Server,
    Path(name): Path<String>,
    Json(limit): Json<RateLimit>,
) -> Result<StatusCode, ServerError> {
    shared.credentials.counter(&name)?.set(limit);
    Ok(StatusCode::NO_CONTENT)
}

async fn set_app(
    State(shared): Server,
    Path(id): Path<String>,
    Json(app): Json<App>,
) -> Result<StatusCode, ServerError> {
    shared.credentials.set_app(&id, app)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn get_issued(State(shared): Server, Path(id): Path<String>) -> Json<Vec<Issued>> {
    Json(shared.credentials.issued(&id))
}

async fn revoke(State(shared): Server, Path(id): Path<String>) -> Json<Revoked> {
    Json(shared.credentials.revoke(&id))
}
