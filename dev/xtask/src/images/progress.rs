//! Runs long programs: their steps on the terminal with the seconds elapsed, everything in a log file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;

/// After this time without a step the last line of output is shown, so that a long compilation is seen to move.
const SILENCE: Duration = Duration::from_secs(30);

/// How many lines of a failed program's output its error carries.
const TAIL_LINES: usize = 30;

/// The terminal, with the time since the work began.
pub(super) struct Progress {
    start: Instant,
}

impl Progress {
    pub(super) fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub(super) fn say(&self, message: &str) {
        eprintln!("[{:>4} s] {message}", self.start.elapsed().as_secs());
    }

    /// Runs `command` to its end. `name` stands before each of its lines; `log` gets all of its output.
    pub(super) fn run(&self, name: &str, mut command: Command, log: &Path) -> Result<()> {
        if let Some(folder) = log.parent() {
            fs::create_dir_all(folder)?;
        }
        let log_file = fs::File::create(log)?.into_parts().0;
        let (output, input) = std::io::pipe()?;
        command.stdout(input.try_clone()?).stderr(input);
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .spawn()
            .with_context(|| format!("`{program}` could not be started"))?;
        // The command holds the pipe's other end, whose closing tells that the program ended.
        drop(command);
        let (sender, receiver) = channel();
        let reader = std::thread::spawn(move || {
            for_each_line(output, |line| sender.send(line).is_ok());
        });
        let tail = self.follow(name, &receiver, log_file)?;
        let status = child.wait()?;
        reader.join().ok();
        if !status.success() {
            bail!(
                "{name}: `{program}` failed ({status}). Its last lines, of {}:\n{tail}",
                log.display()
            );
        }
        Ok(())
    }

    fn follow(&self, name: &str, lines: &Receiver<String>, mut log: File) -> Result<String> {
        let mut tail = VecDeque::with_capacity(TAIL_LINES);
        let mut shown = Instant::now();
        loop {
            match lines.recv_timeout(SILENCE.saturating_sub(shown.elapsed())) {
                Ok(line) => {
                    writeln!(log, "{line}")?;
                    if let Some(step) = step(&line) {
                        self.say(&format!("{name}: {step}"));
                        shown = Instant::now();
                    }
                    if tail.len() == TAIL_LINES {
                        tail.pop_front();
                    }
                    tail.push_back(line);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let last = tail.back().map_or("", String::as_str);
                    self.say(&format!("{name}: … {}", shortened(last)));
                    shown = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(Vec::from(tail).join("\n")),
            }
        }
    }
}

/// Calls `take` with each line until the end or until it returns false. Output need not be UTF-8.
fn for_each_line(output: impl Read, mut take: impl FnMut(String) -> bool) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while matches!(output.read_until(b'\n', &mut line), Ok(length) if length > 0) {
        if !take(String::from_utf8_lossy(&line).trim_end().to_owned()) {
            return;
        }
        line.clear();
    }
}

/// What to show of a line with which buildah or mmdebstrap announces a step.
fn step(line: &str) -> Option<String> {
    let is_step = line.starts_with("STEP ") || (line.starts_with('[') && line.contains("] STEP "));
    match line.strip_prefix("I: ") {
        Some(message) => Some(shortened(message)),
        None => is_step.then(|| shortened(line)),
    }
}

/// One line of a terminal's width, less what stands before it.
fn shortened(line: &str) -> String {
    const WIDTH: usize = 90;
    let mut short = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = short.char_indices().nth(WIDTH) {
        short.truncate(end);
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_log_holds_both_streams() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("logs/python.log");
        Progress::start()
            .run("python", shell("echo one; echo two >&2"), &log)
            .unwrap();
        assert_eq!(fs::read_to_string(log).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_failure_carries_the_end_of_the_output_and_the_path_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("python.log");
        let script = "seq 100; printf 'no such \\377package'; exit 7";
        let error = Progress::start()
            .run("python", shell(script), &log)
            .unwrap_err()
            .to_string();
        let (first, rest) = error.split_once('\n').unwrap();
        assert_eq!(
            first,
            format!(
                "python: `sh` failed (exit status: 7). Its last lines, of {}:",
                log.display()
            )
        );
        let expected: Vec<_> = (72..=100)
            .map(|n| n.to_string())
            .chain(["no such \u{fffd}package".into()])
            .collect();
        assert_eq!(rest.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn steps_are_shown_and_other_output_is_not() {
        assert_eq!(
            step("STEP 1/2: FROM scratch").as_deref(),
            Some("STEP 1/2: FROM scratch")
        );
        assert_eq!(
            step("[1/2] STEP 2/3: RUN true").as_deref(),
            Some("[1/2] STEP 2/3: RUN true")
        );
        assert_eq!(
            step("I: extracting archives...").as_deref(),
            Some("extracting archives...")
        );
        assert_eq!(
            step("STEP 1/1: RUN true  &&    false").as_deref(),
            Some("STEP 1/1: RUN true && false")
        );
        assert_eq!(step("   Compiling kube v5.0.0"), None);
        let long = step(&format!("STEP 1/1: RUN {}", "é".repeat(200)));
        assert_eq!(long, Some(format!("STEP 1/1: RUN {}…", "é".repeat(76))));
    }
}
