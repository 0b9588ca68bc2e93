//! The `git` command line program, run on bare repositories.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::ServerError;

/// What a revision names: the full object id and its type (`commit`, `tag`, `tree` or `blob`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) id: String,
    pub(crate) kind: String,
}

/// Runs `git` with the repository `directory` and returns its standard output.
///
/// The machine's own configuration is kept out, so that commits and archives come out alike everywhere.
pub(crate) fn run(directory: &Path, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, ServerError> {
    let failed = |detail: String| ServerError::Git {
        command: arguments.first().copied().unwrap_or_default().to_owned(),
        detail,
    };
    let mut child = Command::new("git")
        .arg("--git-dir")
        .arg(directory)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("git does not start, install it: {error}")))?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // Input and output flow at the same time, or both sides wait on full pipes.
        scope.spawn(move || {
            // A program that ends early closes the pipe; its exit status tells why.
            stdin.map(|mut pipe| pipe.write_all(input))
        });
        child.wait_with_output()
    })
    .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}

/// What `revision` names, or `None` when the repository has no such object.
pub(crate) fn object(directory: &Path, revision: &str) -> Result<Option<Object>, ServerError> {
    if revision.contains('\n') {
        return Ok(None);
    }
    let output = run(
        directory,
        &["cat-file", "--batch-check"],
        format!("{revision}\n").as_bytes(),
    )?;
    let line = String::from_utf8_lossy(&output);
    let mut words = line.trim_end().rsplit(' ');
    let (_size, kind, id) = (words.next(), words.next(), words.next());
    Ok(match (kind, id) {
        (Some(kind @ ("commit" | "tag" | "tree" | "blob")), Some(id)) => Some(Object {
            id: id.to_owned(),
            kind: kind.to_owned(),
        }),
        _ => None,
    })
}

/// The object that the reference of exactly this full name (`refs/heads/main`) points at.
///
/// No prefix or short name matches, unlike a revision.
pub(crate) fn reference(directory: &Path, name: &str) -> Result<Option<Object>, ServerError> {
    let listing = run(
        directory,
        &["for-each-ref", "--format=%(objectname) %(objecttype) %(refname)"],
        b"",
    )?;
    Ok(String::from_utf8_lossy(&listing).lines().find_map(|line| {
        let mut words = line.splitn(3, ' ');
        let (id, kind, full) = (words.next()?, words.next()?, words.next()?);
        (full == name).then(|| Object {
            id: id.to_owned(),
            kind: kind.to_owned(),
        })
    }))
}

/// Whether no reference exists yet, which GitHub calls an empty repository.
pub(crate) fn is_empty(directory: &Path) -> Result<bool, ServerError> {
    Ok(run(directory, &["for-each-ref", "--count=1"], b"")?.is_empty())
}
