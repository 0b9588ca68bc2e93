//! `runner exec`: process 1 of the body's container.

mod relay;
mod supervisor;

use std::process::ExitCode;

use codeworkspace_protocol::{ExecArguments, RunRecord};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::clock::now;
use crate::record_file::RecordFile;
use supervisor::{Start, Supervisor};

/// `EX_IOERR` of `sysexits.h`: the body was not started because nobody would learn of its outcome.
const EXIT_NO_RECORD: u8 = 74;

/// Runs the body to its end and answers with the container's exit code.
pub(crate) fn exec(arguments: &ExecArguments) -> ExitCode {
    let record = RunRecord::running(now());
    let record_file = match protect().and_then(|()| RecordFile::open(&arguments.termination_log)) {
        Ok(file) => file,
        Err(error) => return without_record(&error),
    };
    // Written ahead, so that a record that cannot be written is known before the body does anything.
    if let Err(error) = record_file.write(&record) {
        return without_record(&error);
    }
    match Supervisor::start(arguments, record, &record_file) {
        Start::Running(supervisor) => {
            let ended = supervisor.supervise();
            if let Err(error) = record_file.write(ended.record()) {
                eprintln!("runner: the run's record cannot be written: {error}");
            }
            let code = ended.record().container_exit_code().unwrap_or(u8::MAX);
            ended.flush();
            ExitCode::from(code)
        }
        Start::Failed { record, exit_code } => {
            let message = record.message.as_deref().unwrap_or_default();
            eprintln!("runner: {message}");
            if let Err(error) = record_file.write(&record) {
                eprintln!("runner: the run's record cannot be written: {error}");
            }
            ExitCode::from(exit_code)
        }
    }
}

/// The body has the runner's user id. Not dumpable, the runner's memory, environment and descriptors are closed to it (ptrace(2),
/// "Ptrace access mode checking").
fn protect() -> std::io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(Into::into)
}

fn without_record(error: &std::io::Error) -> ExitCode {
    eprintln!("runner: the body is not started, because its outcome could not be recorded: {error}");
    ExitCode::from(EXIT_NO_RECORD)
}
