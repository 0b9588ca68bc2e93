//! Hosts of one's own: below a path, with a private certificate authority, behind a proxy.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use codeworkspace_source::{ConfigurationError, Github, GithubConfiguration, ManualClock};
use github_server::{GithubServer, RequestKind, ServerOptions, Token};
use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::{MINE, ask, mine};
use crate::world::{configuration, lines, one_file};

/// A server whose API lies below `/api/v3`, with the private repository `octo/secret`, and its commit.
async fn enterprise() -> (GithubServer, String) {
    let options = ServerOptions {
        api_path: "/api/v3".to_owned(),
        ..ServerOptions::default()
    };
    let server = GithubServer::start_with(options).await.unwrap();
    let repository = server.create("octo/secret").unwrap();
    let commit = repository.commit(&one_file()).unwrap();
    repository.set_private(true).unwrap();
    server.set_token("mine", Token::for_repositories(MINE, ["octo/secret"]));
    (server, commit)
}

fn resolver(configuration: GithubConfiguration) -> Github {
    let clock = Arc::new(ManualClock::new(Timestamp::now()));
    Github::new(configuration, clock).unwrap()
}

#[tokio::test]
async fn an_api_below_a_path_is_asked_there_and_renames_are_understood() {
    let (server, commit) = enterprise().await;
    assert!(server.api_base().ends_with("/api/v3"));
    let github = resolver(configuration(&server));
    let found = ask(&github, "octo/secret", "main", &mine()).await.unwrap();
    assert_eq!(
        (found.revision.as_str(), lines(&found.tree)),
        (commit.as_str(), vec!["a.txt: a".to_owned()])
    );
    server
        .repository("octo/secret")
        .unwrap()
        .rename("octo/better")
        .unwrap();
    server.set_token("mine", Token::for_repositories(MINE, ["octo/better"]));
    let found = ask(&resolver(configuration(&server)), "octo/secret", "main", &mine())
        .await
        .unwrap();
    assert!(
        found.warnings[0].contains("is called `octo/better` now"),
        "{:?}",
        found.warnings
    );
    assert_eq!(server.requests().unknown, 0);
}

/// A certificate authority, its certificate in PEM, and a TLS front with a certificate by it.
async fn front(backend: String) -> (String, String) {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = ["127.0.0.1".to_owned()];
    let certificate = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, &authority)
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let (acceptor, backend) = (acceptor.clone(), backend.clone());
            tokio::spawn(async move {
                // Those who do not trust the certificate break off.
                let Ok(mut outside) = acceptor.accept(connection).await else {
                    return;
                };
                let mut inside = TcpStream::connect(&backend).await.unwrap();
                let _ = copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    });
    (authority.pem(), address)
}

#[tokio::test]
async fn a_private_certificate_authority_is_trusted_once_it_is_configured() {
    let (server, _) = enterprise().await;
    let (authority, address) = front(server.api_host()).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), authority).unwrap();
    let configure = |bundle: Option<&Path>| GithubConfiguration {
        api_base: format!("https://{address}/api/v3"),
        download_hosts: vec![server.download_host()],
        insecure_hosts: vec![server.download_host()],
        ca_bundle: bundle.map(Path::to_owned),
        ..GithubConfiguration::default()
    };
    let error = ask(&resolver(configure(None)), "octo/secret", "main", &mine())
        .await
        .unwrap_err();
    assert!(error.message.contains("cannot be reached"), "{}", error.message);
    assert_eq!(server.requests().total(), 0);
    let found = ask(
        &resolver(configure(Some(file.path()))),
        "octo/secret",
        "main",
        &mine(),
    )
    .await
    .unwrap();
    assert_eq!(lines(&found.tree), ["a.txt: a"]);
}

#[test]
fn a_bundle_that_cannot_be_used_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, text: Option<&str>| {
        let path = folder.path().join(name);
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let configuration = GithubConfiguration {
            ca_bundle: Some(path),
            ..GithubConfiguration::default()
        };
        match Github::new(configuration, Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH))) {
            Err(ConfigurationError::CaBundle { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        refused("missing", None),
        "cannot be read: No such file or directory (os error 2)"
    );
    assert_eq!(refused("empty", Some("")), "has no certificate; write PEM");
    let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    assert_eq!(
        refused("broken", Some(broken)),
        "has a malformed certificate; write PEM"
    );
}

/// Set for the process in which the questions are asked: only a new process sees another environment.
const CHILD: &str = "SOURCE_TESTS_ASK";

/// Asks in a new process, with these variables, for `octo/secret@main` at the API of this address; returns whether it was found.
async fn ask_elsewhere(server: &GithubServer, api: &str, variables: &[(&str, &str)]) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "access::enterprise::proxies_of_the_environment_are_used",
        ])
        .env(CHILD, format!("{api} {}", server.download_host()));
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
    ] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap();
    output.unwrap().status.success()
}

/// A proxy that passes requests on to one server, whatever host they name, and counts them.
async fn proxy(backend: String) -> (String, tokio::sync::watch::Receiver<u32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (count, counted) = tokio::sync::watch::channel(0);
    tokio::spawn(async move {
        while let Ok((mut outside, _)) = listener.accept().await {
            let (backend, count) = (backend.clone(), count.clone());
            tokio::spawn(async move {
                // One request for each connection: the answer asks to close it.
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = outside.read_u8().await else { return };
                    head.push(byte);
                }
                count.send_modify(|count| *count += 1);
                let head = String::from_utf8(head).unwrap();
                // A proxy is asked for the whole address (RFC 9112, 3.2.2), the server for its path.
                let (_, path) = head.split_once("http://github.test").unwrap();
                let request = format!("GET {}", path.replacen("\r\n", "\r\nconnection: close\r\n", 1));
                let mut inside = TcpStream::connect(&backend).await.unwrap();
                inside.write_all(request.as_bytes()).await.unwrap();
                let mut answer = Vec::new();
                inside.read_to_end(&mut answer).await.unwrap();
                outside.write_all(&answer).await.unwrap();
            });
        }
    });
    (address, counted)
}

#[tokio::test]
async fn proxies_of_the_environment_are_used() {
    if let Ok(hosts) = std::env::var(CHILD) {
        let (api, download) = hosts.split_once(' ').unwrap();
        let github = resolver(GithubConfiguration {
            api_base: format!("http://{api}/api/v3"),
            download_hosts: vec![download.to_owned()],
            insecure_hosts: vec![api.to_owned(), download.to_owned()],
            ..GithubConfiguration::default()
        });
        ask(&github, "octo/secret", "main", &mine()).await.unwrap();
        return;
    }
    let (server, _) = enterprise().await;
    let (address, counted) = proxy(server.api_host()).await;
    let direct = server.download_host();
    let (without, _) = direct.split_once(':').unwrap();
    assert!(
        ask_elsewhere(
            &server,
            "github.test",
            &[("HTTP_PROXY", &address), ("NO_PROXY", without)]
        )
        .await
    );
    // Two look-ups and the question for the archive; the archive itself came straight.
    assert_eq!(*counted.borrow(), 3);
    assert_eq!(server.requests().by("mine", RequestKind::Tarball), 1);

    let direct = format!("github.test,{without}");
    assert!(
        !ask_elsewhere(
            &server,
            "github.test",
            &[("HTTP_PROXY", &address), ("NO_PROXY", &direct)]
        )
        .await
    );
    assert_eq!(
        *counted.borrow(),
        3,
        "a host of NO_PROXY is asked without the proxy"
    );

    // A server on this machine is nothing for a proxy, which would be another machine's.
    assert!(ask_elsewhere(&server, &server.api_host(), &[("HTTP_PROXY", &address)]).await);
    assert_eq!(*counted.borrow(), 3);
}
