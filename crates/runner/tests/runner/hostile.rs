//! Bodies that want another outcome than theirs to be recorded, and the runner as process 1.

use std::os::unix::fs::PermissionsExt;

use crate::fixture::{Exec, silent, timeless, whole};
use codeworkspace_protocol::{Cause, RunRecord};

/// What a body might want to be believed, in shell quotes.
fn forged() -> String {
    let record = silent(Cause::Exited, Some(0), None).to_message();
    format!("'{record}'")
}

fn both_ways() -> [Exec; 2] {
    [Exec::new(), Exec::as_init()]
}

#[test]
fn a_record_that_the_body_wrote_is_replaced() {
    for exec in both_ways() {
        let outcome = exec.shell(&format!(
            "printf %s {} > $LOG; head -c 100000 /dev/zero >> $LOG; exit 3",
            forged()
        ));
        assert_eq!(timeless(&outcome.record()), silent(Cause::Exited, Some(3), None));
    }
}

#[test]
fn a_process_that_stays_behind_to_overwrite_the_record_does_not_outlive_the_run() {
    for exec in both_ways() {
        // Detached from group, session and parent, holding the file open, ignoring what can be ignored.
        let writer = format!(
            "trap '' TERM HUP INT; exec 3<>$LOG; echo ready; while :; do printf %s {} > /dev/fd/3; done",
            forged()
        );
        fs_err::write(exec.directory.path().join("writer"), writer).unwrap();
        let outcome = exec.shell("(setsid sh writer &) | read ready; exit 3");
        let before = outcome.record();
        assert_eq!(timeless(&before), silent(Cause::Exited, Some(3), None));
        let after = fs_err::read_to_string(exec.termination_log()).unwrap();
        assert_eq!(RunRecord::parse(&after), Ok(before));
    }
}

#[test]
fn many_processes_that_multiply_are_all_ended() {
    for exec in both_ways() {
        let outcome = exec.shell(
            "for i in $(seq 30); do setsid sh -c 'while :; do (sleep 0.01 &); sleep 0.01; done' & done; exit 5",
        );
        assert_eq!(timeless(&outcome.record()), silent(Cause::Exited, Some(5), None));
    }
}

#[test]
fn as_process_1_orphans_are_reaped_while_the_body_runs() {
    let script = "for i in 1 2 3; do (sh -c 'exit 1' & ); done; until [ -z \"$(grep -l '^State:.Z' /proc/[0-9]*/status)\" ]; \
                  do :; done 2>/dev/null; echo none is left";
    let outcome = Exec::as_init().shell(script);
    let mut expected = silent(Cause::Exited, Some(0), None);
    expected.stdout = whole("none is left\n");
    assert_eq!(timeless(&outcome.record()), expected);
}

#[test]
fn process_1_survives_every_signal_of_its_body() {
    let outcome = Exec::as_init()
        .shell("for s in KILL STOP USR1 USR2 ALRM PIPE XCPU XFSZ; do kill -$s 1; done; exit 6");
    assert_eq!(timeless(&outcome.record()), silent(Cause::Exited, Some(6), None));
    assert_eq!(outcome.code(), Some(6));
}

#[test]
fn process_1_forwards_a_request_to_stop() {
    let outcome = Exec::as_init().shell("trap 'exit 7' TERM; kill -TERM 1; sleep 1000 & wait");
    let mut expected = silent(Cause::Terminated, Some(7), None);
    expected.message = Some("the runner was asked to stop (signal 15)".to_owned());
    assert_eq!(timeless(&outcome.record()), expected);
}

#[test]
fn a_flood_of_requests_does_not_put_off_the_end() {
    let exec = Exec::as_init().grace_ms(200);
    let outcome = exec.shell("trap '' TERM; while :; do kill -TERM 1; done");
    let record = outcome.record();
    assert_eq!((record.cause, record.signal), (Some(Cause::Terminated), Some(9)));
}

#[test]
fn a_body_that_keeps_the_record_from_being_written_leaves_no_forged_one() {
    let exec = Exec::as_init();
    let outcome = exec.shell(&format!(
        "prlimit --pid 1 --fsize=0 && printf %s {} > $LOG; exit 3",
        forged()
    ));
    assert_eq!(outcome.code(), Some(3));
    assert!(
        outcome.stderr().contains("the run's record cannot be written"),
        "{}",
        outcome.stderr()
    );
    assert_eq!(outcome.log, "");
}

#[test]
fn the_runner_is_closed_to_its_body() {
    // Root may look at everything, so the runner and its body have the user id that they have in a pod.
    let mut exec = Exec::new();
    if rustix::process::geteuid().is_root() {
        exec = exec.wrapped(&["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups"]);
    }
    fs_err::set_permissions(exec.directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let outcome = exec.shell("cat /proc/$PPID/environ; ls /proc/$PPID/fd; exit 0");
    assert_eq!(outcome.stdout(), "");
    assert_eq!(
        outcome.stderr().matches("Permission denied").count(),
        2,
        "{}",
        outcome.stderr()
    );
}
