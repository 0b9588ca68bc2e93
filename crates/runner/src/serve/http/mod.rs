//! The session's verbs over HTTP.

mod answer;
mod body;
mod files;
mod tls;

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post, put};
use codeworkspace_protocol::session::{
    BindRequest, BindResponse, CancelRequest, CommandRequest, ErrorCode, ExecuteRequest, RestartRequest,
    SessionError, SessionStatus, StopRequest, TaskStatus, path,
};

use super::session::Session;
use answer::{Answer, Asked, Refusal, events};

pub(super) use tls::{Callers, server_config};

type Served = State<Arc<Session>>;

/// Every verb of the session.
pub(super) fn router(session: Arc<Session>) -> Router {
    Router::new()
        .route(path::BIND, post(bind))
        .route(path::STATUS, get(status))
        .route(path::EXECUTE, post(execute))
        .route(path::COMMAND, post(command))
        .route(path::TASKS, post(start_task))
        .route(&format!("{}/{{id}}", path::TASKS), get(task))
        .route(&format!("{}/{{id}}/stop", path::TASKS), post(stop_task))
        .route(path::CANCEL, post(cancel))
        .route(path::RESTART, post(restart))
        .route(path::FILES, put(files::write_tar))
        .route(path::FILE, get(files::read_file).put(files::write_file))
        .route(path::LIST, get(files::list))
        .route(path::REMOVE, post(files::remove))
        .route(path::BUNDLE, put(files::bundle))
        .route(path::STOP, post(stop))
        .layer(DefaultBodyLimit::disable())
        .fallback(unknown)
        .with_state(session)
}

async fn unknown() -> Refusal {
    SessionError::new(ErrorCode::InvalidRequest, "there is no such verb").into()
}

async fn bind(State(session): Served, Asked(request): Asked<BindRequest>) -> Answer<Json<BindResponse>> {
    let _activity = session.idle.begin();
    Ok(Json(session.bind(request)?))
}

/// Looking does not count as use.
async fn status(State(session): Served) -> Json<SessionStatus> {
    Json(session.status())
}

async fn execute(State(session): Served, Asked(request): Asked<ExecuteRequest>) -> Answer<Response> {
    let activity = session.idle.begin();
    Ok(events(session.execute(request)?, activity))
}

async fn command(State(session): Served, Asked(request): Asked<CommandRequest>) -> Answer<Response> {
    let activity = session.idle.begin();
    Ok(events(session.command(request)?, activity))
}

async fn start_task(
    State(session): Served,
    Asked(request): Asked<CommandRequest>,
) -> Answer<Json<TaskStatus>> {
    let _activity = session.idle.begin();
    Ok(Json(session.start_task(request)?.status()))
}

async fn task(State(session): Served, Path(id): Path<String>) -> Answer<Json<TaskStatus>> {
    let _activity = session.idle.begin();
    Ok(Json(session.task(&id)?.status()))
}

async fn stop_task(State(session): Served, Path(id): Path<String>) -> Answer<Json<TaskStatus>> {
    let _activity = session.idle.begin();
    Ok(Json(session.stop_task(&id)?.status()))
}

async fn cancel(State(session): Served, Asked(request): Asked<CancelRequest>) -> Answer<StatusCode> {
    let _activity = session.idle.begin();
    session.cancel(&request.invocation)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn restart(State(session): Served, Asked(request): Asked<RestartRequest>) -> Answer<StatusCode> {
    let _activity = session.idle.begin();
    session.restart(&request.kernel).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn stop(State(session): Served, Asked(request): Asked<StopRequest>) -> Answer<StatusCode> {
    session.stop(&request.session)?;
    Ok(StatusCode::NO_CONTENT)
}
