//! The session that a pod serves: what it is bound to, and the calls that it takes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codeworkspace_protocol::session::{
    BindRequest, BindResponse, CommandRequest, ErrorCode, ExecuteRequest, OUTPUT_FOLDER, SessionError,
    SessionStatus,
};
use serde::Serialize;
use tokio::sync::watch;

use super::call::{Call, Stop, UNHEARD_LIMIT};
use super::command::{CommandJob, CommandLane, Shell, Task, Tasks};
use super::files::Root;
use super::idle::{Activity, IdleClock};
use super::invocations::{Fingerprint, Invocations, Limits, Outcome, Recall};
use super::kernel::{Job, KernelLane};
use super::transcript::{Listener, Outputs, Transcript};

/// What is remembered of calls, so that a repeated one is not run again.
const MEMORY: Limits = Limits {
    calls: 256,
    bytes: 64 * 1024 * 1024,
    forgotten: 16 * 1024,
};

/// Why the session ends in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Farewell {
    /// Nobody used it for this long.
    Idle(Duration),
    /// The gateway asked for it.
    Stopped,
    /// Whoever ends pods asked for it, with this signal.
    Signalled(i32),
}

pub(super) struct Session {
    pub(super) root: Arc<Root>,
    pub(super) idle: Arc<IdleClock>,
    kernels: Vec<Arc<KernelLane>>,
    commands: Arc<CommandLane>,
    tasks: Tasks,
    calls: Mutex<Invocations<Remembered>>,
    binding: Mutex<Option<Binding>>,
    /// Held while a bundle arrives.
    bundle: tokio::sync::Mutex<()>,
    farewell: watch::Sender<Option<Farewell>>,
    outputs: AtomicU64,
}

/// The only bundle that arrives now.
pub(super) struct Arriving<'a> {
    session: &'a Session,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

impl Arriving<'_> {
    /// Whether the bundle of this digest is still missing.
    pub(super) fn wanted(&self, digest: &str) -> Result<bool, SessionError> {
        self.session.check_bound()?;
        let binding = self.session.binding();
        let wanted = binding.as_ref().and_then(|bound| bound.request.bundle.as_deref());
        if wanted == Some(digest) {
            return Ok(binding.as_ref().is_some_and(Binding::wants_bundle));
        }
        Err(SessionError::new(
            ErrorCode::DigestMismatch,
            format!(
                "the session is bound with {}, not with the bundle {}",
                wanted.map_or("no bundle".to_owned(), |wanted| format!("the bundle {wanted}")),
                digest.escape_debug()
            ),
        ))
    }

    /// It is there.
    pub(super) fn arrived(&self) {
        if let Some(bound) = self.session.binding().as_mut() {
            bound.bundle_arrived = true;
        }
    }
}

struct Binding {
    request: BindRequest,
    bundle_arrived: bool,
}

#[derive(Clone)]
enum Remembered {
    Call(Call),
    Task(Arc<Task>),
}

impl Remembered {
    fn call(&self) -> &Call {
        match self {
            Self::Call(call) => call,
            Self::Task(task) => task.call(),
        }
    }
}

impl Outcome for Remembered {
    fn kept_bytes(&self) -> Option<usize> {
        self.call().kept_bytes()
    }
}

impl Session {
    pub(super) fn new(root: Arc<Root>, kernels: Vec<Arc<KernelLane>>, shell: Shell) -> Arc<Self> {
        Arc::new(Self {
            root,
            idle: IdleClock::new(),
            kernels,
            commands: CommandLane::start(shell.clone()),
            tasks: Tasks::new(shell),
            calls: Mutex::new(Invocations::new(MEMORY)),
            binding: Mutex::new(None),
            bundle: tokio::sync::Mutex::new(()),
            farewell: watch::Sender::new(None),
            outputs: AtomicU64::new(0),
        })
    }

    /// Binds the pod to a session, once.
    pub(super) fn bind(&self, request: BindRequest) -> Result<BindResponse, SessionError> {
        self.check_going_on()?;
        let mut binding = self.binding();
        let bundle_wanted = match binding.as_ref() {
            Some(bound) if bound.request == request => bound.wants_bundle(),
            Some(_) => {
                return Err(SessionError::new(
                    ErrorCode::BoundToAnother,
                    "the pod is bound already, to another session or with other parameters",
                ));
            }
            None => {
                self.idle
                    .limit(request.idle_timeout_seconds.map(Duration::from_secs));
                let wanted = request.bundle.is_some();
                *binding = Some(Binding {
                    request,
                    bundle_arrived: false,
                });
                wanted
            }
        };
        Ok(BindResponse {
            bundle_wanted,
            kernels: self
                .kernels
                .iter()
                .map(|kernel| kernel.name().to_owned())
                .collect(),
        })
    }

    pub(super) fn status(&self) -> SessionStatus {
        let (active, idle) = self.idle.now();
        SessionStatus {
            session: self.binding().as_ref().map(|bound| bound.request.session.clone()),
            kernels: self.kernels.iter().map(|kernel| kernel.status()).collect(),
            active,
            idle_seconds: idle.as_secs(),
        }
    }

    /// Whether files may be touched; the digest of the bundle that has not arrived yet.
    pub(super) fn check_bound(&self) -> Result<Option<String>, SessionError> {
        self.check_going_on()?;
        match self.binding().as_ref() {
            Some(bound) => Ok(bound.request.bundle.clone().filter(|_| bound.wants_bundle())),
            None => Err(SessionError::new(
                ErrorCode::NotBound,
                "no session is bound to this pod yet",
            )),
        }
    }

    fn check_going_on(&self) -> Result<(), SessionError> {
        match *self.farewell.borrow() {
            None => Ok(()),
            Some(_) => Err(SessionError::new(ErrorCode::Stopping, "the session is ending")),
        }
    }

    /// Whether code may run.
    fn check_ready(&self) -> Result<(), SessionError> {
        match self.check_bound()? {
            None => Ok(()),
            Some(digest) => Err(SessionError::new(
                ErrorCode::NotBound,
                format!("the session's bundle {digest} has not arrived yet"),
            )),
        }
    }

    fn check_commands(&self) -> Result<(), SessionError> {
        self.check_ready()?;
        match self.binding().as_ref() {
            Some(bound) if bound.request.commands => Ok(()),
            _ => Err(SessionError::new(
                ErrorCode::CommandsDisabled,
                "this interpreter permits no commands",
            )),
        }
    }

    /// Waits until no other bundle arrives.
    pub(super) async fn bundle_arrives(&self) -> Arriving<'_> {
        Arriving {
            session: self,
            _turn: self.bundle.lock().await,
        }
    }

    pub(super) fn execute(&self, request: ExecuteRequest) -> Result<Listener, SessionError> {
        self.check_ready()?;
        let kernel = self.kernel(&request.kernel)?;
        kernel.check(&request)?;
        let fingerprint = fingerprint("execute", &request)?;
        let withdraw = {
            let kernel = Arc::clone(kernel);
            move |call: &Call, why: &Stop| kernel.withdraw(call, why)
        };
        self.take(
            request.invocation.clone(),
            fingerprint,
            withdraw,
            |call, activity| {
                kernel.submit(Job {
                    call,
                    request,
                    activity,
                })
            },
        )
    }

    pub(super) fn command(&self, request: CommandRequest) -> Result<Listener, SessionError> {
        self.check_commands()?;
        check_command(&request)?;
        let fingerprint = fingerprint("command", &request)?;
        let withdraw = {
            let commands = Arc::clone(&self.commands);
            move |call: &Call, why: &Stop| commands.withdraw(call, why)
        };
        self.take(
            request.invocation.clone(),
            fingerprint,
            withdraw,
            |call, activity| {
                self.commands.submit(CommandJob {
                    call,
                    request,
                    activity,
                })
            },
        )
    }

    /// Takes a call that somebody listens to, unless it was made before.
    fn take(
        &self,
        invocation: Option<String>,
        fingerprint: Fingerprint,
        withdraw: impl FnOnce(&Call, &Stop) + Send + 'static,
        submit: impl FnOnce(Call, Activity) -> Result<(), SessionError>,
    ) -> Result<Listener, SessionError> {
        // Held to the end, so that of two equal calls at once one is new.
        let mut calls = self.calls();
        if let Some(known) = recall(&calls, invocation.as_deref(), fingerprint)? {
            return Ok(known.call().transcript.listen());
        }
        let call = Call::new(self.transcript());
        let listener = call.transcript.listen();
        submit(call.clone(), self.idle.begin())?;
        let unheard = call.clone();
        let mut farewell = self.farewell.subscribe();
        let ends = async move {
            // The session outlives its calls.
            let _ = farewell.wait_for(Option::is_some).await;
        };
        call.watch_over(UNHEARD_LIMIT, ends, move |why| withdraw(&unheard, why));
        if let Some(id) = invocation {
            calls.remember(id, fingerprint, Remembered::Call(call));
        }
        Ok(listener)
    }

    pub(super) fn start_task(&self, request: CommandRequest) -> Result<Arc<Task>, SessionError> {
        self.check_commands()?;
        check_command(&request)?;
        let fingerprint = fingerprint("task", &request)?;
        let mut calls = self.calls();
        match recall(&calls, request.invocation.as_deref(), fingerprint)? {
            Some(Remembered::Task(task)) => return Ok(task),
            Some(Remembered::Call(_)) => return Err(mismatch()),
            None => {}
        }
        let invocation = request.invocation.clone();
        let call = Call::new(self.transcript());
        let task = self.tasks.start(call, request, self.idle.begin())?;
        if let Some(id) = invocation {
            calls.remember(id, fingerprint, Remembered::Task(Arc::clone(&task)));
        }
        Ok(task)
    }

    pub(super) fn task(&self, id: &str) -> Result<Arc<Task>, SessionError> {
        self.check_commands()?;
        self.tasks.get(id)
    }

    pub(super) fn stop_task(&self, id: &str) -> Result<Arc<Task>, SessionError> {
        self.check_commands()?;
        self.tasks.stop(id)
    }

    /// Ends a call, whether it runs or waits. One that has ended stays as it is.
    pub(super) fn cancel(&self, invocation: &str) -> Result<(), SessionError> {
        self.check_bound()?;
        let call = match self.calls().get(invocation) {
            Some(remembered) => remembered.call().clone(),
            None => {
                return Err(SessionError::new(
                    ErrorCode::UnknownInvocation,
                    format!("there is no call `{}`", invocation.escape_debug()),
                ));
            }
        };
        let why = Stop::Cancelled("it was cancelled".to_owned());
        call.stop(why.clone());
        self.commands.withdraw(&call, &why);
        for kernel in &self.kernels {
            kernel.withdraw(&call, &why);
        }
        Ok(())
    }

    pub(super) async fn restart(&self, kernel: &str) -> Result<(), SessionError> {
        self.check_ready()?;
        self.kernel(kernel)?.restart().await
    }

    /// Begins the end, on behalf of the gateway.
    pub(super) fn stop(&self, session: &str) -> Result<(), SessionError> {
        match self.binding().as_ref() {
            Some(bound) if bound.request.session != session => {
                return Err(SessionError::new(
                    ErrorCode::BoundToAnother,
                    "the pod is bound to another session",
                ));
            }
            _ => {}
        }
        self.end(Farewell::Stopped);
        Ok(())
    }

    /// Begins the end. The first reason counts.
    pub(super) fn end(&self, reason: Farewell) {
        self.farewell.send_if_modified(|farewell| {
            let first = farewell.is_none();
            if first {
                *farewell = Some(reason);
            }
            first
        });
    }

    /// Waits until the session begins to end: because somebody wants that, or because it was idle for too long.
    pub(super) async fn ending(&self) -> Farewell {
        let mut farewell = self.farewell.subscribe();
        tokio::select! {
            idle = self.idle.expired() => self.end(Farewell::Idle(idle)),
            _ = farewell.wait_for(Option::is_some) => {}
        }
        let reason = *self.farewell.borrow();
        reason.unwrap_or(Farewell::Stopped)
    }

    fn transcript(&self) -> Arc<Transcript> {
        let number = self.outputs.fetch_add(1, Ordering::Relaxed) + 1;
        Transcript::new(Outputs {
            root: Arc::clone(&self.root),
            prefix: format!("{OUTPUT_FOLDER}/{number}"),
        })
    }

    fn kernel(&self, name: &str) -> Result<&Arc<KernelLane>, SessionError> {
        self.kernels
            .iter()
            .find(|kernel| kernel.name() == name)
            .ok_or_else(|| {
                let names: Vec<&str> = self.kernels.iter().map(|kernel| kernel.name()).collect();
                SessionError::new(
                    ErrorCode::UnknownKernel,
                    format!(
                        "there is no kernel `{}`; there are: {}",
                        name.escape_debug(),
                        names.join(", ")
                    ),
                )
            })
    }

    fn calls(&self) -> MutexGuard<'_, Invocations<Remembered>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn binding(&self) -> MutexGuard<'_, Option<Binding>> {
        self.binding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Binding {
    fn wants_bundle(&self) -> bool {
        self.request.bundle.is_some() && !self.bundle_arrived
    }
}

fn fingerprint(kind: &str, request: &impl Serialize) -> Result<Fingerprint, SessionError> {
    Fingerprint::of(kind, request)
        .map_err(|error| SessionError::new(ErrorCode::InvalidRequest, error.to_string()))
}

fn check_command(request: &CommandRequest) -> Result<(), SessionError> {
    match super::kernel::fault(&request.environment) {
        Some(fault) => Err(SessionError::new(ErrorCode::InvalidRequest, fault)),
        None => Ok(()),
    }
}

fn mismatch() -> SessionError {
    SessionError::new(
        ErrorCode::InvocationMismatch,
        "another call was made with this invocation id",
    )
}

fn recall(
    calls: &Invocations<Remembered>,
    invocation: Option<&str>,
    fingerprint: Fingerprint,
) -> Result<Option<Remembered>, SessionError> {
    match invocation.map(|id| calls.recall(id, fingerprint)) {
        None | Some(Recall::New) => Ok(None),
        Some(Recall::Same(known)) => Ok(Some(known)),
        Some(Recall::Other) => Err(mismatch()),
        Some(Recall::Forgotten) => Err(SessionError::new(
            ErrorCode::InvocationForgotten,
            "this call was made before; it is not run again, and what it came to is not kept any more",
        )),
    }
}
