//! Commands of which one runs at a time, in the order in which they came.

use std::sync::Arc;

use codeworkspace_protocol::session::{CommandRequest, ErrorCode, QUEUE_DEPTH, SessionError};

use super::Shell;
use crate::serve::call::{Call, Stop};
use crate::serve::idle::Activity;
use crate::serve::queue::Queue;

/// A command that waits or runs.
pub(in crate::serve) struct CommandJob {
    pub(in crate::serve) call: Call,
    pub(in crate::serve) request: CommandRequest,
    pub(in crate::serve) activity: Activity,
}

pub(in crate::serve) struct CommandLane {
    queue: Queue<CommandJob>,
}

impl CommandLane {
    pub(in crate::serve) fn start(shell: Shell) -> Arc<Self> {
        let lane = Arc::new(Self {
            queue: Queue::new(QUEUE_DEPTH),
        });
        let working = Arc::clone(&lane);
        tokio::spawn(async move {
            loop {
                let CommandJob {
                    call,
                    request,
                    activity,
                } = working.queue.next().await;
                call.transcript.finish(shell.run(&request, &call).await);
                drop(activity);
            }
        });
        lane
    }

    /// Takes a command into the queue.
    pub(in crate::serve) fn submit(&self, job: CommandJob) -> Result<(), SessionError> {
        self.queue.push(job).map_err(|_| {
            SessionError::new(
                ErrorCode::QueueFull,
                format!("{QUEUE_DEPTH} commands wait already"),
            )
        })
    }

    /// Ends a call that has not begun.
    pub(in crate::serve) fn withdraw(&self, call: &Call, why: &Stop) {
        for job in self.queue.take_if(|job| job.call.is(call)) {
            job.call.transcript.finish(why.end().remark("it had not begun"));
        }
    }
}
