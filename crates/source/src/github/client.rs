//! Requests to GitHub: credentials for the API alone, redirects followed by hand, limits respected.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::TryFutureExt as _;
use jiff::{SignedDuration, Timestamp};
use reqwest::header::{ACCEPT, AUTHORIZATION, ETAG, HeaderValue, IF_NONE_MATCH, LOCATION};
use reqwest::{Method, Response, StatusCode, Url, redirect};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answer::{self, RateLimit, Refusal};
use super::breaker::Breaker;
use super::counters::Counters;
use crate::cache::{Etags, Remembered};
use crate::clock::{Clock, later};
use crate::configuration::{ConfigurationError, Endpoints, Limits, Reach, authority};
use crate::credential::Asker;
use crate::error::{SourceError, SourceErrorReason as Reason, quoted};

/// Redirects that one request may take: a renamed repository, the download host, and one more.
const MAXIMUM_REDIRECTS: usize = 3;
/// How much of an answer to a look-up is read. The real ones have a few hundred bytes.
const MAXIMUM_JSON_BYTES: usize = 1024 * 1024;
/// How much of a refusal is read to find out what it means.
const MAXIMUM_REFUSAL_BYTES: usize = 64 * 1024;
/// Requests under way at the same time. GitHub's secondary limit is 100 for everything with one address.
const MAXIMUM_CONCURRENT_REQUESTS: usize = 20;

/// Who sends a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) asker: Asker,
    /// The credential's name, for messages.
    pub(crate) name: Option<&'a str>,
    /// Goes to the API and nowhere else.
    pub(crate) authorization: Option<&'a HeaderValue>,
    /// Whether the request counts against the limit that matters for files. An App's own requests have another one.
    pub(crate) counted: bool,
}

/// The API said that the repository has another address for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moved {
    /// The repository's number, which it keeps whatever it is called.
    pub(crate) number: Option<u64>,
}

/// A success, and how it was reached.
pub(crate) struct Reply {
    pub(crate) response: Response,
    pub(crate) moved: Option<Moved>,
    /// What a classic token may do, as the API says.
    pub(crate) scopes: Vec<String>,
    /// The body that the API confirmed instead of sending it again.
    confirmed: Option<Bytes>,
}

/// Sends requests to the configured hosts.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    endpoints: Endpoints,
    limits: Limits,
    clock: Arc<dyn Clock>,
    breaker: Breaker,
    etags: Etags,
    /// How far the API's clock is ahead of ours.
    skew: Mutex<SignedDuration>,
    slots: Semaphore,
    pub(crate) counters: Counters,
}

impl Client {
    pub(crate) fn new(
        endpoints: Endpoints,
        limits: Limits,
        authorities: Vec<reqwest::Certificate>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigurationError> {
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("codeworkspace-operator/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            // Limits are about the bytes that travel, so nothing may be decompressed on the way.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .connect_timeout(limits.connect)
            .tls_certs_merge(authorities);
        if endpoints.is_loopback() {
            // A proxy of the environment cannot reach this machine's own servers.
            http = http.no_proxy();
        }
        let http = http
            .build()
            .map_err(|error| ConfigurationError::Client(error.to_string()))?;
        Ok(Self {
            http,
            endpoints,
            limits,
            clock,
            breaker: Breaker::default(),
            etags: Etags::default(),
            skew: Mutex::default(),
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

    /// Our clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How far the API's clock is ahead of ours, as it last told.
    pub(crate) fn skew(&self) -> SignedDuration {
        *self.skew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The API refuses this caller's credential itself: it is not shown again for the floor.
    pub(crate) fn reject(&self, asker: Asker, error: &SourceError) {
        let now = self.clock.now();
        let end = later(now, self.limits.lookup_floor);
        self.breaker.reject(&self.api_host(), asker, now, end, error);
    }

    /// Asks the API for the resource at the encoded `path`; `None` when it does not exist.
    ///
    /// Only what stays on the API ([`Reach::Api`]) is asked for conditionally: an archive is never kept as it came.
    pub(crate) async fn get(
        &self,
        path: &str,
        reach: Reach,
        caller: &Caller<'_>,
    ) -> Result<Option<Reply>, SourceError> {
        // Closed never, so an error cannot come.
        let _slot = self.slots.acquire().await;
        let mut url = self.address(path)?;
        let mut moved = None;
        let mut scopes = Vec::new();
        for _ in 0..=MAXIMUM_REDIRECTS {
            let remembered = match reach {
                Reach::Api => self.etags.get(caller.asker, &url),
                Reach::Downloads => None,
            };
            let mut request = self.http.get(url.clone());
            if let Some(remembered) = &remembered {
                request = request.header(IF_NONE_MATCH, remembered.etag.clone());
            }
            let response = self.send(&url, request, caller).await?;
            let status = response.status();
            if self.endpoints.is_api(&url) {
                scopes = answer::scopes(response.headers());
            }
            let confirmed = remembered.filter(|_| status == StatusCode::NOT_MODIFIED);
            if status.is_success() || confirmed.is_some() {
                return Ok(Some(Reply {
                    response,
                    moved,
                    scopes,
                    confirmed: confirmed.map(|remembered| remembered.body),
                }));
            }
            let permanent = match status {
                StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
                StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT => self.endpoints.is_api(&url),
                StatusCode::FOUND | StatusCode::SEE_OTHER | StatusCode::TEMPORARY_REDIRECT => false,
                _ => return Err(self.refused(&url, response, caller).await),
            };
            url = self.next(&url, response.headers().get(LOCATION), reach)?;
            if permanent {
                moved = Some(Moved {
                    number: self.number(&url),
                });
            }
        }
        Err(SourceError::new(
            Reason::RedirectRefused,
            format!(
                "{} redirects more than {MAXIMUM_REDIRECTS} times",
                quoted(authority(&url))
            ),
        ))
    }

    /// The JSON document in an answer.
    pub(crate) async fn json<T: serde::de::DeserializeOwned>(
        &self,
        reply: Reply,
        caller: &Caller<'_>,
    ) -> Result<T, SourceError> {
        let Reply {
            mut response,
            confirmed,
            ..
        } = reply;
        let url = response.url().clone();
        let body = if let Some(body) = confirmed {
            body
        } else {
            let body = Bytes::from(self.body(&mut response, MAXIMUM_JSON_BYTES).await?);
            if let Some(etag) = response.headers().get(ETAG).cloned() {
                let body = body.clone();
                self.etags.put(caller.asker, &url, Remembered { etag, body });
            }
            body
        };
        // The parser's message would quote the body.
        serde_json::from_slice(&body).map_err(|_| {
            let host = quoted(authority(&url));
            SourceError::new(
                Reason::FetchFailed,
                format!("{host} does not answer like GitHub; it will be asked again"),
            )
        })
    }

    /// Sends a JSON document to the API. `Err` inside is the status of a refusal that the caller may understand better, with
    /// the beginning of its body.
    pub(crate) async fn post<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: &serde_json::Value,
        caller: &Caller<'_>,
    ) -> Result<Result<T, (StatusCode, String)>, SourceError> {
        let _slot = self.slots.acquire().await;
        let url = self.address(path)?;
        let request = self.http.request(Method::POST, url.clone()).json(body);
        let mut response = self.send(&url, request, caller).await?;
        let status = response.status();
        match status {
            StatusCode::NOT_FOUND | StatusCode::UNPROCESSABLE_ENTITY => {
                let body = self.body(&mut response, MAXIMUM_REFUSAL_BYTES).await?;
                Ok(Err((status, String::from_utf8_lossy(&body).into_owned())))
            }
            status if status.is_success() => {
                let reply = Reply {
                    response,
                    moved: None,
                    scopes: Vec::new(),
                    confirmed: None,
                };
                Ok(Ok(self.json(reply, caller).await?))
            }
            _ => Err(self.refused(&url, response, caller).await),
        }
    }

    fn address(&self, path: &str) -> Result<Url, SourceError> {
        self.endpoints
            .api(path)
            .ok_or_else(|| SourceError::new(Reason::FetchFailed, "the request has no valid address"))
    }

    /// The repository's number in an address like `/repositories/1/git/ref/heads/main`.
    fn number(&self, url: &Url) -> Option<u64> {
        let base = self.api_url("/repositories/")?;
        let rest = url.as_str().strip_prefix(base.as_str())?;
        rest.split(['/', '?']).next()?.parse().ok()
    }

    async fn send(
        &self,
        url: &Url,
        mut request: reqwest::RequestBuilder,
        caller: &Caller<'_>,
    ) -> Result<Response, SourceError> {
        let host = authority(url);
        let now = self.clock.now();
        if let Some(wait) = self.breaker.wait(&host, caller.asker, now) {
            return Err(answer::limited(&host, caller.name, wait));
        }
        if let Some(error) = self.breaker.rejection(&host, caller.asker, now) {
            return Err(error);
        }
        let is_api = self.endpoints.is_api(url);
        if is_api {
            self.counters.api.fetch_add(1, Ordering::Relaxed);
            request = request
                .header(ACCEPT, HeaderValue::from_static("application/vnd.github+json"))
                .header("x-github-api-version", HeaderValue::from_static("2022-11-28"));
            if let Some(authorization) = caller.authorization {
                request = request.header(AUTHORIZATION, authorization.clone());
            }
        } else {
            self.counters.downloads.fetch_add(1, Ordering::Relaxed);
        }
        let response = self.patiently(&host, Reason::FetchFailed, request.send()).await?;
        if is_api {
            self.note_time(&response);
            if caller.counted {
                self.note_rate_limit(&host, &response, caller);
            }
        }
        Ok(response)
    }

    fn note_time(&self, response: &Response) {
        if let Some(theirs) = answer::server_time(response.headers()) {
            let ours = self.clock.now();
            *self.skew.lock().unwrap_or_else(PoisonError::into_inner) = theirs.duration_since(ours);
        }
    }

    /// A limit that is used up stops all requests before the host has to refuse one.
    fn note_rate_limit(&self, host: &str, response: &Response, caller: &Caller<'_>) {
        let Some(limit) = RateLimit::read(response.headers()) else {
            return;
        };
        self.counters.note(caller.name, limit);
        let now = self.clock.now();
        // Of the others, some are the limit itself, and what they say is read with their body.
        let status = response.status();
        if status.is_success() || status.is_redirection() || status == StatusCode::NOT_FOUND {
            self.breaker.answered(host, caller.asker);
            let theirs = answer::server_time(response.headers()).unwrap_or(now);
            if let Some(wait) = limit.exhausted(theirs) {
                self.breaker.limit(host, caller.asker, now, wait);
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

    async fn refused(&self, url: &Url, mut response: Response, caller: &Caller<'_>) -> SourceError {
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
            // The download host never sees one.
            credential: caller.name.filter(|_| self.endpoints.is_api(url)),
        };
        let now = self.clock.now();
        let error = refusal.meaning(now, self.breaker.strikes(&host, caller.asker));
        if let (Reason::RateLimited, Some(wait)) = (error.reason, error.retry_after) {
            let wait = self.breaker.limit(&host, caller.asker, now, wait);
            let credential = caller.name.unwrap_or("none");
            tracing::warn!(
                host,
                credential,
                seconds = wait.as_secs(),
                "the host limits our requests"
            );
            return error.retry_after(wait);
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
