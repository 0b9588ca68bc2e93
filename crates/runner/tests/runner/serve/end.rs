//! How a session ends.

use codeworkspace_protocol::session::{BindRequest, ErrorCode, StopRequest, path};
use codeworkspace_protocol::{Cause, RunRecord};
use rustix::process::{Signal, kill_process};

use super::client::{code, python};
use super::pod::{Options, Pod, binding};

fn cause_and_message(record: &RunRecord) -> (Option<Cause>, &str) {
    (record.cause, record.message.as_deref().unwrap_or_default())
}

#[tokio::test]
async fn a_session_that_nobody_uses_ends_by_itself() {
    let mut pod = Pod::with(Options {
        kernels: Vec::new(),
        bind: Some(BindRequest {
            idle_timeout_seconds: Some(1),
            ..binding()
        }),
        ..Options::default()
    })
    .await;
    let (code, record) = pod.ended();
    assert_eq!(code, Some(0));
    assert_eq!(
        cause_and_message(&record),
        (Some(Cause::IdleTimeout), "nobody used the session for 1 s")
    );
}

#[tokio::test]
async fn the_gateway_ends_its_session_and_no_other() {
    let mut pod = Pod::bare().await;
    let stop = |session: &str| StopRequest {
        session: session.to_owned(),
    };
    assert_eq!(
        code(pod.client.tell(path::STOP, &stop("other")).await),
        ErrorCode::BoundToAnother
    );
    pod.client.tell(path::STOP, &stop("session1")).await.unwrap();
    let (code, record) = pod.ended();
    assert_eq!(code, Some(0));
    assert_eq!(
        cause_and_message(&record),
        (Some(Cause::Stopped), "the gateway stopped the session")
    );
}

#[tokio::test]
async fn a_signal_ends_it_in_order_with_everything_that_runs() {
    let mut pod = Pod::start().await;
    let code = "import os, subprocess, time\n\
                p = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n\
                print(p.pid, flush=True)\ntime.sleep(1000)";
    let mut events = pod.client.begin(path::EXECUTE, &python(code)).await.unwrap();
    let Some(codeworkspace_protocol::session::SessionEvent::Output { text, .. }) = events.next().await else {
        panic!("no output")
    };
    let child = text.trim().to_owned();
    kill_process(pod.runner_id(), Signal::TERM).unwrap();
    let told = events.all().await;
    assert_eq!(told.message(), "the session is ending");
    let (code, record) = pod.ended();
    assert_eq!(code, Some(0));
    assert_eq!(
        cause_and_message(&record),
        (Some(Cause::Stopped), "the runner was asked to stop (signal 15)")
    );
    assert!(!std::path::Path::new("/proc").join(&child).exists());
}
