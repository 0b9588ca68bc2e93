//! Commands in the background.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use codeworkspace_protocol::session::{TaskStatus, path};
use http::StatusCode;
use reqwest::Method as RunnerMethod;
use serde_json::json;

use super::access::Right;
use super::endpoints::{Endpoints, Method, sessions};
use super::execution::{RunCommand, time_limit};
use super::operation::Operation;
use super::problem::Problem;
use super::request::{Body, CallKey};
use super::{Native, Place};
use crate::gateway::runner::task_path;

/// The path's parameters down to the task.
type TaskPath = Path<(String, String, String, String)>;

/// The endpoints of this module.
pub fn endpoints(endpoints: Endpoints) -> Endpoints {
    endpoints
        .on(
            Method::Post,
            sessions!("/{session}/tasks"),
            Operation::new("startTask", Right::Create, "Start a command in the background")
                .describe("It runs on while nobody calls, until it ends or the session does.")
                .idempotent("Makes repeated calls one: the command is started once.")
                .takes::<RunCommand>()
                .answers::<TaskStatus>(202, "The task."),
            start,
        )
        .on(
            Method::Get,
            sessions!("/{session}/tasks/{task}"),
            Operation::new("getTask", Right::Create, "See how a background command does")
                .answers::<TaskStatus>(200, "The task, with the beginning of its output."),
            get,
        )
        .on(
            Method::Post,
            sessions!("/{session}/tasks/{task}/stop"),
            Operation::new("stopTask", Right::Create, "Stop a background command")
                .answers::<TaskStatus>(200, "The task."),
            stop,
        )
}

fn known_path(id: &str) -> Result<String, Problem> {
    task_path(id).ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "UnknownTask",
            "there is no task of this id in the session",
        )
    })
}

async fn start(
    State(native): State<Arc<Native>>,
    place: Place,
    CallKey(call): CallKey,
    Body(wanted): Body<RunCommand>,
) -> Result<(StatusCode, Json<TaskStatus>), Problem> {
    let timeout_ms = time_limit(wanted.timeout_ms)?;
    let (_, runner) = native.runner(&place).await?;
    let request = native
        .command_request(&place, &runner, call, wanted, timeout_ms)
        .await?;
    match runner.call(RunnerMethod::POST, path::TASKS, &request).await {
        Ok(task) => Ok((StatusCode::ACCEPTED, Json(task))),
        Err(error) => Err(native.failure(&place, error).await),
    }
}

async fn get(
    State(native): State<Arc<Native>>,
    place: Place,
    Path((.., task)): TaskPath,
) -> Result<Json<TaskStatus>, Problem> {
    let (_, runner) = native.runner(&place).await?;
    match runner.get(&known_path(&task)?, &[]).await {
        Ok(task) => Ok(Json(task)),
        Err(error) => Err(native.failure(&place, error).await),
    }
}

async fn stop(
    State(native): State<Arc<Native>>,
    place: Place,
    Path((.., task)): TaskPath,
) -> Result<Json<TaskStatus>, Problem> {
    let (_, runner) = native.runner(&place).await?;
    let stop = format!("{}/stop", known_path(&task)?);
    match runner.call(RunnerMethod::POST, &stop, &json!({})).await {
        Ok(task) => Ok(Json(task)),
        Err(error) => Err(native.failure(&place, error).await),
    }
}
