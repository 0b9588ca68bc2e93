//! Who is heard, and when.

use std::net::TcpStream;

use codeworkspace_protocol::session::{
    BindRequest, BindResponse, ErrorCode, GATEWAY_NAME, SessionStatus, path,
};
use codeworkspace_protocol::{Cause, RunRecord, layout};

use super::client::{Client, code, python};
use super::pod::{Authority, Options, PYTHON, Pod, binding, command, own_identity};

#[tokio::test]
async fn only_the_gateway_is_heard() {
    let pod = Pod::bare().await;
    let status = |client: Client| async move {
        let request = hyper::Request::get(path::STATUS)
            .body(http_body_util::Full::default())
            .unwrap();
        client
            .send(request)
            .await
            .map(|response| response.status().as_u16())
    };
    let client = |identity| Client::new(pod.port, &pod.certificate, &identity);
    assert_eq!(status(client(pod.authority.issue(GATEWAY_NAME))).await, Ok(200));
    for stranger in [
        pod.authority.issue("operator.codeworkspace.internal"),
        Authority::new().issue(GATEWAY_NAME),
        own_identity(),
    ] {
        assert!(status(client(stranger)).await.is_err());
    }
    // The kubelet's probe.
    for _ in 0..3 {
        drop(TcpStream::connect(("127.0.0.1", pod.port)).unwrap());
    }
    assert_eq!(status(client(pod.authority.issue(GATEWAY_NAME))).await, Ok(200));
}

#[tokio::test]
async fn the_key_is_gone_before_anything_runs() {
    let pod = Pod::start().await;
    let identity = pod.directory.path().join("identity");
    assert!(identity.join(layout::CERTIFICATE_FILE).exists());
    assert!(!identity.join(layout::KEY_FILE).exists());
}

#[tokio::test]
async fn a_kernel_that_cannot_start_keeps_the_port_closed_and_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let kernel = directory.path().join("jupyter/kernels/broken");
    fs_err::create_dir_all(&kernel).unwrap();
    let spec = r#"{"argv": ["sh", "-c", "echo no way >&2; exit 3"], "language": "x"}"#;
    fs_err::write(kernel.join("kernel.json"), spec).unwrap();
    for (kernel, why) in [
        (
            "broken",
            "the kernel `broken` died before it was ready (exit code 3); its last words: no way",
        ),
        ("missing", "the image has no kernelspec `missing`"),
    ] {
        let kernels = vec![kernel.to_owned()];
        let output = command(directory.path(), &Authority::new(), &own_identity(), kernels)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let log = fs_err::read_to_string(directory.path().join("termination-log")).unwrap();
        let record = RunRecord::parse(&log).unwrap();
        assert_eq!(record.cause, Some(Cause::SpawnFailed));
        let message = record.message.unwrap();
        assert!(message.contains(why), "{message}");
    }
}

#[tokio::test]
async fn nothing_is_done_before_a_session_is_bound_and_only_for_that() {
    let pod = Pod::with(Options {
        bind: None,
        ..Options::default()
    })
    .await;
    let client = &pod.client;
    assert_eq!(
        code(client.events(path::EXECUTE, &python("1")).await),
        ErrorCode::NotBound
    );
    assert_eq!(
        code(client.get::<serde_json::Value>(path::LIST).await),
        ErrorCode::NotBound
    );
    assert_eq!(
        client.get::<SessionStatus>(path::STATUS).await.unwrap().session,
        None
    );
    for _ in 0..2 {
        let bound: BindResponse = client.post(path::BIND, &binding()).await.unwrap();
        assert_eq!(
            bound,
            BindResponse {
                bundle_wanted: false,
                kernels: vec![PYTHON.to_owned()],
            }
        );
    }
    let others = [
        BindRequest {
            session: "other".to_owned(),
            ..binding()
        },
        BindRequest {
            commands: false,
            ..binding()
        },
    ];
    for other in others {
        assert_eq!(
            code(client.post::<BindResponse>(path::BIND, &other).await),
            ErrorCode::BoundToAnother
        );
    }
    let status: SessionStatus = client.get(path::STATUS).await.unwrap();
    assert_eq!(status.session.as_deref(), Some("session1"));
    assert_eq!(client.python("print(1)").await.stdout(), "1\n");
}

#[tokio::test]
async fn an_unknown_verb_is_refused_in_the_protocols_form() {
    let pod = Pod::bare().await;
    assert_eq!(
        code(pod.client.get::<()>("/v1/nothing").await),
        ErrorCode::InvalidRequest
    );
}
