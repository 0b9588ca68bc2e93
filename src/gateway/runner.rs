//! The way to the runner of one session: HTTP over TLS in which the pod is known by its pinned key and the gateway by its certificate.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codeworkspace_protocol::session::{self, BindRequest, BindResponse, SessionError, path};
use futures::{Stream, TryStreamExt as _};
use reqwest::{Body, Client, Method, RequestBuilder, Response};
use rustls::client::ResolvesClientCert;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::events::{Events, EventsError};
use super::index::SessionPod;
use super::pinned::Pinned;

/// Time to connect to a pod that is there. One that is not there is noticed by it.
const CONNECT: Duration = Duration::from_secs(5);

/// The runner of one session. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Runner {
    client: Client,
    /// What its verbs' paths are appended to.
    base: String,
}

/// Why the runner did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// It refused.
    #[error("{0}")]
    Refused(SessionError),
    /// It could not be reached, or the connection broke.
    #[error("the session's pod cannot be reached: {0}")]
    Unreachable(String),
    /// What answered is not what was registered, or did not speak our protocol.
    #[error("the session's pod answered in an unknown way: {0}")]
    Garbled(String),
}

impl From<EventsError> for RunnerError {
    fn from(error: EventsError) -> Self {
        match error {
            EventsError::Broken(_) | EventsError::Cut => Self::Unreachable(error.to_string()),
            EventsError::Garbled(_) => Self::Garbled(error.to_string()),
        }
    }
}

impl RunnerError {
    fn of(error: &reqwest::Error) -> Self {
        // The whole chain: the outermost sentence says only that a request failed. It has no secrets: paths of verbs.
        let mut message = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(inner) = source {
            message = format!("{message}: {inner}");
            source = inner.source();
        }
        Self::Unreachable(message)
    }
}

impl Runner {
    /// The runner of a pod that is ready and registered.
    pub fn new(pod: &SessionPod, identity: Arc<dyn ResolvesClientCert>) -> Result<Self, RunnerError> {
        let (Some(address), Some(key)) = (pod.address, &pod.key_digest) else {
            return Err(RunnerError::Unreachable(
                "the pod has no address or no registered key".to_owned(),
            ));
        };
        let tls = Pinned::new(key)
            .map_err(|error| RunnerError::Garbled(error.to_string()))?
            .client_config(identity);
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .resolve(session::SESSION_NAME, SocketAddr::new(address, session::PORT))
            .https_only(true)
            .no_proxy()
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| RunnerError::of(&error))?;
        let base = format!("https://{}:{}", session::SESSION_NAME, session::PORT);
        Ok(Self { client, base })
    }

    /// A runner that is reached without TLS.
    #[cfg(test)]
    pub fn plain(address: SocketAddr) -> Self {
        Self {
            client: Client::builder().no_proxy().build().unwrap(),
            base: format!("http://{address}"),
        }
    }

    /// Binds the pod to its session.
    pub async fn bind(&self, request: &BindRequest) -> Result<BindResponse, RunnerError> {
        self.call(Method::POST, path::BIND, request).await
    }

    /// Asks for something that is answered by one JSON object.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        request: &impl Serialize,
    ) -> Result<T, RunnerError> {
        let response = send(self.request(method, path).json(request)).await?;
        json(response).await
    }

    /// Asks for something that is answered without content.
    pub async fn tell(
        &self,
        method: Method,
        path: &str,
        request: &impl Serialize,
    ) -> Result<(), RunnerError> {
        send(self.request(method, path).json(request)).await.map(|_| ())
    }

    /// Reads a JSON object.
    pub async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, RunnerError> {
        json(send(self.request(Method::GET, &with_query(path, query))).await?).await
    }

    /// Runs something and gives what it tells while it runs. Dropping the stream is how a caller says that nobody listens any more.
    pub async fn run(&self, path: &str, request: &impl Serialize) -> Result<Events, RunnerError> {
        let response = send(self.request(Method::POST, path).json(request)).await?;
        Ok(Events::new(response.bytes_stream().map_err(|error| {
            EventsError::Broken(RunnerError::of(&error).to_string())
        })))
    }

    /// Opens a file: its size, and its bytes.
    pub async fn read(
        &self,
        file: &str,
    ) -> Result<(u64, impl Stream<Item = Result<Bytes, RunnerError>> + use<>), RunnerError> {
        let response = send(self.request(Method::GET, &with_query(path::FILE, &[("path", file)]))).await?;
        let size = response
            .content_length()
            .ok_or_else(|| RunnerError::Garbled("a file came without its size".to_owned()))?;
        Ok((
            size,
            response.bytes_stream().map_err(|error| RunnerError::of(&error)),
        ))
    }

    /// Sends bytes and gets one JSON object.
    pub async fn send<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        body: Body,
    ) -> Result<T, RunnerError> {
        json(send(self.request(Method::PUT, &with_query(path, query)).body(body)).await?).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }
}

/// The path of a background command. Their ids are ours: what has another form names none, and must not become a path.
pub fn task_path(id: &str) -> Option<String> {
    let is_id = (1..=64).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_id.then(|| format!("{}/{id}", path::TASKS))
}

fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    let pairs: Vec<_> = query
        .iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)))
        .collect();
    if pairs.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", pairs.join("&"))
    }
}

async fn send(request: RequestBuilder) -> Result<Response, RunnerError> {
    /// Longest refusal that is read.
    const MAX_REFUSAL: usize = 64 * 1024;
    let response = request.send().await.map_err(|error| RunnerError::of(&error))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let mut refusal = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(part) = body.try_next().await.map_err(|error| RunnerError::of(&error))? {
        refusal.extend_from_slice(&part);
        if refusal.len() > MAX_REFUSAL {
            break;
        }
    }
    Err(match serde_json::from_slice::<SessionError>(&refusal) {
        Ok(error) => RunnerError::Refused(error),
        Err(_) => RunnerError::Garbled(format!("status {status} without an explanation")),
    })
}

async fn json<T: DeserializeOwned>(response: Response) -> Result<T, RunnerError> {
    let body = response.bytes().await.map_err(|error| RunnerError::of(&error))?;
    serde_json::from_slice(&body).map_err(|error| RunnerError::Garbled(error.to_string()))
}
