//! Calls that are made twice, and calls that wait.

use codeworkspace_protocol::session::{
    ErrorCode, ExecuteRequest, ExecutionOutcome, QUEUE_DEPTH, SessionEvent, path,
};

use super::client::{code, python};
use super::pod::Pod;

fn named(invocation: &str, code: &str) -> ExecuteRequest {
    ExecuteRequest {
        invocation: Some(invocation.to_owned()),
        ..python(code)
    }
}

#[tokio::test]
async fn a_repeated_call_is_answered_from_the_first_execution() {
    let pod = Pod::start().await;
    pod.client.python("runs = 0").await;
    let call = named("a", "runs += 1\nprint('run', runs)\nruns");
    let first = pod.client.events(path::EXECUTE, &call).await.unwrap();
    let second = pod.client.events(path::EXECUTE, &call).await.unwrap();
    assert_eq!(first.events, second.events);
    assert_eq!(first.finished, second.finished);
    assert_eq!(pod.client.python("print(runs)").await.stdout(), "1\n");
    let other = pod.client.events(path::EXECUTE, &named("a", "runs")).await;
    assert_eq!(code(other), ErrorCode::InvocationMismatch);
}

#[tokio::test]
async fn another_gateway_takes_over_from_the_beginning() {
    let pod = Pod::start().await;
    let gate = pod.root().join("gate");
    let call = named(
        "a",
        "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('gate'): time.sleep(0.01)\nprint('done')",
    );
    let mut first = pod.client.begin(path::EXECUTE, &call).await.unwrap();
    let begun = first.next().await;
    assert!(
        matches!(&begun, Some(SessionEvent::Output { text, .. }) if text == "begun\n"),
        "{begun:?}"
    );
    drop(first);
    let second = pod.client.begin(path::EXECUTE, &call).await.unwrap();
    fs_err::write(gate, "").unwrap();
    let told = second.all().await;
    assert_eq!(told.stdout(), "begun\ndone\n");
    assert_eq!(told.finished.outcome, ExecutionOutcome::Completed);
}

#[tokio::test]
async fn calls_wait_in_their_order_and_one_too_many_is_refused() {
    let pod = Pod::start().await;
    let mut first = pod
        .client
        .begin(
            path::EXECUTE,
            &python("import os, time\nprint(0, flush=True)\nwhile not os.path.exists('gate'): time.sleep(0.01)\nseen = [0]"),
        )
        .await
        .unwrap();
    assert!(first.next().await.is_some());
    let mut waiting = Vec::new();
    for number in 1..=QUEUE_DEPTH {
        let code = format!("seen.append({number})");
        waiting.push(pod.client.begin(path::EXECUTE, &python(&code)).await.unwrap());
    }
    assert_eq!(
        code(pod.client.begin(path::EXECUTE, &python("1")).await.map(|_| ())),
        ErrorCode::QueueFull
    );
    fs_err::write(pod.root().join("gate"), "").unwrap();
    for events in waiting {
        assert_eq!(events.all().await.finished.outcome, ExecutionOutcome::Completed);
    }
    let told = pod
        .client
        .python(&format!("print(seen == list(range({})))", QUEUE_DEPTH + 1))
        .await;
    assert_eq!(told.stdout(), "True\n");
}

#[tokio::test]
async fn output_of_an_earlier_call_is_nobody_elses() {
    let pod = Pod::start().await;
    let late = "import os, threading, time\ndef late():\n  while not os.path.exists('gate'): time.sleep(0.01)\n  \
                print('late', flush=True)\n  open('printed', 'w')\nthreading.Thread(target=late).start()";
    pod.client.python(late).await;
    fs_err::write(pod.root().join("gate"), "").unwrap();
    crate::fixture::eventually("the late output", || {
        pod.root().join("printed").exists().then_some(())
    });
    let told = pod.client.python("print('mine')").await;
    assert_eq!(told.stdout(), "mine\n");
}
