//! `runner register` against an operator of the test's own.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use codeworkspace_protocol::session::{OPERATOR_NAME, RegisterRequest};
use codeworkspace_protocol::{Cause, RegisterArguments, RunRecord, layout};
use rcgen::{KeyPair, PublicKeyData as _};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::fixture::RUNNER;
use crate::serve::pod::{Authority, Identity};

/// What the operator was told.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    head: String,
    body: RegisterRequest,
}

struct Registered {
    directory: TempDir,
    status: ExitStatus,
    heard: Vec<Heard>,
}

impl Registered {
    fn record(&self) -> RunRecord {
        let log = fs_err::read_to_string(self.directory.path().join("log")).unwrap();
        RunRecord::parse(&log).unwrap()
    }

    fn key(&self) -> KeyPair {
        let pem = fs_err::read_to_string(self.directory.path().join("identity").join(layout::KEY_FILE));
        KeyPair::from_pem(&pem.unwrap()).unwrap()
    }
}

fn arguments(directory: &Path, operator: String, authority: &Authority) -> RegisterArguments {
    let inside = |name: &str| directory.join(name).display().to_string();
    for folder in ["identity", "tools"] {
        fs_err::create_dir_all(directory.join(folder)).unwrap();
    }
    fs_err::write(directory.join("token"), "the-token\n").unwrap();
    RegisterArguments {
        operator,
        authority: authority.argument(),
        token: inside("token"),
        identity: inside("identity"),
        install: inside("tools"),
        termination_log: inside("log"),
    }
}

/// Registers with an operator of this identity, which answers each call with the next of `answers` and then is gone.
async fn register(directory: TempDir, trusted: &Authority, own: Identity, answers: &[&str]) -> Registered {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let operator = listener.local_addr().unwrap().to_string();
    let arguments = arguments(directory.path(), operator, trusted);
    let mut runner = Command::new(RUNNER).args(arguments.to_args()).spawn().unwrap();
    let mut heard = Vec::new();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    for answer in answers {
        let (stream, _) = listener.accept().await.unwrap();
        if answer.is_empty() {
            continue;
        }
        let Ok(mut stream) = acceptor.accept(stream).await else {
            continue;
        };
        let mut request = Vec::new();
        let (lines, body) = loop {
            let text = String::from_utf8_lossy(&request).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && let Ok(body) = serde_json::from_str(body)
            {
                break (head.to_owned(), body);
            }
            assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0, "{text}");
        };
        heard.push(Heard { head: lines, body });
        let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 4\r\n\r\ntext");
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
    }
    if heard.is_empty() {
        // It would go on trying.
        runner.kill().unwrap();
    }
    Registered {
        status: runner.wait().unwrap(),
        directory,
        heard,
    }
}

fn digest(key: &KeyPair) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &key.subject_public_key_info());
    digest
        .as_ref()
        .iter()
        .fold("sha256:".to_owned(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
}

#[tokio::test]
async fn the_operator_learns_the_digest_of_a_key_that_only_the_pod_has() {
    let authority = Authority::new();
    let own = authority.issue(OPERATOR_NAME);
    let registered = register(tempfile::tempdir().unwrap(), &authority, own, &["200 OK"]).await;
    assert!(registered.status.success());
    let key_digest = digest(&registered.key());
    assert_eq!(registered.heard.len(), 1);
    assert_eq!(registered.heard[0].body, RegisterRequest { key_digest });
    let head = registered.heard[0].head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/register http/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: bearer the-token\r\n"), "{head}");
    let directory = registered.directory.path();
    for file in [layout::KEY_FILE, layout::CERTIFICATE_FILE] {
        let mode = fs_err::metadata(directory.join("identity").join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert_eq!(
        fs_err::read(directory.join("tools/runner")).unwrap(),
        fs_err::read(RUNNER).unwrap()
    );
}

#[tokio::test]
async fn an_operator_that_is_away_or_busy_is_tried_again() {
    let authority = Authority::new();
    let own = authority.issue(OPERATOR_NAME);
    let answers = [
        "",
        "503 Service Unavailable",
        "500 Internal Server Error",
        "204 No Content",
    ];
    let registered = register(tempfile::tempdir().unwrap(), &authority, own, &answers).await;
    assert!(registered.status.success());
    assert_eq!(registered.heard.len(), 3);
}

#[tokio::test]
async fn a_refusal_is_final_and_stands_in_the_record() {
    let authority = Authority::new();
    let own = authority.issue(OPERATOR_NAME);
    let registered = register(tempfile::tempdir().unwrap(), &authority, own, &["403 Forbidden"]).await;
    assert!(!registered.status.success());
    let record = registered.record();
    assert_eq!(record.cause, Some(Cause::RegistrationFailed));
    let message = record.message.unwrap();
    assert!(
        message.ends_with("refused the pod (403 Forbidden): text"),
        "{message}"
    );
}

#[tokio::test]
async fn a_second_attempt_of_the_same_pod_has_the_same_key() {
    let authority = Authority::new();
    let own = authority.issue(OPERATOR_NAME);
    let first = register(tempfile::tempdir().unwrap(), &authority, own.clone(), &["200 OK"]).await;
    let key = first.key().serialize_pem();
    let second = register(first.directory, &authority, own, &["200 OK"]).await;
    assert_eq!(second.key().serialize_pem(), key);
    assert_eq!(second.heard[0].body, first.heard[0].body);
}

#[tokio::test]
async fn nobody_else_gets_the_token() {
    let authority = Authority::new();
    for own in [
        Authority::new().issue(OPERATOR_NAME),
        authority.issue("other.codeworkspace.internal"),
    ] {
        let answers = ["200 OK", "200 OK", "200 OK"];
        let registered = register(tempfile::tempdir().unwrap(), &authority, own, &answers).await;
        assert_eq!(registered.heard, []);
    }
}
