//! The in-pod runner: one static binary that knows nothing about the image it runs in.
//!
//! `runner prepare` is the init container: it unpacks the verified bundle and installs the runner in a volume.
//! `runner exec` is process 1 of the body's container: it runs the body and keeps the record of the run.
//! `runner read` has a pod of its own: it sends the files of a volume to the operator.
//! `runner register` is the init container of a session: it makes the pod's key and tells the operator about it.
//! `runner serve` is process 1 of a session's container: it runs kernels, and code in them, for the gateway.

mod clock;
mod environment;
mod exec;
mod install;
mod memory;
mod prepare;
mod processes;
mod program;
mod read;
mod record_file;
mod register;
mod serve;
mod trust;
mod unpack;
mod volume;

use std::process::ExitCode;

use codeworkspace_protocol::RunnerArguments;

/// `EX_USAGE` of `sysexits.h`.
const EXIT_USAGE: u8 = 64;

fn main() -> ExitCode {
    match arguments() {
        Ok(RunnerArguments::Prepare(arguments)) => prepare::prepare(&arguments),
        Ok(RunnerArguments::Exec(arguments)) => exec::exec(&arguments),
        Ok(RunnerArguments::Read(arguments)) => read::read(&arguments),
        Ok(RunnerArguments::Register(arguments)) => register::register(&arguments),
        Ok(RunnerArguments::Serve(arguments)) => serve::serve(&arguments),
        Err(error) => {
            eprint!("runner: {error}\n{}", RunnerArguments::USAGE);
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn arguments() -> Result<RunnerArguments, String> {
    let words = std::env::args_os()
        .skip(1)
        .map(|word| {
            word.into_string()
                .map_err(|word| format!("the argument `{}` is not UTF-8", word.display()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    RunnerArguments::parse(&words).map_err(|error| error.to_string())
}
