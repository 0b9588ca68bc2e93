//! Executions that do not end by themselves, and kernels that do.

use std::collections::BTreeMap;

use codeworkspace_protocol::session::{
    CancelRequest, ErrorCode, ExecuteRequest, ExecutionOutcome, RestartRequest, SessionEvent, SessionStatus,
    path,
};

use super::client::{Events, code, python};
use super::pod::{PYTHON, Pod};

fn named(invocation: &str, code: &str) -> ExecuteRequest {
    ExecuteRequest {
        invocation: Some(invocation.to_owned()),
        ..python(code)
    }
}

fn cancel(invocation: &str) -> CancelRequest {
    CancelRequest {
        invocation: invocation.to_owned(),
    }
}

/// Waits for the first output.
async fn begun(events: &mut Events) {
    let first = events.next().await;
    assert!(matches!(first, Some(SessionEvent::Output { .. })), "{first:?}");
}

const ENDLESS: &str = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)";

#[tokio::test]
async fn code_that_takes_too_long_is_interrupted_and_its_variables_stay() {
    let pod = Pod::start().await;
    pod.client.python("x = 1").await;
    let request = ExecuteRequest {
        timeout_ms: Some(500),
        ..python(ENDLESS)
    };
    let told = pod.client.events(path::EXECUTE, &request).await.unwrap();
    assert_eq!(told.finished.outcome, ExecutionOutcome::TimedOut);
    assert_eq!(told.message(), "it took longer than its limit of 500 ms");
    assert!(told.finished.execution_time_ms >= 500);
    assert!(
        matches!(told.events.last(), Some(SessionEvent::Error { name, .. }) if name == "KeyboardInterrupt")
    );
    assert_eq!(pod.client.python("print(x)").await.stdout(), "1\n");
}

#[tokio::test]
async fn code_that_ignores_the_interrupt_loses_its_kernel() {
    let pod = Pod::start().await;
    let stubborn = "import time\nx = 1\nwhile True:\n  try: time.sleep(1)\n  except KeyboardInterrupt: pass";
    let request = ExecuteRequest {
        timeout_ms: Some(300),
        ..python(stubborn)
    };
    let told = pod.client.events(path::EXECUTE, &request).await.unwrap();
    assert_eq!(told.finished.outcome, ExecutionOutcome::TimedOut);
    assert!(
        told.message().contains("did not react to an interrupt"),
        "{}",
        told.message()
    );
    assert_eq!(
        pod.client.python("print('x' in globals())").await.stdout(),
        "False\n"
    );
}

#[tokio::test]
async fn an_execution_is_cancelled_by_its_id_whether_it_runs_or_waits() {
    let pod = Pod::start().await;
    let mut running = pod
        .client
        .begin(path::EXECUTE, &named("runs", ENDLESS))
        .await
        .unwrap();
    begun(&mut running).await;
    let waiting = pod
        .client
        .begin(path::EXECUTE, &named("waits", "print('never')"))
        .await
        .unwrap();
    pod.client.tell(path::CANCEL, &cancel("waits")).await.unwrap();
    let waited = waiting.all().await;
    assert_eq!(waited.finished.outcome, ExecutionOutcome::Cancelled);
    assert_eq!(waited.message(), "it was cancelled; it had not begun");
    pod.client.tell(path::CANCEL, &cancel("runs")).await.unwrap();
    let ran = running.all().await;
    assert_eq!(ran.finished.outcome, ExecutionOutcome::Cancelled);
    assert_eq!(ran.message(), "it was cancelled");
    assert_eq!(
        pod.client.tell(path::CANCEL, &cancel("runs")).await,
        Ok(()),
        "it has ended already"
    );
    assert_eq!(
        code(pod.client.tell(path::CANCEL, &cancel("unknown")).await),
        ErrorCode::UnknownInvocation
    );
    assert_eq!(pod.client.python("print('usable')").await.stdout(), "usable\n");
}

#[tokio::test]
async fn a_caller_that_is_gone_does_not_keep_the_kernel_busy() {
    let pod = Pod::start().await;
    let mut events = pod
        .client
        .begin(path::EXECUTE, &named("left", ENDLESS))
        .await
        .unwrap();
    begun(&mut events).await;
    drop(events);
    assert_eq!(pod.client.python("print('usable')").await.stdout(), "usable\n");
    let told = pod
        .client
        .events(path::EXECUTE, &named("left", ENDLESS))
        .await
        .unwrap();
    assert_eq!(told.finished.outcome, ExecutionOutcome::Cancelled);
    assert_eq!(told.message(), "nobody listened for 10 s");
}

#[tokio::test]
async fn a_dead_kernel_is_told_and_replaced() {
    let pod = Pod::start().await;
    let code = "import os, time\nx = 1\nprint('last words', flush=True)\nwhile not os.path.exists('gate'): time.sleep(0.01)\n\
                os.kill(os.getpid(), 9)";
    let mut events = pod.client.begin(path::EXECUTE, &python(code)).await.unwrap();
    begun(&mut events).await;
    fs_err::write(pod.root().join("gate"), "").unwrap();
    let told = events.all().await;
    assert_eq!(
        (told.finished.outcome, told.finished.exit_code),
        (ExecutionOutcome::Died, None)
    );
    assert_eq!(
        told.message(),
        "the kernel ended (signal 9): its variables are gone, and the next execution gets a new process"
    );
    assert_eq!(
        pod.client.python("print('x' in globals())").await.stdout(),
        "False\n"
    );
    let status: SessionStatus = pod.client.get(path::STATUS).await.unwrap();
    assert_eq!(status.kernels[0].restarts, 1);
}

#[tokio::test]
async fn a_kernel_that_died_between_two_calls_is_replaced_and_the_second_one_says_so() {
    let pod = Pod::start().await;
    let told = pod
        .client
        .python(
            "import os, threading, time\nx = 1\ndef end():\n  while not os.path.exists('gate'): time.sleep(0.01)\n  os._exit(4)\n\
             threading.Thread(target=end).start()\nprint(os.getpid())",
        )
        .await;
    assert_eq!(told.finished.outcome, ExecutionOutcome::Completed);
    let process = std::path::Path::new("/proc").join(told.stdout().trim());
    fs_err::write(pod.root().join("gate"), "").unwrap();
    crate::fixture::eventually("the kernel's end", || (!process.exists()).then_some(()));
    let told = pod.client.python("print('x' in globals())").await;
    assert_eq!(told.stdout(), "False\n");
    assert_eq!(
        told.message(),
        "the kernel had ended before (exit code 4); this ran in a new process, without the variables of the old one"
    );
}

#[tokio::test]
async fn code_that_comes_while_its_kernel_ends_runs_in_the_next_one() {
    let pod = Pod::start().await;
    let told = pod
        .client
        .python(
            "import os\nx = 1\nclass Fatal(dict):\n  def update(self, *_): os._exit(5)\nos.environ = Fatal()",
        )
        .await;
    assert_eq!(told.finished.exit_code, Some(0));
    let request = ExecuteRequest {
        environment: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
        ..python("import os; print('x' in globals(), os.environ['A'])")
    };
    let told = pod.client.events(path::EXECUTE, &request).await.unwrap();
    assert_eq!(told.stdout(), "False b\n");
    assert!(
        told.message()
            .starts_with("the kernel had ended before (exit code 5)"),
        "{}",
        told.message()
    );
}

#[tokio::test]
async fn code_may_end_its_kernel() {
    let pod = Pod::start().await;
    let told = pod.client.python("x = 1\nprint('bye')\nexit()").await;
    assert_eq!(
        (told.stdout().as_str(), told.finished.outcome),
        ("bye\n", ExecutionOutcome::Completed)
    );
    assert!(
        told.message().starts_with("the code ended its kernel"),
        "{}",
        told.message()
    );
    assert_eq!(
        pod.client.python("print('x' in globals())").await.stdout(),
        "False\n"
    );
}

#[tokio::test]
async fn a_restart_forgets_the_variables_and_cancels_what_runs() {
    let pod = Pod::start().await;
    pod.client.python("x = 1").await;
    let mut running = pod.client.begin(path::EXECUTE, &python(ENDLESS)).await.unwrap();
    begun(&mut running).await;
    let restart = RestartRequest {
        kernel: PYTHON.to_owned(),
    };
    pod.client.tell(path::RESTART, &restart).await.unwrap();
    let told = running.all().await;
    assert_eq!(told.finished.outcome, ExecutionOutcome::Cancelled);
    assert_eq!(told.message(), "the kernel was restarted");
    assert_eq!(
        pod.client.python("print('x' in globals())").await.stdout(),
        "False\n"
    );
}

#[tokio::test]
async fn a_cleared_context_forgets_variables_modules_and_history() {
    let pod = Pod::start().await;
    pod.client.python("import json; x = 1; json.marked = True").await;
    let request = ExecuteRequest {
        clear_context: true,
        ..python("import json; print('x' in globals(), hasattr(json, 'marked'), len(In))")
    };
    let told = pod.client.events(path::EXECUTE, &request).await.unwrap();
    assert_eq!((told.stdout().as_str(), told.message()), ("False False 2\n", ""));
}

#[tokio::test]
async fn variables_of_the_environment_are_set_before_each_execution_without_a_trace() {
    let pod = Pod::start().await;
    let nasty = "it's \"ü\" \\ 🦀\n\u{1}";
    let with = |code: &str| ExecuteRequest {
        environment: BTreeMap::from([("AF_STAGED_INPUTS".to_owned(), nasty.to_owned())]),
        ..python(code)
    };
    let show = "import os; print(repr(os.environ['AF_STAGED_INPUTS']), len(In))";
    let expected = |history| format!("'it\\'s \"ü\" \\\\ 🦀\\n\\x01' {history}\n");
    let told = pod.client.events(path::EXECUTE, &with(show)).await.unwrap();
    assert_eq!((told.stdout(), told.events.len()), (expected(2), 1));
    pod.client
        .python("os.environ['AF_STAGED_INPUTS'] = 'changed'")
        .await;
    let told = pod.client.events(path::EXECUTE, &with(show)).await.unwrap();
    assert_eq!(told.stdout(), expected(4));
    let impossible = ExecuteRequest {
        environment: BTreeMap::from([("A=B".to_owned(), String::new())]),
        ..python("1")
    };
    assert_eq!(
        code(pod.client.events(path::EXECUTE, &impossible).await),
        ErrorCode::InvalidRequest
    );
}
