//! The runner as process 1, and what its children can do to it.

use codeworkspace_protocol::Cause;
use codeworkspace_protocol::session::{StopRequest, path};

use super::pod::{Options, Pod};
use crate::fixture::unshare;

/// As the only user of a process namespace, like in a container.
async fn as_init() -> Pod {
    let wrapper = [
        &unshare()[..],
        &["--pid", "--fork", "--mount-proc", "--kill-child"].map(str::to_owned),
    ];
    Pod::with(Options {
        wrapper: wrapper.concat(),
        ..Options::default()
    })
    .await
}

#[tokio::test]
async fn as_process_1_orphans_are_reaped_and_the_end_takes_everybody() {
    let mut pod = as_init().await;
    let told = pod
        .client
        .python(
            "import glob, os, subprocess\n\
             for _ in range(5): subprocess.run(['sh', '-c', '(sh -c \"exit 1\" &); (setsid sleep 1000 &)'])\n\
             def zombies():\n  found = 0\n  for name in glob.glob('/proc/[0-9]*/stat'):\n    \
             try: found += open(name).read().rsplit(')')[1].split()[0] == 'Z'\n    except OSError: pass\n  return found\n\
             while zombies(): pass\nprint(os.getppid())",
        )
        .await;
    assert_eq!(told.stdout(), "1\n", "{told:?}");
    let stop = StopRequest {
        session: "session1".to_owned(),
    };
    pod.client.tell(path::STOP, &stop).await.unwrap();
    let (code, record) = pod.ended();
    assert_eq!((code, record.cause), (Some(0), Some(Cause::Stopped)));
}

#[tokio::test]
async fn process_1_survives_what_its_kernel_sends_it() {
    let pod = as_init().await;
    let told = pod
        .client
        .python(
            "import os, signal\n\
             for s in ['KILL', 'STOP', 'USR1', 'USR2', 'ALRM', 'PIPE', 'XCPU', 'XFSZ', 'HUP', 'QUIT', 'CHLD']:\n  \
             os.kill(1, getattr(signal, 'SIG' + s))",
        )
        .await;
    assert_eq!(told.finished.exit_code, Some(0), "{told:?}");
    assert_eq!(pod.client.python("print('alive')").await.stdout(), "alive\n");
}

#[tokio::test]
async fn what_runs_in_the_session_cannot_look_into_the_runner_and_dies_before_it() {
    // Root may look at everything, so both have the user id that they have in a pod.
    let user = rustix::process::geteuid().is_root().then_some(65532);
    let pod = Pod::with(Options {
        kernels: Vec::new(),
        user,
        ..Options::default()
    })
    .await;
    let told = pod
        .client
        .command(
            "cat /proc/$PPID/environ /proc/$PPID/mem; ls /proc/$PPID/fd; id -u; \
             echo $(( $(< /proc/$$/oom_score_adj) - $(< /proc/$PPID/oom_score_adj) ))",
        )
        .await;
    let (id, step) = told
        .stdout()
        .trim()
        .split_once('\n')
        .map(|(id, step)| (id.to_owned(), step.to_owned()))
        .unwrap();
    assert!(user.is_none_or(|user| id == user.to_string()));
    assert_eq!(told.stderr().matches("Permission denied").count(), 3, "{told:?}");
    // Unless the machine has made the runner as likely a victim as can be.
    assert!(matches!(step.as_str(), "300" | "0"), "{step}");
}
