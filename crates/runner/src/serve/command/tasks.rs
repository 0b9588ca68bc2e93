//! Commands in the background.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codeworkspace_protocol::session::{
    CommandRequest, ErrorCode, ExecutionOutcome, OutputStream, SessionError, TaskState, TaskStatus,
};
use uuid::Uuid;

use super::Shell;
use crate::serve::call::{Call, Stop};
use crate::serve::idle::Activity;

/// Tasks that may run at once.
const MAX_RUNNING: usize = 16;
/// Tasks that ended and can still be asked about.
const MAX_ENDED: usize = 64;

/// A command in the background.
pub(in crate::serve) struct Task {
    id: String,
    call: Call,
}

/// All of a session that are known.
pub(in crate::serve) struct Tasks {
    shell: Shell,
    /// Oldest first.
    tasks: Mutex<Vec<Arc<Task>>>,
}

impl Task {
    pub(in crate::serve) fn call(&self) -> &Call {
        &self.call
    }

    pub(in crate::serve) fn status(&self) -> TaskStatus {
        let transcript = &self.call.transcript;
        let finished = transcript.finished();
        let state = match finished.as_ref().map(|finished| finished.outcome) {
            None if transcript.has_started() => TaskState::Working,
            None => TaskState::Submitted,
            Some(ExecutionOutcome::Completed) => TaskState::Completed,
            Some(ExecutionOutcome::Cancelled) => TaskState::Canceled,
            Some(_) => TaskState::Failed,
        };
        let (stdout, stdout_summary) = transcript.text(OutputStream::Stdout);
        let (stderr, stderr_summary) = transcript.text(OutputStream::Stderr);
        TaskStatus {
            id: self.id.clone(),
            state,
            stdout,
            stderr,
            stdout_summary,
            stderr_summary,
            finished,
        }
    }

    fn is_running(&self) -> bool {
        self.call.transcript.finished().is_none()
    }
}

impl Tasks {
    pub(in crate::serve) fn new(shell: Shell) -> Self {
        Self {
            shell,
            tasks: Mutex::default(),
        }
    }

    /// Starts a command; it goes on whether anybody listens or not.
    pub(in crate::serve) fn start(
        &self,
        call: Call,
        request: CommandRequest,
        activity: Activity,
    ) -> Result<Arc<Task>, SessionError> {
        let mut tasks = self.lock();
        let running = tasks.iter().filter(|task| task.is_running()).count();
        if running >= MAX_RUNNING {
            return Err(SessionError::new(
                ErrorCode::QueueFull,
                format!("{MAX_RUNNING} tasks run already"),
            ));
        }
        let mut surplus = (tasks.len() - running + 1).saturating_sub(MAX_ENDED);
        tasks.retain(|task| {
            let forgotten = surplus > 0 && !task.is_running();
            surplus -= usize::from(forgotten);
            !forgotten
        });
        let task = Arc::new(Task {
            id: Uuid::new_v4().to_string(),
            call,
        });
        tasks.push(Arc::clone(&task));
        drop(tasks);
        let (shell, call) = (self.shell.clone(), task.call.clone());
        tokio::spawn(async move {
            call.transcript.finish(shell.run(&request, &call).await);
            drop(activity);
        });
        Ok(task)
    }

    pub(in crate::serve) fn get(&self, id: &str) -> Result<Arc<Task>, SessionError> {
        self.lock()
            .iter()
            .find(|task| task.id == id)
            .map(Arc::clone)
            .ok_or_else(|| {
                SessionError::new(
                    ErrorCode::UnknownTask,
                    format!("there is no task `{}`", id.escape_debug()),
                )
            })
    }

    /// Ends a task that has not ended.
    pub(in crate::serve) fn stop(&self, id: &str) -> Result<Arc<Task>, SessionError> {
        let task = self.get(id)?;
        if !task.is_running() {
            return Err(SessionError::new(
                ErrorCode::TaskEnded,
                format!("the task `{id}` has ended"),
            ));
        }
        task.call.stop(Stop::Cancelled("the task was stopped".to_owned()));
        Ok(task)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Task>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
