//! `runner register`: the init container of a session's pod. When it ends well, the runner is installed, the pod has a key of its
//! own, and the operator knows the key's digest, by which the gateway will know the pod.

mod client;
mod identity;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use codeworkspace_protocol::{Cause, RegisterArguments, RunRecord};
use thiserror::Error;

use crate::clock::now;
use crate::install::install;
use crate::record_file::tell_failure;
use client::{Client, RegistrationError};

#[derive(Debug, Error)]
enum RegisterError {
    #[error("the runner cannot be installed: {0}")]
    Install(io::Error),
    #[error("the pod's key cannot be made: {0}")]
    Identity(io::Error),
    #[error("{0}")]
    Registration(#[from] RegistrationError),
}

impl RegisterError {
    fn cause(&self) -> Cause {
        match self {
            Self::Install(_) => Cause::InstallFailed,
            Self::Identity(_) | Self::Registration(_) => Cause::RegistrationFailed,
        }
    }
}

/// Registers the pod, and says in the termination log why that failed.
pub(crate) fn register(arguments: &RegisterArguments) -> ExitCode {
    let record = RunRecord::running(now());
    let Err(error) = attempt(arguments) else {
        return ExitCode::SUCCESS;
    };
    tell_failure(
        record,
        error.cause(),
        error.to_string(),
        &arguments.termination_log,
    );
    ExitCode::FAILURE
}

fn attempt(arguments: &RegisterArguments) -> Result<(), RegisterError> {
    install(Path::new(&arguments.install)).map_err(RegisterError::Install)?;
    let key_digest = identity::provide(Path::new(&arguments.identity)).map_err(RegisterError::Identity)?;
    let client = Client::new(arguments).map_err(RegisterError::Identity)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RegisterError::Identity)?;
    runtime.block_on(client.register(key_digest))?;
    Ok(())
}
