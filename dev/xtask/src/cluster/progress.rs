//! Signs of life during what takes long: a build server ends jobs that say nothing, and so do people.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fs_err as fs;

use super::command;

/// Time without a word.
const SILENCE: Duration = Duration::from_secs(15);

/// Something that takes long.
pub(super) struct Progress<'a> {
    what: &'a str,
    started: Instant,
    said: u32,
}

impl<'a> Progress<'a> {
    /// Begins; says nothing yet. `what` reads well after "still".
    pub(super) fn of(what: &'a str) -> Self {
        Self {
            what,
            started: Instant::now(),
            said: 0,
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// To be called often: says how long it has taken, at long intervals.
    pub(super) fn tick(&mut self) {
        if self.elapsed() >= SILENCE * (self.said + 1) {
            eprintln!("  still {}: {} s", self.what, self.elapsed().as_secs());
            self.said += 1;
        }
    }
}

/// Runs a command that takes long. Its output goes to a log, whose end is part of the error.
pub(super) fn run(command: &mut Command, what: &str, log: &Path) -> Result<()> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder)?;
    }
    let output = fs::File::create(log)?.into_parts().0;
    let mut progress = Progress::of(what);
    let mut child = command.stdout(output.try_clone()?).stderr(output).spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            if status.success() {
                return Ok(());
            }
            bail!(
                "{what} failed ({status}); the end of {}:\n{}",
                log.display(),
                command::tail(log)
            );
        }
        progress.tick();
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_tells_what_failed_and_shows_the_end_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let error = run(
            Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"]),
            "trying",
            &log,
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "trying failed (exit status: 3); the end of {}:\none\ntwo",
                log.display()
            )
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            run(
                &mut Command::new("/nonexistent"),
                "trying",
                &folder.path().join("log")
            )
            .is_err()
        );
    }
}
