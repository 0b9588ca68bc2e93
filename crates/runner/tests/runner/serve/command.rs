//! Commands and background tasks.

use std::collections::BTreeMap;

use codeworkspace_protocol::session::{
    BindRequest, CommandRequest, ErrorCode, ExecutionOutcome, SessionEvent, StreamSummary, TaskState,
    TaskStatus, path,
};
use hyper::Method;

use super::client::{Answer, Client, Told, code, command};
use super::pod::{Options, Pod, binding};

async fn run(pod: &Pod, text: &str) -> Told {
    pod.client.command(text).await
}

#[tokio::test]
async fn a_command_is_bashs_and_starts_in_the_root() {
    let pod = Pod::bare().await;
    let told = run(
        &pod,
        "pwd; echo $HOME; [[ a < b ]] && echo \"it's bash\" >&2; exit 3",
    )
    .await;
    let root = pod.root().canonicalize().unwrap();
    assert_eq!(
        told.stdout(),
        format!("{}\n/home/codeworkspace\n", root.display())
    );
    assert_eq!(told.stderr(), "it's bash\n");
    assert_eq!(
        (told.finished.outcome, told.finished.exit_code),
        (ExecutionOutcome::Failed, Some(3))
    );
    let told = run(
        &pod,
        "cat; echo ${BASH_SOURCE[0]##*/} | grep -c '.sh$'; stat -c %a $0 $(dirname $0)",
    )
    .await;
    assert_eq!(told.stdout(), "1\n600\n700\n");
    assert_eq!(
        (told.finished.outcome, told.finished.exit_code),
        (ExecutionOutcome::Completed, Some(0))
    );
}

#[tokio::test]
async fn a_signal_is_no_exit_code() {
    let pod = Pod::bare().await;
    let told = run(&pod, "echo before; kill -9 $$").await;
    assert_eq!(told.stdout(), "before\n");
    assert_eq!(
        (told.finished.outcome, told.finished.exit_code),
        (ExecutionOutcome::Died, None)
    );
    assert_eq!(told.message(), "signal 9 ended the command");
    assert_eq!(
        run(&pod, "sh -c 'kill -9 $$'").await.finished.exit_code,
        Some(137)
    );
}

#[tokio::test]
async fn a_hundred_megabytes_and_noise_arrive_whole() {
    let pod = Pod::bare().await;
    let told = run(
        &pod,
        "head -c 100000000 /dev/zero | tr '\\0' x; head -c 100000 /dev/urandom | tee copy >&2",
    )
    .await;
    let file = |name: &str| Some(format!(".output/1.{name}"));
    assert_eq!(
        (told.finished.stdout.clone(), told.finished.stderr.clone()),
        (
            StreamSummary {
                total_bytes: 100_000_000,
                file: file("stdout")
            },
            StreamSummary {
                total_bytes: 100_000,
                file: file("stderr")
            },
        )
    );
    let whole = fs_err::read(pod.root().join(".output/1.stdout")).unwrap();
    assert!(whole.len() == 100_000_000 && whole.iter().all(|byte| *byte == b'x'));
    assert_eq!(told.stdout().len(), 1024 * 1024);
    let noise = fs_err::read(pod.root().join("copy")).unwrap();
    assert!(fs_err::read(pod.root().join(".output/1.stderr")).unwrap() == noise);
    assert!(told.stderr() == String::from_utf8_lossy(&noise));
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_its_group() {
    let pod = Pod::bare().await;
    for ignoring in ["", "trap '' TERM; "] {
        let request = CommandRequest {
            timeout_ms: Some(300),
            ..command(&format!("{ignoring}sleep 1000 & echo $!; wait; sleep 1000"))
        };
        let told = pod.client.events(path::COMMAND, &request).await.unwrap();
        assert_eq!(
            (told.finished.outcome, told.finished.exit_code),
            (ExecutionOutcome::TimedOut, None)
        );
        let child = told.stdout().trim().to_owned();
        crate::fixture::eventually("the end of the command's child", || {
            (!std::path::Path::new("/proc").join(&child).exists()).then_some(())
        });
    }
}

#[tokio::test]
async fn what_a_command_leaves_running_does_not_hold_it_up_and_goes_on() {
    let pod = Pod::bare().await;
    let told = run(
        &pod,
        "(while ! [ -e gate ]; do sleep 0.01; done; echo out; echo more > proof) & echo started",
    )
    .await;
    assert_eq!(told.stdout(), "started\n");
    assert_eq!(told.finished.exit_code, Some(0));
    fs_err::write(pod.root().join("gate"), "").unwrap();
    crate::fixture::eventually("the background process's file", || {
        pod.root().join("proof").exists().then_some(())
    });
}

#[tokio::test]
async fn a_command_has_the_environment_of_its_request() {
    let pod = Pod::bare().await;
    let request = CommandRequest {
        environment: BTreeMap::from([("AF_STAGED_INPUTS".to_owned(), "a b\n'c'".to_owned())]),
        ..command("printf %s \"$AF_STAGED_INPUTS\"")
    };
    assert_eq!(
        pod.client.events(path::COMMAND, &request).await.unwrap().stdout(),
        "a b\n'c'"
    );
    assert_eq!(run(&pod, "printf %s \"$AF_STAGED_INPUTS\"").await.stdout(), "");
}

#[tokio::test]
async fn commands_can_be_forbidden() {
    let pod = Pod::with(Options {
        kernels: Vec::new(),
        bind: Some(BindRequest {
            commands: false,
            ..binding()
        }),
        ..Options::default()
    })
    .await;
    assert_eq!(
        code(pod.client.events(path::COMMAND, &command("true")).await),
        ErrorCode::CommandsDisabled
    );
    assert_eq!(
        code(pod.client.post::<TaskStatus>(path::TASKS, &command("true")).await),
        ErrorCode::CommandsDisabled
    );
}

async fn start(client: &Client, text: &str) -> TaskStatus {
    client.post(path::TASKS, &command(text)).await.unwrap()
}

async fn stop(client: &Client, id: &str) -> Answer<TaskStatus> {
    let body = client
        .call(Method::POST, &format!("{}/{id}/stop", path::TASKS), "")
        .await?;
    Ok(serde_json::from_slice(&body).unwrap())
}

/// Asks until the task has come so far.
async fn reached(client: &Client, id: &str, wanted: impl Fn(&TaskStatus) -> bool) -> TaskStatus {
    loop {
        let status: TaskStatus = client.get(&format!("{}/{id}", path::TASKS)).await.unwrap();
        if wanted(&status) {
            return status;
        }
        assert!(status.finished.is_none(), "{status:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_task_runs_while_nobody_listens_and_tells_its_output() {
    let pod = Pod::bare().await;
    let task = start(
        &pod.client,
        "echo one; while ! [ -e gate ]; do sleep 0.01; done; echo two; exit 5",
    )
    .await;
    assert!(
        matches!(task.state, TaskState::Submitted | TaskState::Working),
        "{task:?}"
    );
    let working = reached(&pod.client, &task.id, |status| status.stdout == "one\n").await;
    assert_eq!(working.state, TaskState::Working);
    assert_eq!(run(&pod, "echo meanwhile").await.stdout(), "meanwhile\n");
    fs_err::write(pod.root().join("gate"), "").unwrap();
    let ended = reached(&pod.client, &task.id, |status| status.finished.is_some()).await;
    assert_eq!(
        (ended.state, ended.stdout.as_str()),
        (TaskState::Failed, "one\ntwo\n")
    );
    assert_eq!(ended.finished.unwrap().exit_code, Some(5));
    assert_eq!(code(stop(&pod.client, &task.id).await), ErrorCode::TaskEnded);
    assert_eq!(
        code(stop(&pod.client, "no-such-task").await),
        ErrorCode::UnknownTask
    );
}

#[tokio::test]
async fn a_task_is_stopped() {
    let pod = Pod::bare().await;
    let task = start(&pod.client, "echo up; sleep 1000").await;
    reached(&pod.client, &task.id, |status| status.stdout == "up\n").await;
    stop(&pod.client, &task.id).await.unwrap();
    let ended = reached(&pod.client, &task.id, |status| status.finished.is_some()).await;
    assert_eq!(ended.state, TaskState::Canceled);
    assert_eq!(ended.finished.unwrap().exit_code, None);
}

#[tokio::test]
async fn a_repeated_start_is_the_same_task() {
    let pod = Pod::bare().await;
    let request = CommandRequest {
        invocation: Some("a".to_owned()),
        ..command("echo x >> runs")
    };
    let first: TaskStatus = pod.client.post(path::TASKS, &request).await.unwrap();
    let second: TaskStatus = pod.client.post(path::TASKS, &request).await.unwrap();
    assert_eq!(first.id, second.id);
    reached(&pod.client, &first.id, |status| status.finished.is_some()).await;
    assert_eq!(fs_err::read_to_string(pod.root().join("runs")).unwrap(), "x\n");
    assert_eq!(
        code(pod.client.events(path::COMMAND, &request).await),
        ErrorCode::InvocationMismatch
    );
}

#[tokio::test]
async fn only_so_many_tasks_run_at_once() {
    let pod = Pod::bare().await;
    for _ in 0..16 {
        start(&pod.client, "sleep 1000").await;
    }
    let refused = pod.client.post::<TaskStatus>(path::TASKS, &command("true")).await;
    assert_eq!(code(refused), ErrorCode::QueueFull);
}

#[tokio::test]
async fn commands_wait_for_each_other() {
    let pod = Pod::bare().await;
    let mut first = pod
        .client
        .begin(
            path::COMMAND,
            &command("echo 1; while ! [ -e gate ]; do sleep 0.01; done; echo first >> order"),
        )
        .await
        .unwrap();
    assert!(matches!(first.next().await, Some(SessionEvent::Output { .. })));
    let second = pod
        .client
        .begin(path::COMMAND, &command("echo second >> order"))
        .await
        .unwrap();
    fs_err::write(pod.root().join("gate"), "").unwrap();
    first.all().await;
    second.all().await;
    assert_eq!(
        fs_err::read_to_string(pod.root().join("order")).unwrap(),
        "first\nsecond\n"
    );
}
