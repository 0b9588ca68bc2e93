//! Jupyter kernels: real processes, each with a connection of its own.

mod end;
mod environment;
mod iopub;
mod lane;
mod launch;
mod spec;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use zeromq::{DealerSocket, SocketRecv as _, SocketSend as _, ZmqError, ZmqMessage};

use super::call::Stop;
use super::children::Child;
use super::transcript::Transcript;
use crate::processes::Ending;
use iopub::{AFTER_FAULT, Exception, Iopub};
use spec::InterruptMode;
use wire::Wire;

pub(super) use environment::fault;
pub(super) use lane::{Job, KernelLane, Setup};
pub(super) use launch::LaunchError;

/// How long an interrupted kernel may take to come back before its process is ended.
const INTERRUPT_GRACE: Duration = Duration::from_secs(5);
/// How long the end of the output may be silent after the reply until the kernel is asked something else: it publishes in order, so what
/// comes before that answer is all. The end itself may have been dropped.
const PROBE_AFTER: Duration = Duration::from_secs(2);
/// How long a kernel that has replied, or has told its end, may be silent until nothing more is waited for. One message may be very long.
const SETTLE_LIMIT: Duration = Duration::from_secs(30);
/// How long the last messages of a dead kernel are waited for after each other.
const AFTERMATH: Duration = Duration::from_millis(150);
const AFTERMATH_LIMIT: Duration = Duration::from_secs(2);
/// How long one greeting may remain unanswered until the next: the first ones may come before the kernel publishes to us.
const GREETING: Duration = Duration::from_millis(250);

/// A kernel's process that has answered.
pub(super) struct Kernel {
    process: Child,
    wire: Wire,
    shell: DealerSocket,
    control: DealerSocket,
    iopub: Iopub,
    /// No code of a caller ran in it.
    fresh: bool,
}

/// A kernel's answer to a request.
#[derive(Debug, Deserialize)]
struct Reply {
    status: String,
    #[serde(flatten)]
    exception: Exception,
    #[serde(default)]
    payload: Vec<Value>,
}

impl Reply {
    /// Whether the code asked the kernel to end, as `exit()` does in IPython.
    fn announces_end(&self) -> bool {
        self.payload.iter().any(|payload| payload["source"] == "ask_exit")
    }
}

/// What came of a request.
#[derive(Debug, Default)]
struct Ran {
    reply: Option<Reply>,
    /// An exception was published or replied.
    error: bool,
    stop: Option<Stop>,
    death: Option<Death>,
}

/// How the process ended while it ran.
#[derive(Debug, Clone, Copy)]
enum Death {
    ByItself(Ending),
    /// It did not react to an interrupt.
    Stuck,
    /// The code asked the kernel to end once it had been answered.
    Announced,
}

impl Kernel {
    /// Waits until the kernel answers and its publications arrive.
    async fn greet(&mut self) -> Result<(), ZmqError> {
        loop {
            let (id, request) = self.wire.request("kernel_info_request", &json!({}));
            self.iopub.expect(&id, None);
            self.shell.send(request).await?;
            let answered = timeout(GREETING, async {
                let mut replied = false;
                while !(replied && self.iopub.heard().idle) {
                    tokio::select! {
                        message = self.shell.recv() => replied |= message
                            .is_ok_and(|message| is_reply(&self.wire, message, &id).is_some()),
                        () = self.iopub.progress() => {}
                    }
                }
            });
            if answered.await.is_ok() {
                return Ok(());
            }
        }
    }

    /// Runs code, and tells `sink` what it prints. `stop` may be asked for once.
    async fn run(
        &mut self,
        code: &str,
        sink: Option<&Arc<Transcript>>,
        mode: InterruptMode,
        stop: impl Future<Output = Stop>,
    ) -> Ran {
        let content = json!({
            "code": code, "silent": sink.is_none(), "store_history": sink.is_some(), "user_expressions": {},
            // `input()` is answered by an error: nobody is there to type.
            "allow_stdin": false, "stop_on_error": true,
        });
        let (id, request) = self.wire.request("execute_request", &content);
        self.iopub.expect(&id, sink);
        let mut ran = Ran::default();
        // A send that fails is the connection's end, and so the process's.
        let _ = self.shell.send(request).await;
        tokio::pin!(stop);
        let mut kill_at = None;
        let mut silent_since = None;
        let mut probed = false;
        loop {
            let heard = self.iopub.heard();
            if ran.reply.is_some() && (heard.idle || heard.probe) {
                break;
            }
            let since = silent_since.unwrap_or_else(Instant::now);
            tokio::select! {
                ending = self.process.ended() => {
                    self.await_aftermath().await;
                    ran.death = Some(Death::ByItself(ending));
                    break;
                }
                message = self.shell.recv() => match message {
                    Ok(message) => if let Some(reply) = is_reply(&self.wire, message, &id) {
                        ran.reply = Some(reply);
                        silent_since = Some(Instant::now());
                    },
                    Err(_) => sleep(AFTER_FAULT).await,
                },
                () = self.iopub.progress() => if ran.reply.is_some() || self.iopub.heard().idle {
                    silent_since = Some(Instant::now());
                },
                reason = &mut stop, if ran.stop.is_none() => {
                    ran.stop = Some(reason);
                    self.interrupt(mode).await;
                    kill_at = Some(Instant::now() + INTERRUPT_GRACE);
                }
                () = sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() => {
                    self.end().await;
                    ran.death = Some(Death::Stuck);
                    break;
                }
                () = sleep_until(since + PROBE_AFTER), if ran.reply.is_some() && !probed => {
                    probed = true;
                    self.probe().await;
                }
                () = sleep_until(since + SETTLE_LIMIT), if silent_since.is_some() => break,
            }
        }
        ran.error = self.iopub.heard().error;
        if let Some(reply) = &ran.reply
            && reply.status == "error"
            && !ran.error
        {
            ran.error = true;
            if let Some(sink) = sink {
                reply.exception.tell(sink);
            }
        }
        if ran.death.is_none() && ran.reply.as_ref().is_some_and(Reply::announces_end) {
            // It ends by itself, but the next code must not be sent to one that is about to.
            self.end().await;
            ran.death = Some(Death::Announced);
        }
        // What is published from now on belongs to nobody.
        self.iopub.expect("", None);
        ran
    }

    /// Asks for something that has no effect.
    async fn probe(&mut self) {
        let (id, request) = self.wire.request("kernel_info_request", &json!({}));
        self.iopub.probe(&id);
        let _ = self.shell.send(request).await;
    }

    /// What a process had published when it died may still be on its way.
    async fn await_aftermath(&mut self) {
        let limit = sleep(AFTERMATH_LIMIT);
        tokio::pin!(limit);
        loop {
            tokio::select! {
                quiet = timeout(AFTERMATH, self.iopub.progress()) => if quiet.is_err() {
                    return;
                },
                () = &mut limit => return,
            }
        }
    }

    async fn interrupt(&mut self, mode: InterruptMode) {
        match mode {
            InterruptMode::Signal => self.process.signal(Signal::INT),
            InterruptMode::Message => {
                let (_, request) = self.wire.request("interrupt_request", &json!({}));
                // A kernel that does not take it is ended after its grace.
                let _ = self.control.send(request).await;
            }
        }
    }

    /// Kills the process and waits for that.
    async fn end(&mut self) {
        self.process.signal(Signal::KILL);
        self.process.ended().await;
    }
}

/// The reply to request `id`, if the message is that.
fn is_reply(wire: &Wire, message: ZmqMessage, id: &str) -> Option<Reply> {
    let message = wire.read(message).ok()?;
    if message.parent.as_deref() != Some(id) {
        return None;
    }
    // The status is what counts; the rest may be any JSON.
    serde_json::from_slice(&message.content).ok().or_else(|| {
        let content: Value = serde_json::from_str(&String::from_utf8_lossy(&message.content)).ok()?;
        serde_json::from_value(json!({"status": content.get("status")?})).ok()
    })
}
