//! `InvokeCodeInterpreter`: one tool, in one session.

use axum::response::Response;
use codeworkspace_agentcore::error::ServiceError;
use codeworkspace_agentcore::event_stream::{CONTENT_TYPE, result_frame};
use codeworkspace_agentcore::identifier::InterpreterIdentifier;
use codeworkspace_agentcore::result::{MAX_EVENT_BYTES, ToolResult};
use codeworkspace_agentcore::shapes::{SESSION_ID_HEADER, invoked_session};
use codeworkspace_agentcore::tools::{self, Language, Runtime, ToolCall};
use codeworkspace_agentcore::validation::{Reason, ValidationError};
use codeworkspace_api::{CodeInterpreter, SessionLanguage};
use codeworkspace_protocol::session::{
    CommandRequest, ErrorCode, ExecuteRequest, SessionError, TaskStatus, path,
};
use http::{HeaderMap, HeaderName, StatusCode};
use reqwest::Method;
use serde_json::json;

use super::outcome::{Outcome, of_task};
use super::{AgentCore, Call, answer, files, key};
use crate::gateway::events::EventsError;
use crate::gateway::runner::{self, Runner, RunnerError};
use crate::gateway::sessions::SessionsError;

/// Names a call in all its repetitions: AWS's SDKs send the same call up to three times.
const INVOCATION: &str = "amz-sdk-invocation-id";

/// A tool whose arguments do not borrow from the request's body any more. Files are packed already.
enum Work {
    Execute(ExecuteRequest),
    Command(CommandRequest),
    StartTask(CommandRequest),
    GetTask(String),
    StopTask(String),
    Write(files::Archive),
    Read(Vec<String>),
    List(Option<String>),
    Remove(Vec<String>),
}

impl AgentCore {
    pub(super) async fn invoke(
        &self,
        interpreter: &InterpreterIdentifier,
        call: Call,
    ) -> Result<Response, ServiceError> {
        let id = invoked_session(&call.headers)?;
        let invocation = invocation(&call.headers);
        let work = super::parse(call.body, move |body| work(body, invocation)).await?;
        let key = key(interpreter);
        let (session, pod) = self.sessions.active(&call.tenant, &key, id.as_str()).await?;
        if let Work::Execute(request) = &work {
            check_language(request, &session.interpreter)?;
        }
        let done = async {
            let runner = self.runners.of(id.as_str(), &session.interpreter, &pod).await?;
            self.work(&runner, work).await
        };
        let result = match done.await {
            Ok(result) => result,
            Err(WorkError::Service(error)) => return Err(error),
            Err(WorkError::Runner(RunnerError::Refused(error))) => refusal(error, id.as_str())?,
            Err(WorkError::Runner(error)) => {
                let silence = self.sessions.unreachable(&call.tenant, &key, id.as_str(), &error);
                return Err(silence.await.into());
            }
        };
        let payloads = result
            .events(MAX_EVENT_BYTES)
            .map_err(|error| ServiceError::InternalServer(error.to_string()))?;
        let mut body = Vec::new();
        for payload in payloads {
            body.extend_from_slice(&result_frame(&payload));
        }
        let mut response = answer::with_body(StatusCode::OK, CONTENT_TYPE, body.into());
        answer::set(
            response.headers_mut(),
            HeaderName::from_static(SESSION_ID_HEADER),
            id.as_str(),
        );
        Ok(response)
    }

    async fn work(&self, runner: &Runner, work: Work) -> Result<ToolResult, WorkError> {
        let unit = self.configuration.execution_time_unit;
        let nothing = json!({});
        Ok(match work {
            Work::Execute(request) => Outcome::of(runner.run(path::EXECUTE, &request).await?, unit).await?,
            Work::Command(request) => Outcome::of(runner.run(path::COMMAND, &request).await?, unit).await?,
            Work::StartTask(request) => {
                let task: TaskStatus = runner.call(Method::POST, path::TASKS, &request).await?;
                of_task(&task, unit)
            }
            Work::GetTask(id) => {
                let task: TaskStatus = runner.get(&task_path(&id)?, &[]).await?;
                of_task(&task, unit)
            }
            Work::StopTask(id) => {
                let stop = format!("{}/stop", task_path(&id)?);
                let task: TaskStatus = runner.call(Method::POST, &stop, &nothing).await?;
                of_task(&task, unit)
            }
            Work::Write(archive) => archive.write(runner).await?,
            Work::Read(paths) => files::read(runner, &paths).await?,
            Work::List(folder) => files::list(runner, folder.as_deref()).await?,
            Work::Remove(paths) => files::remove(runner, paths).await?,
        })
    }
}

enum WorkError {
    Runner(RunnerError),
    Service(ServiceError),
}

impl From<RunnerError> for WorkError {
    fn from(error: RunnerError) -> Self {
        Self::Runner(error)
    }
}

impl From<EventsError> for WorkError {
    fn from(error: EventsError) -> Self {
        Self::Runner(error.into())
    }
}

impl From<ServiceError> for WorkError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

fn task_path(id: &str) -> Result<String, ServiceError> {
    runner::task_path(id).ok_or_else(|| {
        ValidationError::field("arguments.taskId", "must be the taskId of startCommandExecution").into()
    })
}

fn invocation(headers: &HeaderMap) -> Option<String> {
    headers
        .get(INVOCATION)
        .and_then(|value| value.to_str().ok())
        .filter(|value| (1..=128).contains(&value.len()))
        .map(str::to_owned)
}

/// Reads the body. What borrows from it is copied or packed here, where it may take its time.
fn work(body: &[u8], invocation: Option<String>) -> Result<Work, ServiceError> {
    let command = |command: &str, invocation| CommandRequest {
        invocation,
        command: command.to_owned(),
        timeout_ms: None,
        environment: std::collections::BTreeMap::new(),
    };
    Ok(match tools::parse(body)? {
        ToolCall::ExecuteCode(execute) => {
            if execute.runtime == Some(Runtime::Deno) {
                let message =
                    "deno is not here: JavaScript and TypeScript run on nodejs, so leave runtime out";
                return Err(ValidationError::field("arguments.runtime", message).into());
            }
            Work::Execute(ExecuteRequest {
                invocation,
                kernel: language(execute.language).kernel().to_owned(),
                code: execute.code.into_owned(),
                clear_context: execute.clear_context,
                timeout_ms: None,
                environment: std::collections::BTreeMap::new(),
            })
        }
        ToolCall::ExecuteCommand { command: text } => Work::Command(command(&text, invocation)),
        ToolCall::StartCommandExecution { command: text } => Work::StartTask(command(&text, invocation)),
        ToolCall::GetTask { task_id } => Work::GetTask(task_id.into_owned()),
        ToolCall::StopTask { task_id } => Work::StopTask(task_id.into_owned()),
        ToolCall::WriteFiles { files } => {
            files::check_paths(&files)?;
            Work::Write(files::Archive::pack(&files).map_err(|error| {
                tracing::error!(%error, "files cannot be packed");
                ServiceError::InternalServer("the files cannot be kept now; try again".to_owned())
            })?)
        }
        ToolCall::ReadFiles { paths } => Work::Read(owned(paths)),
        ToolCall::ListFiles { path } => Work::List(path.map(std::borrow::Cow::into_owned)),
        ToolCall::RemoveFiles { paths } => Work::Remove(owned(paths)),
    })
}

fn owned(paths: Vec<std::borrow::Cow<'_, str>>) -> Vec<String> {
    paths.into_iter().map(std::borrow::Cow::into_owned).collect()
}

fn language(language: Language) -> SessionLanguage {
    match language {
        Language::Python => SessionLanguage::Python,
        Language::JavaScript => SessionLanguage::Javascript,
        Language::TypeScript => SessionLanguage::Typescript,
    }
}

fn check_language(request: &ExecuteRequest, interpreter: &CodeInterpreter) -> Result<(), ServiceError> {
    let languages = interpreter
        .status
        .as_ref()
        .map(|status| status.languages.as_slice())
        .unwrap_or_default();
    if languages
        .iter()
        .any(|language| language.kernel() == request.kernel)
    {
        return Ok(());
    }
    let names: Vec<_> = languages.iter().map(|language| language.as_str()).collect();
    let message = format!("this code interpreter has {}", names.join(", "));
    Err(ValidationError::field("arguments.language", &message).into())
}

/// What the runner refused, as the API says it: a result that is an error when the tool failed, an error of the service when the call
/// was wrong.
fn refusal(error: SessionError, session: &str) -> Result<ToolResult, ServiceError> {
    let message = error.message;
    Err(match error.code {
        ErrorCode::NotFound
        | ErrorCode::WrongKind
        | ErrorCode::NoSpace
        | ErrorCode::UnknownTask
        | ErrorCode::UnknownInvocation
        | ErrorCode::TaskEnded => return Ok(ToolResult::failure(message)),
        ErrorCode::InvalidRequest | ErrorCode::InvalidPath | ErrorCode::UnknownKernel => {
            ValidationError::field("arguments", &message).into()
        }
        ErrorCode::InvocationMismatch => {
            ValidationError::new(Reason::IdempotentParameterMismatchException, &message).into()
        }
        ErrorCode::QueueFull | ErrorCode::InvocationForgotten => ServiceError::Conflict(message),
        ErrorCode::CommandsDisabled => ServiceError::AccessDenied(message),
        ErrorCode::Stopping | ErrorCode::BoundToAnother => SessionsError::NotActive {
            id: session.to_owned(),
            reason: "Stopping".to_owned(),
        }
        .into(),
        ErrorCode::NotBound | ErrorCode::DigestMismatch | ErrorCode::Internal => {
            tracing::error!(session, code = ?error.code, message, "a session's runner failed");
            ServiceError::InternalServer(message)
        }
    })
}
