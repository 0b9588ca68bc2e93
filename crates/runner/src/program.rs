//! Finding and starting the body's program, and saying in a person's words why that failed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeWriter, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::Pid;
use thiserror::Error;

/// Shells' exit code for a program that is not there.
const EXIT_NOT_FOUND: u8 = 127;

/// Shells' exit code for a program that is there and cannot be run.
const EXIT_CANNOT_RUN: u8 = 126;

/// Why a body could not be started. Every message names the program and what to do.
#[derive(Debug, Error)]
pub(crate) enum SpawnError {
    #[error("cannot start `{program}`: the working directory `{workdir}` cannot be entered: {error}")]
    Workdir {
        program: String,
        workdir: String,
        error: io::Error,
    },
    #[error(
        "cannot start `{program}`: no such program on the image's PATH ({path}); name a program that the image has, or pick \
         an image that has it (`runner.needs.language`, `runner.image`)"
    )]
    NotOnPath { program: String, path: String },
    #[error(
        "cannot start `{program}`: no such file in the image or the bundle; a relative path starts at the working directory"
    )]
    NoSuchFile { program: String },
    #[error("cannot start `{program}`: it is a directory; name a program in it")]
    Directory { program: String },
    #[error(
        "cannot start `{program}`: {} is not executable; set its executable bit at the source, or start it with its \
         interpreter (for example `bash {program}`)",
        file.display()
    )]
    NotExecutable { program: String, file: PathBuf },
    #[error(
        "cannot start `{program}`: its first line names the interpreter `{interpreter}`, which the image lacks; correct the \
         line, or pick an image that has it"
    )]
    NoInterpreter { program: String, interpreter: String },
    #[error(
        "cannot start `{program}`: its first line ends with a carriage return, which becomes part of the interpreter's name; \
         save the file with Unix line ends"
    )]
    CarriageReturn { program: String },
    #[error(
        "cannot start `{program}`: the loader that it was linked against is not in the image; it was probably built for \
         another C library or processor"
    )]
    NoLoader { program: String },
    #[error(
        "cannot start `{program}`: it is neither a program for this processor nor a script with a `#!` line; add the line, or \
         start it with its interpreter (for example `bash {program}`)"
    )]
    NotAProgram { program: String },
    #[error(
        "cannot start `{program}`: its arguments and environment are too long for the kernel; pass less, or use a file"
    )]
    TooLong { program: String },
    #[error("cannot start `{program}`: {error}")]
    Other { program: String, error: io::Error },
}

impl SpawnError {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NotOnPath { .. } | Self::NoSuchFile { .. } => EXIT_NOT_FOUND,
            _ => EXIT_CANNOT_RUN,
        }
    }
}

/// Starts the body in a process group of its own, with nothing on its standard input.
pub(crate) fn spawn(
    argv: &[String],
    workdir: &str,
    environment: &BTreeMap<OsString, OsString>,
    stdout: PipeWriter,
    stderr: PipeWriter,
) -> Result<Pid, SpawnError> {
    let (program, arguments) = argv
        .split_first()
        .map_or(("", argv), |(first, rest)| (first.as_str(), rest));
    // The runner itself moves, since it has no use for another place and relative programs start there.
    std::env::set_current_dir(workdir).map_err(|error| SpawnError::Workdir {
        program: program.to_owned(),
        workdir: workdir.to_owned(),
        error,
    })?;
    let path = environment
        .get(OsStr::new("PATH"))
        .map_or(OsStr::new(""), OsString::as_os_str);
    let file = find(program, path)?;
    // A path with a slash is run as it is; a bare name would be tried as a shell script when it is no program.
    nothing()
        .and_then(|stdin| {
            Command::new(&file)
                .arg0(program)
                .args(arguments)
                .env_clear()
                .envs(environment)
                .process_group(0)
                .stdin(stdin)
                .stdout(stdout)
                .stderr(stderr)
                .spawn()
        })
        .map(|child| Pid::from_child(&child))
        .map_err(|error| explain(program, &file, error))
}

/// `/dev/null`, or in a root without it a pipe that nobody writes to: both are at their end at once.
fn nothing() -> io::Result<Stdio> {
    match fs_err::File::open("/dev/null") {
        Ok(file) => Ok(Stdio::from(file.into_file())),
        Err(_) => io::pipe().map(|(reader, _)| Stdio::from(reader)),
    }
}

/// The file behind the first word: itself if it holds a slash, else the first executable of that name on the path (POSIX, Base
/// Definitions, 8.3).
fn find(program: &str, path: &OsStr) -> Result<PathBuf, SpawnError> {
    let own = || program.to_owned();
    if program.contains('/') {
        return Ok(PathBuf::from(program));
    }
    let mut refused = None;
    for folder in std::env::split_paths(path) {
        // An empty entry is the working directory, and the slash keeps it from being searched again.
        let folder = if folder.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            folder
        };
        let file = folder.join(program);
        if !file.is_file() {
            continue;
        }
        if access(&file, Access::EXEC_OK).is_ok() {
            return Ok(file);
        }
        refused.get_or_insert(file);
    }
    Err(match refused {
        Some(file) => SpawnError::NotExecutable { program: own(), file },
        None => SpawnError::NotOnPath {
            program: own(),
            path: path.to_string_lossy().into_owned(),
        },
    })
}

/// The kernel says ENOENT for a missing file, a missing interpreter and a missing loader alike, so the file is looked at.
fn explain(program: &str, file: &Path, error: io::Error) -> SpawnError {
    let program = program.to_owned();
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NOTDIR) if !file.exists() => SpawnError::NoSuchFile { program },
        Some(Errno::NOENT) => match head(file) {
            Some(head) if head.starts_with(b"#!") => interpreter_error(program, &head),
            _ => SpawnError::NoLoader { program },
        },
        Some(Errno::ACCESS) if file.is_dir() => SpawnError::Directory { program },
        Some(Errno::ACCESS) => SpawnError::NotExecutable {
            program,
            file: file.to_owned(),
        },
        Some(Errno::NOEXEC) => SpawnError::NotAProgram { program },
        Some(Errno::TOOBIG) => SpawnError::TooLong { program },
        _ => SpawnError::Other { program, error },
    }
}

/// As much of a file as the kernel looks at for a `#!` line (execve(2), "Interpreter scripts").
fn head(file: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    fs_err::File::open(file)
        .ok()?
        .take(256)
        .read_to_end(&mut head)
        .ok()?;
    Some(head)
}

fn interpreter_error(program: String, head: &[u8]) -> SpawnError {
    let line = head[2..].split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    if line.ends_with('\r') {
        return SpawnError::CarriageReturn { program };
    }
    let interpreter = line
        .split_ascii_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned();
    SpawnError::NoInterpreter { program, interpreter }
}
