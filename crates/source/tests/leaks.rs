//! What is written down: an audit line for each fetch, and no secret anywhere.

#![expect(
    clippy::unwrap_used,
    reason = "a step that fails is a failed test, helpers included"
)]

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use codeworkspace_bundle::code::{GithubSource, Target};
use codeworkspace_source::{Access, Credential, Github, GithubConfiguration, LinkPolicy, ManualClock};
use github_server::{App, AppKey, Commit, GithubServer, Redirect, RequestKind, Switches, Token};
use jiff::Timestamp;
use serde_json::Value;
use tracing_subscriber::filter::LevelFilter;

/// Everything that is logged in this process, by whatever crate and on whatever level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn start() -> Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = Self::default();
            let writer = log.clone();
            tracing_subscriber::fmt()
                .json()
                .with_max_level(LevelFilter::TRACE)
                .with_writer(move || writer.clone())
                .init();
            log
        })
        .clone()
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The audit lines about one repository.
    fn audit(&self, repository: &str) -> Vec<Value> {
        let text = self.text();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .filter(|line| line["target"] == "audit" && line["fields"]["repository"] == repository)
            .map(|line| line["fields"].clone())
            .collect()
    }
}

struct World {
    server: GithubServer,
    github: Github,
    clock: Arc<ManualClock>,
    commit: String,
}

impl World {
    /// A server with one private repository of this name.
    async fn new(repository: &str) -> Self {
        let server = GithubServer::start().await.unwrap();
        let private = server.create(repository).unwrap();
        let commit = private.commit(&Commit::on("main").file("a.txt", "a")).unwrap();
        private.set_private(true).unwrap();
        let configuration = GithubConfiguration {
            api_base: server.api_base(),
            download_hosts: vec![server.download_host()],
            insecure_hosts: vec![server.api_host(), server.download_host()],
            ..GithubConfiguration::default()
        };
        let clock = Arc::new(ManualClock::new(Timestamp::now()));
        let github = Github::new(configuration, clock.clone()).unwrap();
        Self {
            server,
            github,
            clock,
            commit,
        }
    }

    /// Asks, and returns whatever comes as text.
    async fn ask(&self, repository: &str, reference: &str, access: &Access) -> String {
        let source = GithubSource {
            repository: repository.parse().unwrap(),
            reference: reference.parse().unwrap(),
            path: None,
            target: Target::OwnPath,
        };
        let found = self.github.materialize(&source, LinkPolicy::Keep, access).await;
        let shown = found.as_ref().map_or_else(ToString::to_string, |_| String::new());
        format!("{found:?} {shown}")
    }

    fn answer(&self, kind: RequestKind, status: u16, body: &str) {
        let answer = github_server::Answer {
            status,
            kinds: vec![kind],
            body: Some(body.to_owned()),
            ..github_server::Answer::default()
        };
        self.server.set_switches(Switches {
            answer: Some(answer),
            ..Switches::default()
        });
        self.clock.advance(Duration::from_hours(2));
    }
}

#[tokio::test]
async fn each_fetch_leaves_one_line_with_repository_commit_credential_bytes_and_outcome() {
    let log = Log::start();
    let world = World::new("audited/secret").await;
    world
        .server
        .set_token("mine", Token::for_repositories("ghp_audit", ["audited/secret"]));
    let access = Access::Credential(Credential::token("SecretInventory a/b", b"ghp_audit").unwrap());
    for _ in 0..2 {
        world.ask("audited/secret", &world.commit, &access).await;
    }
    world
        .ask("audited/secret", &world.commit, &Access::Anonymous)
        .await;
    let unknown = "0123456789012345678901234567890123456789";
    world.ask("audited/secret", unknown, &Access::Anonymous).await;
    let lines: Vec<_> = log
        .audit("audited/secret")
        .into_iter()
        .map(|line| {
            let bytes = line["bytes"].as_u64().unwrap();
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            (
                text("host"),
                text("commit"),
                text("credential"),
                bytes > 0,
                text("outcome"),
            )
        })
        .collect();
    let host = world.server.api_host();
    let line = |commit: &str, credential: &str, outcome: &str| {
        (
            host.clone(),
            commit.to_owned(),
            credential.to_owned(),
            outcome == "Fetched",
            outcome.to_owned(),
        )
    };
    assert_eq!(
        lines,
        [
            line(&world.commit, "SecretInventory a/b", "Fetched"),
            line(unknown, "none", "RepoOrRefNotFound")
        ]
    );
}

#[tokio::test]
async fn a_fetch_that_is_given_up_leaves_its_line_too() {
    let log = Log::start();
    let world = World::new("abandoned/secret").await;
    world
        .server
        .repository("abandoned/secret")
        .unwrap()
        .set_private(false)
        .unwrap();
    world.server.set_switches(Switches {
        hold: vec![RequestKind::Download],
        ..Switches::default()
    });
    let asked = world.ask("abandoned/secret", &world.commit, &Access::Anonymous);
    tokio::select! {
        answer = asked => panic!("{answer}"),
        () = world.server.wait_for_requests(|requests| requests.of(RequestKind::Download) == 1) => {}
    }
    let outcomes: Vec<_> = log
        .audit("abandoned/secret")
        .iter()
        .map(|line| line["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["Abandoned"]);
}

#[tokio::test]
async fn no_log_no_error_and_no_debug_output_holds_a_secret() {
    const TOKEN: &str = "ghp_PLAINLYvisible";
    let log = Log::start();
    let world = World::new("leaky/secret").await;
    let key = AppKey::generate().unwrap();
    world.server.set_token(
        "mine",
        Token::for_repositories(TOKEN, ["leaky/secret"]).scopes("repo"),
    );
    world
        .server
        .set_app("123", App::installed(&key.public_pem, 7, ["leaky/secret"]))
        .unwrap();
    let app = Credential::app("SecretInventory a/app", b"123", None, key.private_pem.as_bytes()).unwrap();
    let accesses = [
        Access::Credential(Credential::token("SecretInventory a/token", TOKEN.as_bytes()).unwrap()),
        Access::Credential(app),
    ];
    let mut shown = String::new();
    for access in &accesses {
        let statistics = world.github.statistics();
        write!(shown, "{access:?} {:?} {statistics:?}", world.github).unwrap();
        for reference in ["main", &world.commit, "missing"] {
            shown += &world.ask("leaky/secret", reference, access).await;
        }
        // Servers repeat what they were sent, and lead astray.
        for (kind, status) in [
            (RequestKind::Reference, 200),
            (RequestKind::Reference, 401),
            (RequestKind::Reference, 403),
            (RequestKind::Reference, 500),
            (RequestKind::AccessToken, 201),
            (RequestKind::AccessToken, 422),
            (RequestKind::Download, 500),
        ] {
            world.answer(
                kind,
                status,
                &format!("{{\"message\": \"bad credentials: {TOKEN}\"}}"),
            );
            shown += &world.ask("leaky/secret", "main", access).await;
        }
        world.clock.advance(Duration::from_hours(2));
        world.server.set_switches(Switches {
            redirect: Redirect::To("https://elsewhere.test/?token=QUERYTOKEN".to_owned()),
            ..Switches::default()
        });
        world
            .server
            .repository("leaky/secret")
            .unwrap()
            .commit(&Commit::on("main").file("b", "b"))
            .unwrap();
        shown += &world.ask("leaky/secret", "main", access).await;
        world.server.set_switches(Switches::default());
    }
    for secret in [TOKEN, "not PEM but SECRET", "two words"] {
        for refused in [
            Credential::token("a", format!("{secret} {secret}").as_bytes()).unwrap_err(),
            Credential::app("a", b"1", Some(secret.as_bytes()), b"").unwrap_err(),
            Credential::app("a", b"1", None, secret.as_bytes()).unwrap_err(),
        ] {
            let text = format!("{refused} {refused:?}");
            assert!(!text.contains(secret), "{text}");
        }
    }
    let issued = world.server.issued("123").len();
    assert!(issued > 0, "the App got tokens");
    let logged = log.text();
    assert!(
        logged.contains("leaky/secret") && logged.contains("hyper"),
        "everything is logged"
    );
    // The middle of the key, the beginning of all tokens of installations, that of all words of an App (`{"alg"`), and what
    // redirects to private archives carry.
    let middle = key.private_pem.lines().nth(5).unwrap();
    for secret in [
        TOKEN,
        "PLAINLYvisible",
        middle,
        "ghs_7",
        "eyJ",
        "Zk3-Qx_7v",
        "ABQTOKEN",
        "QUERYTOKEN",
    ] {
        for (place, text) in [("log", &logged), ("output", &shown)] {
            let found = text.find(secret).map(|at| {
                text[at.saturating_sub(200)..]
                    .chars()
                    .take(400)
                    .collect::<String>()
            });
            assert_eq!(found, None, "{secret} in the {place}");
        }
    }
}
