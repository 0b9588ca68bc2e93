//! Artifacts from a server of this machine, honest and hostile.

use std::sync::atomic::{AtomicU32, Ordering};

use codeworkspace_bundle::Entry;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::archive::tests::fixtures::{Tar, gzip};

const OWNER: &str = "gitrepository/team/files";

/// A server that gives one answer to everybody, and counts.
struct Server {
    address: String,
    asked: Arc<AtomicU32>,
}

impl Server {
    async fn answering(answer: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                // The whole request is one small packet.
                let _ = connection.read(&mut request).await;
                counter.fetch_add(1, Ordering::Relaxed);
                // Whoever has enough may hang up.
                let _ = connection.write_all(&answer).await;
            }
        });
        Self { address, asked }
    }

    async fn with(body: &[u8]) -> Self {
        Self::answering(answer("200 OK", body.len(), body)).await
    }

    fn artifacts(&self) -> Artifacts {
        self.limited(&GithubConfiguration::default())
    }

    fn limited(&self, limits: &GithubConfiguration) -> Artifacts {
        Artifacts::new(std::slice::from_ref(&self.address), limits).unwrap()
    }

    async fn fetch(&self, artifacts: &Artifacts, digest: Digest) -> Result<Read, SourceError> {
        let url = format!("http://{}/{OWNER}/abc.tar.gz", self.address);
        let artifact = artifacts.check(&url, &digest.to_string(), OWNER).unwrap();
        artifacts.fetch(&artifact, None, LinkPolicy::Keep).await
    }

    /// The reason and text of a refusal, without the port.
    async fn refusal(&self, artifacts: &Artifacts, digest: Digest) -> (Reason, String) {
        let error = self.fetch(artifacts, digest).await.unwrap_err();
        (error.reason, error.message.replace(&self.address, "HOST"))
    }
}

fn answer(status: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nlocation: /x\r\nconnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// What source-controller makes of a folder.
fn archive() -> Vec<u8> {
    let tar = Tar::default()
        .folder(".")
        .file("README.md", "# Tools")
        .folder("tools")
        .file("tools/main.py", "print(1)");
    gzip(&tar.end())
}

fn file(contents: &'static str) -> Entry {
    Entry::File {
        contents: Bytes::from_static(contents.as_bytes()),
        executable: false,
    }
}

/// Made by source-controller 1.8.0 of a git repository with a program, a link, and names that need extended headers.
#[tokio::test]
async fn what_source_controller_itself_writes_is_read() {
    let archive = include_bytes!("fixtures/source-controller.tar.gz");
    let server = Server::with(archive).await;
    let digest = Digest::of(archive);
    // As its status named it.
    assert_eq!(
        digest.to_string(),
        "sha256:583f4f28e49eb8480a7a80e204c188301f95737d502602d5dac965d2ed7f9e1d"
    );
    let (tree, warnings) = server.fetch(&server.artifacts(), digest).await.unwrap();
    let long = format!(
        "docs/{}/{}/{}.txt",
        "a".repeat(90),
        "b".repeat(90),
        "c".repeat(120)
    );
    let found: Vec<_> = tree
        .iter()
        .map(|(path, entry)| match entry {
            Entry::File { contents, executable } => (path.as_str(), &contents[..], *executable),
            Entry::Link { .. } => panic!("source-controller leaves links out"),
        })
        .collect();
    let expected: [(&str, &[u8], bool); 5] = [
        ("README.md", b"# x\n", false),
        (&long, b"long\n", false),
        ("docs/über.txt", "ü\n".as_bytes(), false),
        ("tools/main.py", b"print(\"hi\")\n", false),
        ("tools/run.sh", b"#!/bin/sh\necho x\n", true),
    ];
    assert_eq!(found, expected);
    assert_eq!(warnings, Vec::<String>::new());
}

#[tokio::test]
async fn an_artifact_is_fetched_once_for_all_who_ask() {
    let archive = archive();
    let server = Server::with(&archive).await;
    let artifacts = server.artifacts();
    let digest = Digest::of(&archive);
    let (one, other) = tokio::join!(server.fetch(&artifacts, digest), server.fetch(&artifacts, digest));
    let expected = [
        ("README.md", file("# Tools")),
        ("tools/main.py", file("print(1)")),
    ];
    let (tree, warnings) = one.unwrap();
    let found: Vec<_> = tree
        .iter()
        .map(|(path, entry)| (path.as_str(), entry.clone()))
        .collect();
    assert_eq!((found, warnings), (expected.to_vec(), Vec::new()));
    assert_eq!(other.unwrap().0, tree);
    server.fetch(&artifacts, digest).await.unwrap();
    assert_eq!(server.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_folder_of_an_artifact_is_taken_or_a_near_one_named() {
    let archive = archive();
    let server = Server::with(&archive).await;
    let artifacts = server.artifacts();
    let url = format!("http://{}/{OWNER}/abc.tar.gz", server.address);
    let artifact = artifacts
        .check(&url, &Digest::of(&archive).to_string(), OWNER)
        .unwrap();
    let take = async |folder: &str| {
        let folder = folder.parse().unwrap();
        artifacts.fetch(&artifact, Some(&folder), LinkPolicy::Keep).await
    };
    let (tree, _) = take("tools").await.unwrap();
    assert_eq!(
        tree.paths().map(BundlePath::as_str).collect::<Vec<_>>(),
        ["main.py"]
    );
    let error = take("tool").await.unwrap_err();
    assert_eq!(
        (error.reason, error.message.as_str()),
        (
            Reason::PathNotFound,
            "the artifact has no folder `tool`; did you mean `tools`?"
        )
    );
}

#[tokio::test]
async fn bytes_with_another_digest_are_not_used() {
    let server = Server::with(&archive()).await;
    let wanted = Digest::of(b"another artifact");
    let (reason, message) = server.refusal(&server.artifacts(), wanted).await;
    assert_eq!(reason, Reason::ArchiveRefused);
    let found = Digest::of(&archive());
    assert_eq!(
        message,
        format!("the artifact has the digest {found}, and not {wanted} as its source says")
    );
}

#[tokio::test]
async fn redirects_are_not_followed_and_other_answers_told() {
    let digest = Digest::of(b"");
    for (status, reason, message) in [
        (
            "302 Found",
            Reason::RedirectRefused,
            "`HOST` redirects the artifact elsewhere, which is never followed",
        ),
        (
            "404 Not Found",
            Reason::FetchFailed,
            "`HOST` has the artifact no more; Flux may just be replacing it",
        ),
        (
            "500 Internal Server Error",
            Reason::FetchFailed,
            "`HOST` answers 500 instead of the artifact",
        ),
    ] {
        let server = Server::answering(answer(status, 0, b"")).await;
        let refusal = server.refusal(&server.artifacts(), digest).await;
        assert_eq!(refusal, (reason, message.to_owned()));
        assert_eq!(server.asked.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn an_artifact_that_is_too_large_or_breaks_off_is_not_used() {
    let archive = archive();
    let limits = GithubConfiguration {
        max_download_bytes: 10,
        ..GithubConfiguration::default()
    };
    let server = Server::with(&archive).await;
    let (reason, _) = server
        .refusal(&server.limited(&limits), Digest::of(&archive))
        .await;
    assert_eq!(reason, Reason::TooLarge);
    let server = Server::answering(answer("200 OK", archive.len() + 1, &archive)).await;
    let refusal = server.refusal(&server.artifacts(), Digest::of(&archive)).await;
    assert_eq!(refusal, (Reason::FetchFailed, "`HOST` broke off".to_owned()));
    let limits = GithubConfiguration {
        max_entries: 1,
        ..GithubConfiguration::default()
    };
    let server = Server::with(&archive).await;
    let (reason, _) = server
        .refusal(&server.limited(&limits), Digest::of(&archive))
        .await;
    assert_eq!(reason, Reason::TooLarge);
}

#[tokio::test]
async fn links_that_lead_out_are_refused_or_left_out() {
    let archive = gzip(
        &Tar::default()
            .file("a", "")
            .link("b", "/etc/passwd")
            .link("c", "a")
            .end(),
    );
    let server = Server::with(&archive).await;
    let artifacts = server.artifacts();
    let url = format!("http://{}/{OWNER}/abc.tar.gz", server.address);
    let artifact = artifacts
        .check(&url, &Digest::of(&archive).to_string(), OWNER)
        .unwrap();
    let rule = "link `b` to `/etc/passwd` is absolute: only links to places inside the bundle are kept";
    let kept = artifacts.fetch(&artifact, None, LinkPolicy::Keep).await;
    assert_eq!(
        kept.unwrap_err().message,
        format!("{rule}; set `links: Skip` to leave such links out")
    );
    let (tree, warnings) = artifacts.fetch(&artifact, None, LinkPolicy::Skip).await.unwrap();
    assert_eq!(
        tree.paths().map(BundlePath::as_str).collect::<Vec<_>>(),
        ["a", "c"]
    );
    assert_eq!(warnings, [format!("{rule}; left out since `links` is `Skip`")]);
}

#[test]
fn a_status_can_choose_neither_the_host_nor_somebody_elses_artifact() {
    let hosts = ["source-controller.flux-system.svc.cluster.local.".to_owned()];
    let artifacts = Artifacts::new(&hosts, &GithubConfiguration::default()).unwrap();
    let digest = Digest::of(b"").to_string();
    let host = "http://source-controller.flux-system.svc.cluster.local";
    for url in [
        format!("{host}./{OWNER}/sha1.abc.tar.gz"),
        format!("{host}/{OWNER}/sha1.abc.tar.gz"),
        format!("{host}/x/../{OWNER}/abc.tar.gz"),
    ] {
        artifacts.check(&url, &digest, OWNER).unwrap();
    }
    let more = "the artifact's address has more than a host and a path, or is neither http nor https";
    let elsewhere =
        "the artifact's address does not lie in the folder of this object, `gitrepository/team/files`";
    let unlisted = |host: &str| {
        format!(
            "the artifact is on `{host}`, which `flux.hosts` of the operator's configuration does not list"
        )
    };
    for (url, message) in [
        (
            "http://169.254.169.254/latest/meta-data".to_owned(),
            unlisted("169.254.169.254"),
        ),
        (
            format!("{host}:8080/{OWNER}/a.tar.gz"),
            unlisted("source-controller.flux-system.svc.cluster.local:8080"),
        ),
        (
            format!("http://source-controller.flux-system.svc.cluster.local@evil.example/{OWNER}/a"),
            more.to_owned(),
        ),
        (format!("{host}/{OWNER}/a.tar.gz?x=1"), more.to_owned()),
        (format!("{host}/{OWNER}/a.tar.gz#x"), more.to_owned()),
        ("file:///etc/passwd".to_owned(), more.to_owned()),
        (
            format!("{host}/gitrepository/other/files/a.tar.gz"),
            elsewhere.to_owned(),
        ),
        (
            format!("{host}/{OWNER}/../../other/files/a.tar.gz"),
            elsewhere.to_owned(),
        ),
        (
            format!("{host}/{OWNER}/%2e%2e/%2e%2e/other/files/a.tar.gz"),
            elsewhere.to_owned(),
        ),
        (
            format!("{host}/{OWNER}/..%2f..%2fother%2fa.tar.gz"),
            elsewhere.to_owned(),
        ),
        (format!("{host}/{OWNER}-2/a.tar.gz"), elsewhere.to_owned()),
        (format!("{host}/{OWNER}/"), elsewhere.to_owned()),
        ("no URL".to_owned(), "the artifact's address is no URL".to_owned()),
    ] {
        let error = artifacts.check(&url, &digest, OWNER).unwrap_err();
        assert_eq!(
            (error.reason, error.message),
            (Reason::ArchiveRefused, message),
            "{url}"
        );
    }
    let error = artifacts
        .check(&format!("{host}/{OWNER}/a.tar.gz"), "sha512:00", OWNER)
        .unwrap_err();
    assert_eq!(
        error.message,
        "the artifact's digest `sha512:00` is not `sha256:` and 64 hex digits, which are Flux's default"
    );
}
