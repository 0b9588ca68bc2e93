//! One execution or command, from when it was taken to its end.

use std::sync::Arc;
use std::time::Duration;

use codeworkspace_protocol::session::ExecutionOutcome;
use tokio::sync::watch;
use tokio::time::sleep;

use super::invocations::Outcome;
use super::transcript::{End, Transcript};

/// How long a call goes on although nobody listens: enough for another gateway to repeat it.
pub(super) const UNHEARD_LIMIT: Duration = Duration::from_secs(10);

/// Why a call is ended before its own end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// Somebody wants that, or nobody wants the call any more.
    Cancelled(String),
    /// The call's own limit, in milliseconds.
    TimedOut(u64),
}

impl Stop {
    pub(super) fn end(&self) -> End {
        match self {
            Self::Cancelled(why) => End::new(ExecutionOutcome::Cancelled).remark(why.clone()),
            Self::TimedOut(limit) => End::new(ExecutionOutcome::TimedOut)
                .remark(format!("it took longer than its limit of {limit} ms")),
        }
    }
}

/// What is told about the call, and whether it has to stop.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) transcript: Arc<Transcript>,
    stop: watch::Sender<Option<Stop>>,
}

impl Call {
    pub(super) fn new(transcript: Arc<Transcript>) -> Self {
        Self {
            transcript,
            stop: watch::Sender::new(None),
        }
    }

    /// Asks for the end. The first reason counts.
    pub(super) fn stop(&self, reason: Stop) {
        self.stop.send_if_modified(|stop| {
            let first = stop.is_none();
            if first {
                *stop = Some(reason);
            }
            first
        });
    }

    /// Waits until somebody asks for the end.
    pub(super) async fn stopped(&self) -> Stop {
        let mut stop = self.stop.subscribe();
        match stop.wait_for(Option::is_some).await.map(|stop| stop.clone()) {
            Ok(Some(reason)) => reason,
            // The sender is `self`.
            _ => std::future::pending().await,
        }
    }

    /// Waits until somebody asks for the end or the call's own limit is over, from now on.
    pub(super) async fn stopped_within(&self, timeout_ms: Option<u64>) -> Stop {
        let limit = async {
            match timeout_ms {
                Some(limit) => {
                    sleep(Duration::from_millis(limit)).await;
                    Stop::TimedOut(limit)
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            stop = self.stopped() => stop,
            stop = limit => stop,
        }
    }

    /// Stops the call once nobody has listened for as long as `limit`, and then does `also`. The call's listeners hear of its end at once
    /// when the whole session `ends`.
    pub(super) fn watch_over(
        &self,
        limit: Duration,
        ends: impl Future<Output = ()> + Send + 'static,
        also: impl FnOnce(&Stop) + Send + 'static,
    ) {
        let call = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = call.transcript.ended() => {}
                () = ends => {
                    let why = Stop::Cancelled("the session is ending".to_owned());
                    call.transcript.finish(why.end());
                }
                () = call.transcript.unheard(limit) => {
                    let why = Stop::Cancelled(format!("nobody listened for {} s", limit.as_secs()));
                    call.stop(why.clone());
                    also(&why);
                }
            }
        });
    }

    /// Whether both are the same call.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.transcript, &other.transcript)
    }
}

impl Outcome for Call {
    fn kept_bytes(&self) -> Option<usize> {
        self.transcript.kept_bytes()
    }
}
