//! Code and commands: run them and listen, cancel them, give a kernel a new process.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use codeworkspace_api::SessionLanguage;
use codeworkspace_protocol::session::{
    CancelRequest, CommandRequest, ExecuteRequest, RestartRequest, SessionEvent, path,
};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::Method as RunnerMethod;
use schemars::JsonSchema;
use serde::Deserialize;

use super::access::Right;
use super::endpoints::{Endpoints, Method, sessions};
use super::operation::Operation;
use super::problem::Problem;
use super::request::{Body, CallKey};
use super::{Native, Place, inputs, sse};
use crate::gateway::events::Events;
use crate::gateway::runner::Runner;

/// Time limit of a command whose caller gives none.
const COMMAND_TIMEOUT_MS: u64 = 30_000;
/// Longest time limit: no session lives longer.
const MAX_TIMEOUT_MS: u64 = 28_800_000;
/// Header that tells the id of an execution before it has ended.
const EXECUTION_ID: HeaderName = HeaderName::from_static("execution-id");

/// Code to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Execute {
    /// The code.
    pub code: String,
    /// Its language. Each keeps its own variables.
    #[serde(default = "python")]
    pub language: SessionLanguage,
    /// Forget all variables of the language before.
    #[serde(default)]
    pub clear_context: bool,
    /// Milliseconds that it may take; as long as the session lives when absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = 28_800_000))]
    pub timeout_ms: Option<u64>,
    /// Environment variables that are set before. They stay set in the language's process.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

fn python() -> SessionLanguage {
    SessionLanguage::Python
}

/// A command to run in `bash`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunCommand {
    /// The command.
    pub command: String,
    /// Milliseconds that it may take; 30,000 when absent. A background command has no limit of its own when absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = 28_800_000))]
    pub timeout_ms: Option<u64>,
    /// Environment variables beside the session's own.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// A kernel to restart.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Restart {
    /// Whose process is replaced.
    language: SessionLanguage,
}

/// The endpoints of this module.
pub fn endpoints(endpoints: Endpoints) -> Endpoints {
    let key = "Makes repeated calls one: the code runs once, and each call gets all events from the beginning. It is also the \
        execution's id.";
    let stream = "One event for each thing that the code tells, while it runs, with a number as `id` and the type as `event`. The \
        last one is `finished`, or `problem` when the session failed in the middle. Comments keep the connection alive.";
    let gone = "When the caller goes away, the code is interrupted a few seconds later.";
    endpoints
        .on(
            Method::Post,
            sessions!("/{session}/execute"),
            Operation::new("execute", Right::Create, "Run code")
                .describe(gone)
                .idempotent(key)
                .takes::<Execute>()
                .answers_events::<SessionEvent>(stream),
            execute,
        )
        .on(
            Method::Post,
            sessions!("/{session}/command"),
            Operation::new("command", Right::Create, "Run a command")
                .describe(gone)
                .idempotent(key)
                .takes::<RunCommand>()
                .answers_events::<SessionEvent>(stream),
            command,
        )
        .on(
            Method::Post,
            sessions!("/{session}/executions/{execution}/cancel"),
            Operation::new("cancel", Right::Create, "Interrupt code or a command")
                .describe("What it has told so far stays, and it ends as `cancelled`. One that has ended stays as it is."),
            cancel,
        )
        .on(
            Method::Post,
            sessions!("/{session}/restart"),
            Operation::new("restart", Right::Create, "Give a language a new process")
                .describe("Its variables are gone, and so is what runs in it.")
                .takes::<Restart>(),
            restart,
        )
}

/// A time limit that a session can have.
pub fn time_limit(wanted: Option<u64>) -> Result<Option<u64>, Problem> {
    match wanted {
        Some(milliseconds) if !(1..=MAX_TIMEOUT_MS).contains(&milliseconds) => Err(Problem::invalid(
            format!("timeoutMs must be 1 to {MAX_TIMEOUT_MS}, not {milliseconds}"),
        )),
        limit => Ok(limit),
    }
}

impl Native {
    /// Runs code. Dropping the events is how a caller goes away.
    pub async fn execute(&self, place: &Place, call: String, wanted: Execute) -> Result<Events, Problem> {
        let timeout_ms = time_limit(wanted.timeout_ms)?;
        let (session, runner) = self.runner(place).await?;
        let kernel = wanted.language.kernel();
        let languages = session
            .interpreter
            .status
            .as_ref()
            .map(|status| status.languages.as_slice())
            .unwrap_or_default();
        if !languages.contains(&wanted.language) {
            let names: Vec<_> = languages.iter().map(|language| language.as_str()).collect();
            let detail = format!("this interpreter has {}", names.join(", "));
            return Err(Problem::new(StatusCode::NOT_FOUND, "UnknownKernel", detail));
        }
        let request = ExecuteRequest {
            invocation: Some(call),
            kernel: kernel.to_owned(),
            code: wanted.code,
            clear_context: wanted.clear_context,
            timeout_ms,
            environment: self.environment(place, &runner, wanted.environment).await?,
        };
        match runner.run(path::EXECUTE, &request).await {
            Ok(events) => Ok(events),
            Err(error) => Err(self.failure(place, error).await),
        }
    }

    /// Runs a command.
    pub async fn command(&self, place: &Place, call: String, wanted: RunCommand) -> Result<Events, Problem> {
        let timeout_ms = time_limit(wanted.timeout_ms)?.or(Some(COMMAND_TIMEOUT_MS));
        let (_, runner) = self.runner(place).await?;
        let request = self
            .command_request(place, &runner, call, wanted, timeout_ms)
            .await?;
        match runner.run(path::COMMAND, &request).await {
            Ok(events) => Ok(events),
            Err(error) => Err(self.failure(place, error).await),
        }
    }

    /// A command as the runner takes it.
    pub async fn command_request(
        &self,
        place: &Place,
        runner: &Runner,
        call: String,
        wanted: RunCommand,
        timeout_ms: Option<u64>,
    ) -> Result<CommandRequest, Problem> {
        Ok(CommandRequest {
            invocation: Some(call),
            command: wanted.command,
            timeout_ms,
            environment: self.environment(place, runner, wanted.environment).await?,
        })
    }

    /// What the caller wants in the environment, and which inputs are staged: asked each time, since code can change both.
    async fn environment(
        &self,
        place: &Place,
        runner: &Runner,
        mut environment: BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Problem> {
        match inputs::staged(runner).await {
            Ok(None) => {}
            Ok(Some(staged)) => {
                environment.insert(inputs::VARIABLE.to_owned(), inputs::variable(&staged)?);
            }
            Err(error) => return Err(self.failure(place, error).await),
        }
        Ok(environment)
    }
}

async fn execute(
    State(native): State<Arc<Native>>,
    place: Place,
    CallKey(call): CallKey,
    Body(wanted): Body<Execute>,
) -> Result<Response, Problem> {
    let events = native.execute(&place, call.clone(), wanted).await?;
    Ok(stream(native, place, &call, events))
}

async fn command(
    State(native): State<Arc<Native>>,
    place: Place,
    CallKey(call): CallKey,
    Body(wanted): Body<RunCommand>,
) -> Result<Response, Problem> {
    let events = native.command(&place, call.clone(), wanted).await?;
    Ok(stream(native, place, &call, events))
}

fn stream(native: Arc<Native>, place: Place, call: &str, events: Events) -> Response {
    let mut response =
        sse::response(events, async move |error| native.failure(&place, error).await).into_response();
    if let Ok(call) = HeaderValue::from_str(call) {
        response.headers_mut().insert(EXECUTION_ID, call);
    }
    response
}

async fn cancel(
    State(native): State<Arc<Native>>,
    place: Place,
    Path((_, _, _, execution)): Path<(String, String, String, String)>,
) -> Result<StatusCode, Problem> {
    let (_, runner) = native.runner(&place).await?;
    let request = CancelRequest {
        invocation: execution,
    };
    match runner.tell(RunnerMethod::POST, path::CANCEL, &request).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(native.failure(&place, error).await),
    }
}

async fn restart(
    State(native): State<Arc<Native>>,
    place: Place,
    Body(wanted): Body<Restart>,
) -> Result<StatusCode, Problem> {
    let (_, runner) = native.runner(&place).await?;
    let request = RestartRequest {
        kernel: wanted.language.kernel().to_owned(),
    };
    match runner.tell(RunnerMethod::POST, path::RESTART, &request).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(native.failure(&place, error).await),
    }
}
