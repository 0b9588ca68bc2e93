//! Requests to GitHub: no credentials, redirects followed by hand, limits respected.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::TryFutureExt as _;
use reqwest::header::{ACCEPT, HeaderValue, LOCATION};
use reqwest::{Response, StatusCode, Url, redirect};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answer::{RateLimit, Refusal};
use super::breaker::Breaker;
use crate::clock::Clock;
use crate::configuration::{ConfigurationError, Endpoints, Limits, Reach, authority};
use crate::error::{SourceError, SourceErrorReason as Reason, quoted};

/// Redirects that one request may take: a renamed repository, the download host, and one more.
const MAXIMUM_REDIRECTS: usize = 3;
/// How much of an answer to a look-up is read. The real ones have a few hundred bytes.
const MAXIMUM_JSON_BYTES: usize = 1024 * 1024;
/// How much of a refusal is read to find out what it means.
const MAXIMUM_REFUSAL_BYTES: usize = 64 * 1024;
/// Requests under way at the same time. GitHub's secondary limit is 100 for everything with one address.
const MAXIMUM_CONCURRENT_REQUESTS: usize = 20;

/// A success, and how it was reached.
pub(crate) struct Reply {
    pub(crate) response: Response,
    /// The API said that the repository has another address for good.
    pub(crate) moved: bool,
}

/// Counts for metrics.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) api: AtomicU64,
    pub(crate) downloads: AtomicU64,
    pub(crate) rate_limit: Mutex<Option<RateLimit>>,
}

impl Counters {
    /// Keeps the lowest count of a window: answers to requests that were made together come in any order.
    fn note(&self, limit: RateLimit) {
        let mut known = self.rate_limit.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none_or(|known| known.reset != limit.reset || limit.remaining < known.remaining) {
            *known = Some(limit);
        }
    }
}

/// Sends requests to the configured hosts.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    endpoints: Endpoints,
    limits: Limits,
    clock: Arc<dyn Clock>,
    breaker: Breaker,
    slots: Semaphore,
    pub(crate) counters: Counters,
}

impl Client {
    pub(crate) fn new(
        endpoints: Endpoints,
        limits: Limits,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigurationError> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("codeworkspace-operator/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            // Limits are about the bytes that travel, so nothing may be decompressed on the way.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .connect_timeout(limits.connect)
            .build()
            .map_err(|error| ConfigurationError::Client(error.to_string()))?;
        Ok(Self {
            http,
            endpoints,
            limits,
            clock,
            breaker: Breaker::default(),
            slots: Semaphore::new(MAXIMUM_CONCURRENT_REQUESTS),
            counters: Counters::default(),
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn api_host(&self) -> String {
        self.endpoints.api_host()
    }

    /// Base URL of one API resource with its path encoded; for comparing it with URLs in answers.
    pub(crate) fn api_url(&self, path: &str) -> Option<Url> {
        self.endpoints.api(path)
    }

    /// Asks the API for the resource at the encoded `path`; `None` when it does not exist.
    pub(crate) async fn get(&self, path: &str, reach: Reach) -> Result<Option<Reply>, SourceError> {
        // Closed never, so an error cannot come.
        let _slot = self.slots.acquire().await;
        let mut url = self
            .endpoints
            .api(path)
            .ok_or_else(|| SourceError::new(Reason::FetchFailed, "the request has no valid address"))?;
        let mut moved = false;
        for _ in 0..=MAXIMUM_REDIRECTS {
            let response = self.send(url.clone()).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(Some(Reply { response, moved }));
            }
            match status {
                StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
                StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT => {
                    moved |= authority(&url) == self.api_host();
                }
                StatusCode::FOUND | StatusCode::SEE_OTHER | StatusCode::TEMPORARY_REDIRECT => {}
                _ => return Err(self.refused(&url, response).await),
            }
            url = self.next(&url, response.headers().get(LOCATION), reach)?;
        }
        Err(SourceError::new(
            Reason::RedirectRefused,
            format!(
                "{} redirects more than {MAXIMUM_REDIRECTS} times",
                quoted(authority(&url))
            ),
        ))
    }

    /// Asks the API for a JSON document; `None` when it does not exist.
    pub(crate) async fn get_json<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<(T, bool)>, SourceError> {
        let Some(Reply { mut response, moved }) = self.get(path, Reach::Api).await? else {
            return Ok(None);
        };
        let body = self.body(&mut response, MAXIMUM_JSON_BYTES).await?;
        // The parser's message would quote the body.
        let document = serde_json::from_slice(&body).map_err(|_| {
            let host = quoted(authority(response.url()));
            SourceError::new(
                Reason::FetchFailed,
                format!("{host} does not answer like GitHub; it will be asked again"),
            )
        })?;
        Ok(Some((document, moved)))
    }

    async fn send(&self, url: Url) -> Result<Response, SourceError> {
        let host = authority(&url);
        let is_api = host == self.api_host();
        if let Some(wait) = self.breaker.wait(&host, self.clock.now()) {
            let text = format!(
                "{} allows no more requests for now, and will be asked again later",
                quoted(&host)
            );
            return Err(SourceError::new(Reason::RateLimited, text).retry_after(wait));
        }
        let mut request = self.http.get(url);
        if is_api {
            self.counters.api.fetch_add(1, Ordering::Relaxed);
            request = request
                .header(ACCEPT, HeaderValue::from_static("application/vnd.github+json"))
                .header("x-github-api-version", HeaderValue::from_static("2022-11-28"));
        } else {
            self.counters.downloads.fetch_add(1, Ordering::Relaxed);
        }
        let response = self.patiently(&host, Reason::FetchFailed, request.send()).await?;
        if is_api {
            self.note_rate_limit(&host, &response);
        }
        Ok(response)
    }

    /// A limit that is used up stops all requests before the host has to refuse one.
    fn note_rate_limit(&self, host: &str, response: &Response) {
        let Some(limit) = RateLimit::read(response.headers()) else {
            return;
        };
        self.counters.note(limit);
        let now = self.clock.now();
        if response.status().is_success() || response.status().is_redirection() {
            self.breaker.answered(host);
            if let Some(wait) = limit.exhausted(now) {
                self.breaker.limit(host, now, wait);
            }
        }
    }

    fn next(&self, url: &Url, location: Option<&HeaderValue>, reach: Reach) -> Result<Url, SourceError> {
        let host = quoted(authority(url));
        let location = location
            .and_then(|location| location.to_str().ok())
            .ok_or_else(|| {
                SourceError::new(
                    Reason::RedirectRefused,
                    format!("{host} redirects without saying where to"),
                )
            })?;
        self.endpoints.follow(url, location, reach).map_err(|error| {
            SourceError::new(
                Reason::RedirectRefused,
                format!("a redirect of {host} is refused: {error}"),
            )
        })
    }

    async fn refused(&self, url: &Url, mut response: Response) -> SourceError {
        let host = authority(url);
        // Without a body the headers must do.
        let body = self
            .body(&mut response, MAXIMUM_REFUSAL_BYTES)
            .await
            .unwrap_or_default();
        let refusal = Refusal {
            host: &host,
            status: response.status(),
            headers: response.headers(),
            body: &String::from_utf8_lossy(&body),
        };
        let now = self.clock.now();
        let error = refusal.meaning(now, self.breaker.strikes(&host));
        if let (Reason::RateLimited, Some(wait)) = (error.reason, error.retry_after) {
            tracing::warn!(host, seconds = wait.as_secs(), "the host limits our requests");
            self.breaker.limit(&host, now, wait);
        }
        error
    }

    /// At most `limit` bytes of a body; what is longer is malformed.
    async fn body(&self, response: &mut Response, limit: usize) -> Result<Vec<u8>, SourceError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(response, Reason::FetchFailed).await? {
            body.extend_from_slice(&chunk);
            if body.len() > limit {
                let host = quoted(authority(response.url()));
                return Err(SourceError::new(
                    Reason::FetchFailed,
                    format!("{host} does not answer like GitHub"),
                ));
            }
        }
        Ok(body)
    }

    /// The next piece of a body, if it comes within the idle timeout. `broken` is the reason when it breaks off.
    pub(crate) async fn chunk(
        &self,
        response: &mut Response,
        broken: Reason,
    ) -> Result<Option<bytes::Bytes>, SourceError> {
        let host = authority(response.url());
        self.patiently(&host, broken, response.chunk()).await
    }

    async fn patiently<T>(
        &self,
        host: &str,
        broken: Reason,
        request: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, SourceError> {
        let idle = self.limits.idle;
        match timeout(idle, request.map_err(|error| describe(host, broken, &error))).await {
            Ok(done) => done,
            Err(_) => Err(SourceError::new(
                Reason::FetchFailed,
                format!(
                    "{} sends nothing for {} (idleTimeoutSeconds)",
                    quoted(host),
                    seconds(idle)
                ),
            )),
        }
    }
}

/// A failure below HTTP. The error's own text has the URL, so only its cause is shown.
fn describe(host: &str, broken: Reason, error: &reqwest::Error) -> SourceError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let detail = if std::ptr::addr_eq(cause, error) {
        String::new()
    } else {
        format!(": {}", quoted(cause.to_string()))
    };
    let (reason, what) = if error.is_connect() {
        (Reason::FetchFailed, "cannot be reached")
    } else if error.is_body() || error.is_decode() {
        (broken, "broke off in the middle of its answer")
    } else {
        (Reason::FetchFailed, "did not answer")
    };
    SourceError::new(reason, format!("{} {what}{detail}", quoted(host)))
}

pub(crate) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}
