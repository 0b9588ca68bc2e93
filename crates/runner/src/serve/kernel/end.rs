//! What callers are told about the end of an execution.

use codeworkspace_protocol::session::ExecutionOutcome;

use super::{Death, Ran};
use crate::processes::Ending;
use crate::serve::transcript::End;

const LOST: &str = "its variables are gone, and the next execution gets a new process";
const OUT_OF_MEMORY: &str = "the node's kernel killed a process of the session because memory ran out";
const SIGKILL: i32 = 9;

/// `killed` tells whether the node's kernel killed a process of the container meanwhile.
pub(super) fn end_of(ran: &Ran, killed: bool) -> End {
    match (&ran.stop, ran.death) {
        (Some(stop), Some(Death::Stuck)) => stop.end().remark(format!(
            "the kernel did not react to an interrupt and was ended: {LOST}"
        )),
        (Some(stop), Some(Death::ByItself(ending))) => stop.end().remark(format!(
            "the kernel ended when it was interrupted ({ending}): {LOST}"
        )),
        (None, Some(Death::ByItself(Ending::Signal(SIGKILL)))) if killed => {
            End::new(ExecutionOutcome::OutOfMemory).remark(format!("{OUT_OF_MEMORY}: {LOST}"))
        }
        (None, Some(Death::ByItself(ending))) => {
            End::new(ExecutionOutcome::Died).remark(format!("the kernel ended ({ending}): {LOST}"))
        }
        (None, Some(Death::Stuck)) => {
            End::new(ExecutionOutcome::Died).remark(format!("the kernel was ended: {LOST}"))
        }
        (Some(stop), death) if ran.error || ran.reply.is_none() => with_death(stop.end(), death),
        // What was finished before the stop had an effect is finished.
        (_, death) => {
            let aborted = ran.reply.as_ref().is_some_and(|reply| reply.status == "aborted");
            let end = if ran.error || aborted {
                End::new(ExecutionOutcome::Failed).exit_code(1)
            } else {
                End::new(ExecutionOutcome::Completed).exit_code(0)
            };
            let end = if killed { end.remark(OUT_OF_MEMORY) } else { end };
            with_death(end, death)
        }
    }
}

fn with_death(end: End, death: Option<Death>) -> End {
    match death {
        Some(_) => end.remark(format!("the code ended its kernel: {LOST}")),
        None => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::call::Stop;
    use crate::serve::kernel::Reply;

    fn replied(status: &str) -> Ran {
        let reply: Reply = serde_json::from_value(serde_json::json!({"status": status})).unwrap();
        Ran {
            error: status == "error",
            reply: Some(reply),
            ..Ran::default()
        }
    }

    fn died(death: Death) -> Ran {
        Ran {
            death: Some(death),
            ..Ran::default()
        }
    }

    fn told(ran: &Ran, killed: bool) -> (ExecutionOutcome, Option<i32>, String) {
        let end = end_of(ran, killed);
        (end.outcome, end.exit_code, end.message.unwrap_or_default())
    }

    #[test]
    fn a_reply_is_an_exit_code() {
        use ExecutionOutcome::{Completed, Failed};
        assert_eq!(told(&replied("ok"), false), (Completed, Some(0), String::new()));
        assert_eq!(told(&replied("error"), false), (Failed, Some(1), String::new()));
        assert_eq!(told(&replied("aborted"), false), (Failed, Some(1), String::new()));
        assert_eq!(
            told(&replied("ok"), true),
            (Completed, Some(0), OUT_OF_MEMORY.to_owned())
        );
        let mut ended = replied("ok");
        ended.death = Some(Death::Announced);
        let message = format!("the code ended its kernel: {LOST}");
        assert_eq!(told(&ended, false), (Completed, Some(0), message));
    }

    #[test]
    fn a_dead_kernel_has_no_exit_code_and_says_that_its_variables_are_gone() {
        use ExecutionOutcome::{Died, OutOfMemory};
        let killed = died(Death::ByItself(Ending::Signal(9)));
        let died_of_it = format!("the kernel ended (signal 9): {LOST}");
        assert_eq!(told(&killed, false), (Died, None, died_of_it));
        assert_eq!(
            told(&killed, true),
            (OutOfMemory, None, format!("{OUT_OF_MEMORY}: {LOST}"))
        );
        let exited = died(Death::ByItself(Ending::ExitCode(3)));
        let exit = format!("the kernel ended (exit code 3): {LOST}");
        assert_eq!(told(&exited, true), (Died, None, exit));
    }

    #[test]
    fn a_stop_is_told_unless_the_code_was_quicker() {
        use ExecutionOutcome::{Completed, TimedOut};
        let limit = "it took longer than its limit of 5 ms";
        for (mut ran, expected) in [
            (replied("error"), (TimedOut, None, limit.to_owned())),
            (replied("ok"), (Completed, Some(0), String::new())),
            (
                died(Death::Stuck),
                (
                    TimedOut,
                    None,
                    format!("{limit}; the kernel did not react to an interrupt and was ended: {LOST}"),
                ),
            ),
        ] {
            ran.stop = Some(Stop::TimedOut(5));
            assert_eq!(told(&ran, false), expected);
        }
    }
}
