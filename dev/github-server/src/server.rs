//! The two listeners and what they share.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::access::{Credentials, Token};
use crate::apps::{App, Issued, Revoked};
use crate::commit::Commit;
use crate::rate_limit::{Counter, RateLimit};
use crate::repositories::{FullName, Repositories, TagKind};
use crate::requests::Requests;
use crate::switches::{Answer, RequestKind, SwitchBoard, Switches};
use crate::{ServerError, api, control, download};

/// How long a shutdown waits for requests that are still being answered.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// The default for [`ServerOptions::rate_limit`].
const DEFAULT_RATE_LIMIT: u32 = 5000;

/// How the tokens in redirects to archives of private repositories begin.
const DOWNLOAD_TOKEN: &str = "ABQTOKEN";

/// Where the server listens and what it serves.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Address of the API and of the control endpoints.
    pub listen: SocketAddr,
    /// Address of the download host.
    pub download_listen: SocketAddr,
    /// Base URL that the API's redirects name, for callers that reach the download host under another address
    /// than it listens on.
    pub advertise_download: Option<String>,
    /// Directory of the repositories; without one, a temporary directory that goes away with the server.
    pub data: Option<PathBuf>,
    /// Folder of fixtures to load at the start.
    pub fixtures: Option<PathBuf>,
    /// Requests an hour. GitHub gives anonymous callers 60; the default is 5,000, so that a long test run does
    /// not end at a limit that it did not ask for.
    pub rate_limit: u32,
    /// Path before all paths of the API, for example `/api/v3` as on GitHub Enterprise Server.
    pub api_path: String,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            listen: any_port,
            download_listen: any_port,
            advertise_download: None,
            data: None,
            fixtures: None,
            rate_limit: DEFAULT_RATE_LIMIT,
            api_path: String::new(),
        }
    }
}

/// What the handlers of both listeners share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) repositories: Repositories,
    pub(crate) switches: watch::Sender<SwitchBoard>,
    pub(crate) requests: watch::Sender<Requests>,
    /// The limit of callers without a credential.
    pub(crate) rate_limit: Arc<Counter>,
    pub(crate) credentials: Credentials,
    pub(crate) download_base: String,
    pub(crate) api_path: String,
    download_tokens: Mutex<Vec<FullName>>,
}

impl Shared {
    /// A new token for the archives of one private repository.
    pub(crate) fn download_token(&self, name: &FullName) -> String {
        let mut tokens = self
            .download_tokens
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        tokens.push(name.clone());
        format!("{DOWNLOAD_TOKEN}{}", tokens.len())
    }

    /// Whether a token opens the archives of this repository.
    pub(crate) fn opens(&self, token: &str, name: &FullName) -> bool {
        let number = token
            .strip_prefix(DOWNLOAD_TOKEN)
            .and_then(|number| number.parse::<usize>().ok());
        let tokens = self
            .download_tokens
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        number.and_then(|number| tokens.get(number.checked_sub(1)?)) == Some(name)
    }

    /// Delays and holds the request as the switches say.
    pub(crate) async fn wait(&self, repository: &str, kind: RequestKind) {
        let delay = self.switches.borrow().of(repository).delay_milliseconds;
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        let mut changes = self.switches.subscribe();
        // Fails only when the sender is gone, and `self` holds it.
        let _ = changes
            .wait_for(|board| !board.of(repository).hold.contains(&kind))
            .await;
    }

    pub(crate) fn take_answer(&self, repository: &str, kind: RequestKind) -> Option<Answer> {
        let mut answer = None;
        self.switches
            .send_modify(|board| answer = board.take_answer(repository, kind));
        answer
    }

    pub(crate) fn set_switches(&self, repository: &FullName, switches: Switches) {
        self.switches.send_modify(|board| {
            board.repositories.insert(repository.to_string(), switches);
        });
    }
}

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct GithubServer {
    shared: Arc<Shared>,
    api: SocketAddr,
    download: SocketAddr,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<std::io::Result<()>>>,
    _data: Option<TempDir>,
}

impl GithubServer {
    /// Starts a server without repositories on two free ports of the loopback address.
    pub async fn start() -> Result<Self, ServerError> {
        Self::start_with(ServerOptions::default()).await
    }

    /// Starts a server. Its tasks run on the current tokio runtime.
    pub async fn start_with(options: ServerOptions) -> Result<Self, ServerError> {
        let (directory, temporary) = if let Some(directory) = options.data {
            (directory, None)
        } else {
            let temporary =
                TempDir::new().map_err(|error| ServerError::file(&std::env::temp_dir(), &error))?;
            (temporary.path().to_owned(), Some(temporary))
        };
        let repositories = Repositories::open(directory);
        if let Some(fixtures) = &options.fixtures {
            repositories.load_fixtures(fixtures)?;
        }
        let api = bind(options.listen).await?;
        let download = bind(options.download_listen).await?;
        let (api_address, download_address) = (address(&api)?, address(&download)?);
        let download_base = options
            .advertise_download
            .unwrap_or_else(|| format!("http://{download_address}"));
        let shared = Arc::new(Shared {
            repositories,
            switches: watch::Sender::default(),
            requests: watch::Sender::default(),
            rate_limit: Counter::shared(options.rate_limit),
            credentials: Credentials::new(options.rate_limit),
            download_base,
            api_path: options.api_path,
            download_tokens: Mutex::default(),
        });
        let stop = watch::Sender::new(false);
        let api_router = Router::new()
            .route("/healthz", get(async || "ok"))
            .nest("/_control", control::router())
            .fallback(api::answer)
            .with_state(Arc::clone(&shared));
        let download_router = Router::new()
            .route("/healthz", get(async || "ok"))
            .fallback(download::answer)
            .with_state(Arc::clone(&shared));
        let tasks = vec![
            serve(api, api_router, &stop),
            serve(download, download_router, &stop),
        ];
        Ok(Self {
            shared,
            api: api_address,
            download: download_address,
            stop,
            tasks,
            _data: temporary,
        })
    }

    /// Base URL of the API.
    pub fn api_base(&self) -> String {
        format!("http://{}{}", self.api, self.shared.api_path)
    }

    /// `host:port` of the API.
    pub fn api_host(&self) -> String {
        self.api.to_string()
    }

    /// `host:port` of the download host.
    pub fn download_host(&self) -> String {
        self.download.to_string()
    }

    /// Makes an empty repository `owner/name` with the default branch `main`.
    pub fn create(&self, name: &str) -> Result<Repository<'_>, ServerError> {
        let name = name.parse()?;
        self.shared.repositories.create(&name, "main")?;
        Ok(Repository {
            shared: &self.shared,
            name,
        })
    }

    /// A repository that exists, or the error that it does not.
    pub fn repository(&self, name: &str) -> Result<Repository<'_>, ServerError> {
        let name = name.parse()?;
        self.shared.repositories.existing(&name)?;
        Ok(Repository {
            shared: &self.shared,
            name,
        })
    }

    /// Sets the switches of all repositories that have none of their own.
    pub fn set_switches(&self, switches: Switches) {
        self.shared.switches.send_modify(|board| board.global = switches);
    }

    /// Lets a token in, under a name by which its requests are counted.
    pub fn set_token(&self, name: &str, token: Token) {
        self.shared.credentials.set_token(name, token);
    }

    /// Revokes the token of this name.
    pub fn remove_token(&self, name: &str) -> Result<(), ServerError> {
        self.shared.credentials.remove_token(name)
    }

    /// Registers a GitHub App, or changes it.
    pub fn set_app(&self, id: &str, app: App) -> Result<(), ServerError> {
        self.shared.credentials.set_app(id, app)
    }

    /// The tokens that an App got so far, in order.
    pub fn issued(&self, app: &str) -> Vec<Issued> {
        self.shared.credentials.issued(app)
    }

    /// Ends all tokens of an App before their time.
    pub fn revoke(&self, app: &str) -> Revoked {
        self.shared.credentials.revoke(app)
    }

    /// Sets the state of one credential's rate limit: a token's by its name, an installation's as `installation-` and its number
    /// once it has a token.
    pub fn set_rate_limit_of(&self, name: &str, limit: RateLimit) -> Result<(), ServerError> {
        self.shared.credentials.counter(name)?.set(limit);
        Ok(())
    }

    /// Sets the state of the rate limit of those without a credential.
    pub fn set_rate_limit(&self, limit: RateLimit) {
        self.shared.rate_limit.set(limit);
    }

    /// What callers asked for so far.
    pub fn requests(&self) -> Requests {
        self.shared.requests.borrow().clone()
    }

    /// Starts counting anew.
    pub fn reset_requests(&self) {
        self.shared.requests.send_replace(Requests::default());
    }

    /// Waits until the counts satisfy `condition`; held requests are counted when they arrive.
    pub async fn wait_for_requests(&self, condition: impl FnMut(&Requests) -> bool) {
        // Fails only when the sender is gone, and `self` holds it.
        let _ = self.shared.requests.subscribe().wait_for(condition).await;
    }

    /// Lets the requests under way end, for at most five seconds, then stops.
    pub async fn shutdown(mut self) -> Result<(), ServerError> {
        self.stop.send_replace(true);
        for mut task in std::mem::take(&mut self.tasks) {
            if let Ok(ended) = tokio::time::timeout(SHUTDOWN_GRACE, &mut task).await {
                ended
                    .map_err(std::io::Error::other)
                    .and_then(|served| served)
                    .map_err(ServerError::Listen)?;
            } else {
                task.abort();
            }
        }
        Ok(())
    }
}

impl Drop for GithubServer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address).await.map_err(ServerError::Listen)
}

/// The address under which callers on this machine reach the listener.
fn address(listener: &TcpListener) -> Result<SocketAddr, ServerError> {
    let mut address = listener.local_addr().map_err(ServerError::Listen)?;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    Ok(address)
}

fn serve(
    listener: TcpListener,
    router: Router,
    stop: &watch::Sender<bool>,
) -> JoinHandle<std::io::Result<()>> {
    let mut stop = stop.subscribe();
    tokio::spawn(async move {
        axum::serve(listener, router)
            .with_graceful_shutdown(async move {
                // An error means that the handle is gone, which is a reason to stop as well.
                let _ = stop.wait_for(|stopped| *stopped).await;
            })
            .await
    })
}

/// One repository of a running server.
#[derive(Debug)]
pub struct Repository<'server> {
    shared: &'server Shared,
    name: FullName,
}

impl Repository<'_> {
    /// Adds a commit to its branch and returns the commit id.
    pub fn commit(&self, commit: &Commit) -> Result<String, ServerError> {
        self.shared.repositories.commit(&self.name, commit)
    }

    /// Points a branch at `target` (any revision of git), making it if need be; returns the object id.
    pub fn branch(&self, branch: &str, target: &str) -> Result<String, ServerError> {
        self.shared.repositories.set_branch(&self.name, branch, target)
    }

    /// Makes or moves a lightweight tag.
    pub fn tag(&self, tag: &str, target: &str) -> Result<String, ServerError> {
        self.shared
            .repositories
            .set_tag(&self.name, tag, target, TagKind::Lightweight, None)
    }

    /// Makes or moves an annotated tag; returns the id of the tag object.
    pub fn annotated_tag(&self, tag: &str, target: &str) -> Result<String, ServerError> {
        self.shared
            .repositories
            .set_tag(&self.name, tag, target, TagKind::Annotated, None)
    }

    /// Removes the reference of this full name (`refs/heads/x`).
    pub fn delete_reference(&self, reference: &str) -> Result<(), ServerError> {
        self.shared.repositories.delete_reference(&self.name, reference)
    }

    /// Hides the repository from callers without access, or shows it again.
    pub fn set_private(&self, private: bool) -> Result<(), ServerError> {
        self.shared.repositories.set_private(&self.name, private)
    }

    /// Gives the repository another name.
    pub fn rename(&self, to: &str) -> Result<(), ServerError> {
        self.shared.repositories.rename(&self.name, &to.parse()?)
    }

    /// Sets this repository's switches, which replace the global ones.
    pub fn set_switches(&self, switches: Switches) {
        self.shared.set_switches(&self.name, switches);
    }
}
