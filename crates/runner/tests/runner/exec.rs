//! `runner exec` with real bodies: their outcome, their streams, their environment.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::fixture::{Exec, RUNNER, eventually, script, silent, timeless, whole};
use codeworkspace_protocol::{Cause, RunRecord, RunState};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

#[test]
fn the_bodys_exit_code_is_recorded_and_becomes_the_containers() {
    for code in [0, 3, 137] {
        let outcome = Exec::new().shell(&format!("exit {code}"));
        assert_eq!(outcome.code(), Some(code));
        assert_eq!(
            timeless(&outcome.record()),
            silent(Cause::Exited, Some(code), None)
        );
    }
}

#[test]
fn death_by_a_signal_gives_the_signal_and_no_exit_code() {
    for (signal, code) in [(9, 137), (15, 143), (11, 139)] {
        let outcome = Exec::new().shell(&format!("kill -{signal} $$"));
        assert_eq!(outcome.code(), Some(code));
        assert_eq!(
            timeless(&outcome.record()),
            silent(Cause::Signalled, None, Some(signal))
        );
    }
}

#[test]
fn output_is_passed_on_and_its_end_is_recorded() {
    let outcome = Exec::new().shell("printf 'one\ntwo'; printf 'no line end' >&2");
    assert_eq!(
        (outcome.stdout().as_str(), outcome.stderr().as_str()),
        ("one\ntwo", "no line end")
    );
    let mut expected = silent(Cause::Exited, Some(0), None);
    (expected.stdout, expected.stderr) = (whole("one\ntwo"), whole("no line end"));
    assert_eq!(timeless(&outcome.record()), expected);
}

#[test]
fn fifty_megabytes_on_both_streams_are_counted_exactly() {
    let outcome = Exec::new().shell("yes stderr | head -c 50000001 >&2 & yes | head -c 50000000; wait");
    let record = outcome.record();
    assert_eq!(
        (outcome.stdout.len(), outcome.stderr.len()),
        (50_000_000, 50_000_001)
    );
    assert_eq!(
        (record.stdout.total_bytes, record.stderr.total_bytes),
        (50_000_000, 50_000_001)
    );
    assert_eq!(record.stdout.tail, "y\n".repeat(512));
    assert!(record.stdout.truncated && record.stderr.truncated);
}

#[test]
fn binary_noise_arrives_byte_for_byte() {
    let exec = Exec::new();
    let noise: Vec<u8> = (0..300_000_u32)
        .flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    fs_err::write(exec.directory.path().join("noise"), &noise).unwrap();
    let outcome = exec.run(&["cat", "noise"]);
    assert!(outcome.stdout == noise, "the noise has changed on its way");
    assert_eq!(outcome.record().stdout.total_bytes, noise.len() as u64);
}

#[test]
fn the_body_starts_in_its_directory_with_nothing_to_read_and_a_group_of_its_own() {
    let exec = Exec::new();
    let mut command = exec.command(&["sh", "-c", "pwd; cat; cut -d' ' -f5 /proc/$$/stat; echo $$"]);
    // An input that stays open would make `cat` wait for ever if it were passed on.
    let mut runner = command.stdin(Stdio::piped()).spawn().unwrap();
    let input = runner.stdin.take();
    let outcome = exec.finish(runner.wait_with_output().unwrap());
    drop(input);
    let lines: Vec<_> = outcome.stdout().lines().map(str::to_owned).collect();
    assert_eq!(lines[0], exec.directory.path().to_str().unwrap());
    assert_eq!(lines[1], lines[2]);
}

#[test]
fn the_body_gets_the_images_variables_and_the_base_and_nothing_of_the_cluster() {
    let exec = Exec::new();
    let mut command = exec.command(&["env"]);
    command.env_clear().envs([
        ("PATH", "/usr/bin:/bin"),
        ("PYTHON_VERSION", "3.13"),
        ("HOME", "/"),
        ("HOSTNAME", "pod-x"),
        ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
        ("KUBERNETES_PORT_443_TCP", "tcp://10.0.0.1:443"),
        ("CACHE_SERVICE_HOST", "10.0.0.2"),
        ("CACHE_SERVICE_PORT", "6379"),
        ("CACHE_PORT_6379_TCP_ADDR", "10.0.0.2"),
    ]);
    let outcome = exec.finish(command.output().unwrap());
    let mut variables: Vec<_> = outcome.stdout().lines().map(str::to_owned).collect();
    variables.sort();
    let pwd = format!("PWD={}", exec.directory.path().display());
    assert_eq!(
        variables,
        [
            "HOME=/home/codeworkspace",
            "LANG=C.UTF-8",
            "PATH=/usr/bin:/bin",
            &pwd,
            "PYTHON_VERSION=3.13",
            "TMPDIR=/tmp"
        ]
    );
}

#[test]
fn a_body_that_cannot_be_started_says_why_and_what_to_do() {
    let exec = Exec::new();
    let here = exec.directory.path();
    script(&here.join("lost"), "#!/opt/none/python3 -u\n");
    script(&here.join("windows"), "#!/bin/sh\r\necho hi\r\n");
    script(&here.join("headless"), "echo hi\n");
    fs_err::write(here.join("plain"), "#!/bin/sh\n").unwrap();
    let mut foreign = fs_err::read(RUNNER).unwrap();
    foreign[18..20].copy_from_slice(&[0xff, 0x7f]);
    script(&here.join("foreign"), "");
    fs_err::write(here.join("foreign"), foreign).unwrap();

    let cases = [
        (
            "no-such-program",
            127,
            "no such program on the image's PATH (/usr/bin:/bin); name a program that the image has",
        ),
        (
            "./none.sh",
            127,
            "no such file in the image or the bundle; a relative path starts at the working directory",
        ),
        (
            "./lost",
            126,
            "its first line names the interpreter `/opt/none/python3`, which the image lacks",
        ),
        ("./windows", 126, "its first line ends with a carriage return"),
        (
            "./headless",
            126,
            "neither a program for this processor nor a script with a `#!` line",
        ),
        (
            "./foreign",
            126,
            "neither a program for this processor nor a script with a `#!` line",
        ),
        (
            "./plain",
            126,
            "./plain is not executable; set its executable bit at the source",
        ),
        ("/usr", 126, "it is a directory; name a program in it"),
    ];
    for (program, code, reason) in cases {
        let outcome = exec.finish(
            exec.command(&[program])
                .env("PATH", "/usr/bin:/bin")
                .output()
                .unwrap(),
        );
        let message = format!("cannot start `{program}`: ");
        let record = outcome.record();
        let recorded = record.message.clone().unwrap();
        assert!(
            recorded.starts_with(&message) && recorded.contains(reason),
            "{recorded}"
        );
        assert_eq!(outcome.stderr(), format!("runner: {recorded}\n"));
        assert_eq!(outcome.code(), Some(code), "{program}");
        let mut expected = silent(Cause::SpawnFailed, None, None);
        expected.message = Some(recorded);
        assert_eq!(timeless(&record), expected);
    }
}

#[test]
fn a_program_on_the_path_that_may_not_be_executed_is_named() {
    let exec = Exec::new();
    fs_err::write(exec.directory.path().join("tool"), "").unwrap();
    let outcome = exec.finish(
        exec.command(&["tool"])
            .env("PATH", exec.directory.path())
            .output()
            .unwrap(),
    );
    let file = exec.directory.path().join("tool");
    let message = outcome.record().message.unwrap();
    assert!(
        message.contains(&format!("{} is not executable", file.display())),
        "{message}"
    );
    assert_eq!(outcome.code(), Some(126));
}

#[test]
fn a_missing_working_directory_is_named() {
    let exec = Exec::new();
    let mut command = std::process::Command::new(RUNNER);
    command.args([
        "exec",
        "--workdir",
        "/none",
        "--grace-ms",
        "1",
        "--termination-log",
    ]);
    let outcome = exec.finish(
        command
            .arg(exec.termination_log())
            .args(["--", "true"])
            .output()
            .unwrap(),
    );
    let message = outcome.record().message.unwrap();
    assert!(
        message.starts_with("cannot start `true`: the working directory `/none` cannot be entered: "),
        "{message}"
    );
    assert_eq!(outcome.code(), Some(126));
}

#[test]
fn nothing_is_started_when_its_outcome_could_not_be_recorded() {
    let exec = Exec::new();
    fs_err::create_dir(exec.termination_log()).unwrap();
    let outcome = exec.shell("touch started");
    assert_eq!(outcome.code(), Some(74));
    assert!(
        outcome.stderr().contains("its outcome could not be recorded"),
        "{}",
        outcome.stderr()
    );
    assert!(!exec.directory.path().join("started").exists());
}

#[test]
fn a_wrong_command_line_is_answered_with_the_usage() {
    for arguments in [
        &[][..],
        &["serve"],
        &["exec"],
        &["exec", "--shell", "x"],
        &["prepare", "--bundle"],
    ] {
        let output = std::process::Command::new(RUNNER)
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .contains("usage: runner prepare "),
            "{arguments:?}"
        );
    }
}

#[test]
fn the_record_stands_there_before_the_body_starts() {
    let outcome = Exec::new().shell("cat $LOG");
    let seen = RunRecord::parse(&outcome.stdout()).unwrap();
    assert_eq!(seen.state, RunState::Running);
    assert_eq!(seen.started_at, outcome.record().started_at);
}

#[test]
fn the_record_is_refreshed_while_the_body_runs() {
    let outcome = Exec::new().shell("echo so far; until grep -q 'so far' $LOG; do sleep 0.05; done");
    let mut expected = silent(Cause::Exited, Some(0), None);
    expected.stdout = whole("so far\n");
    assert_eq!(timeless(&outcome.record()), expected);
}

#[test]
fn a_child_that_keeps_the_output_open_does_not_keep_the_run() {
    for detached in [
        "sleep 1000 & echo $!",
        "setsid sleep 1000 & echo $!",
        "(setsid sh -c 'echo $$ > pid; exec sleep 1000' &); until [ -s pid ]; do :; done; cat pid",
    ] {
        let outcome = Exec::new().shell(detached);
        assert_eq!(outcome.record().cause, Some(Cause::Exited), "{detached}");
        let child = Pid::from_raw(outcome.stdout().trim().parse().unwrap()).unwrap();
        assert!(test_kill_process(child).is_err(), "`{detached}` survived its run");
    }
}

#[test]
fn a_request_to_stop_reaches_the_whole_group() {
    let exec = Exec::new();
    let script = "trap 'echo parent stops; wait; exit 7' TERM; sh -c 'trap \"echo child stops; exit\" TERM; echo ready; \
                  while :; do sleep 0.05; done' & wait";
    let mut runner = exec.command(&["sh", "-c", script]).spawn().unwrap();
    let mut stdout = BufReader::new(runner.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    kill_process(Pid::from_child(&runner), Signal::TERM).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let outcome = exec.finish(runner.wait_with_output().unwrap());
    let mut said: Vec<_> = rest.lines().collect();
    said.sort_unstable();
    assert_eq!(said, ["child stops", "parent stops"]);
    assert_eq!(outcome.code(), Some(7));
    let record = outcome.record();
    assert_eq!(
        (record.cause, record.exit_code, record.signal),
        (Some(Cause::Terminated), Some(7), None)
    );
    assert_eq!(
        record.message.as_deref(),
        Some("the runner was asked to stop (signal 15)")
    );
}

#[test]
fn a_body_that_does_not_want_to_stop_is_killed_after_the_grace() {
    let exec = Exec::new().grace_ms(100);
    let mut runner = exec
        .command(&[
            "sh",
            "-c",
            "trap '' INT; echo ready; while :; do sleep 0.05; done",
        ])
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(runner.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    kill_process(Pid::from_child(&runner), Signal::INT).unwrap();
    let outcome = exec.finish(runner.wait_with_output().unwrap());
    let mut expected = silent(Cause::Terminated, None, Some(9));
    expected.message = Some("the runner was asked to stop (signal 2)".to_owned());
    expected.stdout = whole("ready\n");
    assert_eq!(timeless(&outcome.record()), expected);
    assert_eq!(outcome.code(), Some(137));
}

#[test]
fn a_body_that_runs_too_long_and_ignores_the_request_is_killed() {
    let exec = Exec::new().timeout_ms(2000).grace_ms(100);
    let outcome = exec.shell("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    let mut expected = silent(Cause::TimedOut, None, Some(9));
    expected.message = Some("the body ran longer than its limit of 2000 ms".to_owned());
    expected.stdout = whole("ready\n");
    assert_eq!(timeless(&outcome.record()), expected);
    assert_eq!(outcome.code(), Some(137));
}

#[test]
fn a_run_over_its_limit_is_no_success_even_if_the_body_says_so() {
    let exec = Exec::new().timeout_ms(2000);
    let outcome = exec.shell("trap 'exit 0' TERM; sleep 1000 & wait");
    let mut expected = silent(Cause::TimedOut, Some(0), None);
    expected.message = Some("the body ran longer than its limit of 2000 ms".to_owned());
    assert_eq!(timeless(&outcome.record()), expected);
    assert_eq!(outcome.code(), Some(124));
}

#[test]
fn a_blocked_log_loses_no_byte_and_does_not_hold_up_the_record() {
    let exec = Exec::new();
    let mut runner = exec
        .command(&["sh", "-c", "yes | head -c 300000"])
        .spawn()
        .unwrap();
    let record = eventually("the final record", || {
        let record = RunRecord::parse(&fs_err::read_to_string(exec.termination_log()).ok()?).ok()?;
        (record.state == RunState::Finished).then_some(record)
    });
    assert_eq!(record.stdout.total_bytes, 300_000);
    assert!(
        runner.try_wait().unwrap().is_none(),
        "the runner must wait until the log has everything"
    );
    let outcome = exec.finish(runner.wait_with_output().unwrap());
    assert_eq!(outcome.stdout.len(), 300_000);
    assert_eq!(outcome.code(), Some(0));
}

#[test]
fn a_log_that_slows_down_slows_the_body_down_and_loses_no_byte() {
    let exec = Exec::new();
    let mut runner = exec
        .command(&["sh", "-c", "yes | head -c 3000000; touch done"])
        .spawn()
        .unwrap();
    let mut stdout = runner.stdout.take().unwrap();
    let mut first = [0];
    stdout.read_exact(&mut first).unwrap();
    // The pipes and the queue hold less than a third of it.
    assert!(!exec.directory.path().join("done").exists());
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len() + 1, 3_000_000);
    let outcome = exec.finish(runner.wait_with_output().unwrap());
    assert_eq!(outcome.record().stdout.total_bytes, 3_000_000);
}

#[test]
fn a_log_that_nobody_reads_any_more_does_not_stop_the_body() {
    let exec = Exec::new();
    let mut runner = exec
        .command(&["sh", "-c", "yes | head -c 5000000; exit 4"])
        .spawn()
        .unwrap();
    drop(runner.stdout.take());
    let outcome = exec.finish(runner.wait_with_output().unwrap());
    let record = outcome.record();
    assert_eq!(
        (record.exit_code, record.stdout.total_bytes),
        (Some(4), 5_000_000)
    );
    assert_eq!(
        record.message.as_deref(),
        Some("stdout could not be passed on to the container's log: broken pipe")
    );
}

#[test]
fn a_log_that_refuses_to_wait_loses_no_byte() {
    let exec = Exec::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    let mut command = exec.command(&["sh", "-c", "yes | head -c 3000000"]);
    let mut runner = command.stdout(writer).spawn().unwrap();
    drop(command);
    let mut stdout = Vec::new();
    reader.read_to_end(&mut stdout).unwrap();
    assert!(runner.wait().unwrap().success());
    assert_eq!(stdout.len(), 3_000_000);
}

#[test]
fn a_stranger_that_keeps_the_output_open_does_not_keep_the_run() {
    let exec = Exec::new();
    let mut runner = exec
        .command(&["sh", "-c", "echo $$; until [ -e go ]; do sleep 0.05; done"])
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(runner.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let stranger = fs_err::OpenOptions::new()
        .write(true)
        .open(format!("/proc/{}/fd/1", line.trim()))
        .unwrap();
    fs_err::write(exec.directory.path().join("go"), "").unwrap();
    let outcome = exec.finish(runner.wait_with_output().unwrap());
    drop(stranger);
    let mut expected = silent(Cause::Exited, Some(0), None);
    expected.message =
        Some("the output was still held open after the run; what was written later is lost".to_owned());
    expected.stdout = whole(&line);
    assert_eq!(timeless(&outcome.record()), expected);
}

#[test]
fn the_runner_lives_without_its_callers_blessing() {
    // A caller that ignores SIGCHLD makes the kernel forget exit codes, and passes that on.
    let exec = Exec::new().wrapped(&["env", "--ignore-signal=CHLD"]);
    let outcome = exec.shell("exit 3");
    assert_eq!(outcome.status.into_raw(), 3 << 8);
    assert_eq!(timeless(&outcome.record()), silent(Cause::Exited, Some(3), None));
}
