//! What the operator's configuration says about GitHub.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::error::quoted;
use crate::store::StoreConfiguration;

const MIB: u64 = 1024 * 1024;

/// The GitHub host and the limits of what is taken from it. Objects in the cluster can change none of this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GithubConfiguration {
    /// Base URL of the REST API. GitHub Enterprise Server has `https://HOST/api/v3`.
    pub api_base: String,
    /// Hosts that the API may redirect to, as `host` (default port) or `host:port`.
    pub download_hosts: Vec<String>,
    /// Hosts that may be asked over plain HTTP, as `host` or `host:port`. For development only.
    pub insecure_hosts: Vec<String>,
    /// Whether requests without a credential are allowed. GitHub then serves public repositories, and counts 60
    /// requests an hour for all of them together.
    pub anonymous: bool,
    /// A branch or tag is looked up at most once in so many seconds, however many objects name it.
    pub lookup_floor_seconds: u64,
    /// How long a successful answer of GitHub proves that a credential, or everybody, may read a repository. Cached trees are
    /// served only to those with a proof.
    pub proof_seconds: u64,
    /// A PEM file of certificate authorities that are trusted beside the usual ones, for hosts with a private one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<PathBuf>,
    /// How long a connection may take.
    pub connect_timeout_seconds: u64,
    /// How long an answer, or the next piece of an archive, may keep us waiting.
    pub idle_timeout_seconds: u64,
    /// How long a whole look-up or a whole download may take.
    pub total_timeout_seconds: u64,
    /// Largest compressed archive.
    pub max_download_bytes: u64,
    /// Largest archive after decompression, headers and padding included.
    pub max_inflated_bytes: u64,
    /// Largest single file of a repository.
    pub max_file_bytes: u64,
    /// Most files and links of a repository, and most folders.
    pub max_entries: u64,
    /// How much memory the trees of recently used commits may take.
    pub tree_cache_bytes: u64,
    /// A folder for what should outlive the process: trees, and what is known of branches, tags and access. Only one process uses it
    /// at a time. Without it all this is in memory only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_directory: Option<PathBuf>,
    /// How much disk everything in `cacheDirectory` may take together.
    pub cache_bytes: u64,
    /// How many archives are downloaded and read at the same time; each may need `maxInflatedBytes` of memory.
    pub concurrent_downloads: usize,
}

impl Default for GithubConfiguration {
    fn default() -> Self {
        Self {
            api_base: "https://api.github.com".to_owned(),
            download_hosts: vec!["codeload.github.com".to_owned()],
            insecure_hosts: Vec::new(),
            anonymous: true,
            lookup_floor_seconds: 30,
            proof_seconds: 24 * 60 * 60,
            ca_bundle: None,
            connect_timeout_seconds: 10,
            idle_timeout_seconds: 30,
            total_timeout_seconds: 300,
            max_download_bytes: 100 * MIB,
            max_inflated_bytes: 128 * MIB,
            max_file_bytes: 50 * MIB,
            max_entries: 20_000,
            tree_cache_bytes: 256 * MIB,
            cache_directory: None,
            cache_bytes: 2048 * MIB,
            concurrent_downloads: 2,
        }
    }
}

impl GithubConfiguration {
    /// The cache on disk, if there is one.
    pub(crate) fn store(&self, limits: &Limits) -> Result<Option<StoreConfiguration>, ConfigurationError> {
        let bytes = positive("cacheBytes", self.cache_bytes)?;
        let store = |directory: &PathBuf| StoreConfiguration {
            directory: directory.clone(),
            bytes,
            limits: limits.archive,
        };
        Ok(self.cache_directory.as_ref().map(store))
    }

    /// The certificate authorities of `caBundle`.
    pub(crate) fn authorities(&self) -> Result<Vec<reqwest::Certificate>, ConfigurationError> {
        let Some(path) = &self.ca_bundle else {
            return Ok(Vec::new());
        };
        let refused = |problem: String| ConfigurationError::CaBundle {
            path: path.clone(),
            problem,
        };
        let pem = std::fs::read(path).map_err(|error| refused(format!("cannot be read: {error}")))?;
        let malformed = "has a malformed certificate; write PEM".to_owned();
        let found = reqwest::Certificate::from_pem_bundle(&pem).map_err(|_| refused(malformed))?;
        if found.is_empty() {
            return Err(refused("has no certificate; write PEM".to_owned()));
        }
        Ok(found)
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The base URL is no URL, or has parts that a base cannot have.
    #[error(
        "apiBase {}: {problem}; write for example `https://api.github.com`",
        quoted(value)
    )]
    ApiBase {
        /// The value as written.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A list of hosts has an entry that is none.
    #[error("{field}: {} is no host; write `host` or `host:port`", quoted(value))]
    Host {
        /// Which list.
        field: &'static str,
        /// The entry as written.
        value: String,
    },
    /// A limit of zero would refuse everything.
    #[error("{field} must be greater than 0")]
    Zero {
        /// Which limit.
        field: &'static str,
    },
    /// The file of certificate authorities cannot be used.
    #[error("caBundle {}: {problem}", quoted(path.display().to_string()))]
    CaBundle {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The HTTP client could not be made, for example because the image has no CA certificates.
    #[error("no HTTP client: {0}")]
    Client(String),
}

/// `host` or `host:port`, as the configuration names hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    name: String,
    port: Option<u16>,
}

impl Host {
    fn parse(field: &'static str, value: &str) -> Result<Self, ConfigurationError> {
        let refused = || ConfigurationError::Host {
            field,
            value: value.to_owned(),
        };
        let value = value.to_ascii_lowercase();
        // The URL parser knows about brackets, international names and odd ways to write numbers.
        let url = Url::parse(&format!("https://{value}")).map_err(|_| refused())?;
        let name = url.host_str().ok_or_else(refused)?.to_owned();
        let is_legal =
            |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_' | ':' | '[' | ']');
        let plain = name.chars().all(is_legal)
            && value
                .strip_prefix(&name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
        if !plain || url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(refused());
        }
        let port = match value[name.len()..].strip_prefix(':') {
            Some(port) => Some(port.parse().map_err(|_| refused())?),
            None => None,
        };
        Ok(Self { name, port })
    }

    /// A dot at the end of a name, which keeps resolvers from trying suffixes, makes no other host of it.
    pub(crate) fn matches(&self, url: &Url) -> bool {
        let plain = |name: &str| name.strip_suffix('.').unwrap_or(name).to_owned();
        url.host_str().map(plain) == Some(plain(&self.name))
            && match self.port {
                Some(port) => url.port_or_known_default() == Some(port),
                None => url.port().is_none(),
            }
    }
}

pub(crate) fn parse_hosts(field: &'static str, values: &[String]) -> Result<Vec<Host>, ConfigurationError> {
    values.iter().map(|value| Host::parse(field, value)).collect()
}

/// The configuration after parsing: where requests may go.
#[derive(Debug, Clone)]
pub(crate) struct Endpoints {
    api_base: Url,
    download: Vec<Host>,
    insecure: Vec<Host>,
}

/// Which hosts a request may be redirected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only the API itself.
    Api,
    /// Also the download hosts.
    Downloads,
}

/// Why an address is not asked. Shows no more of it than the host, since queries carry tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("it leads to {}, which `downloadHosts` of the operator's configuration does not list", quoted(.0))]
    Host(String),
    #[error(
        "it leads to {} without TLS, and `insecureHosts` of the operator's configuration does not list that host",
        quoted(.0)
    )]
    Insecure(String),
    #[error("its address is malformed")]
    Malformed,
}

impl Endpoints {
    pub(crate) fn parse(configuration: &GithubConfiguration) -> Result<Self, ConfigurationError> {
        let value = &configuration.api_base;
        let refused = |problem: &str| ConfigurationError::ApiBase {
            value: value.clone(),
            problem: problem.to_owned(),
        };
        let mut api_base = Url::parse(value).map_err(|error| refused(&error.to_string()))?;
        if api_base.query().is_some() || api_base.fragment().is_some() {
            return Err(refused("has a query or fragment"));
        }
        if has_credentials(&api_base) {
            return Err(refused("carries a user name or password"));
        }
        let path = api_base.path().trim_end_matches('/').to_owned();
        api_base.set_path(&path);
        let endpoints = Self {
            api_base,
            download: parse_hosts("downloadHosts", &configuration.download_hosts)?,
            insecure: parse_hosts("insecureHosts", &configuration.insecure_hosts)?,
        };
        match endpoints.check_scheme(&endpoints.api_base) {
            Ok(()) => Ok(endpoints),
            Err(AddressError::Insecure(_)) => {
                Err(refused("is not https, and insecureHosts does not list its host"))
            }
            Err(_) => Err(refused("is neither http nor https")),
        }
    }

    /// `host` or `host:port` of the API, by which caches tell hosts apart.
    pub(crate) fn api_host(&self) -> String {
        authority(&self.api_base)
    }

    /// Whether the API is a server on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.api_base.host_str().unwrap_or_default();
        let address = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Whether a URL is one of the API's, so that a credential may go there. Another scheme or port is another server, and a host
    /// that serves the API below a path may serve other things beside it.
    pub(crate) fn is_api(&self, url: &Url) -> bool {
        let base = self.api_base.path().trim_end_matches('/');
        let below = url.path().strip_prefix(base);
        url.origin() == self.api_base.origin()
            && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The URL of an API resource. `path` is already encoded and starts with `/`.
    pub(crate) fn api(&self, path: &str) -> Option<Url> {
        Url::parse(&format!("{}{path}", self.api_base.as_str().trim_end_matches('/'))).ok()
    }

    /// Where a redirect from `url` leads, if a request may go there.
    pub(crate) fn follow(&self, url: &Url, location: &str, reach: Reach) -> Result<Url, AddressError> {
        let mut next = url.join(location).map_err(|_| AddressError::Malformed)?;
        if has_credentials(&next) {
            return Err(AddressError::Malformed);
        }
        next.set_fragment(None);
        let is_api = next.host_str() == self.api_base.host_str()
            && next.port_or_known_default() == self.api_base.port_or_known_default();
        let is_download = reach == Reach::Downloads && self.download.iter().any(|host| host.matches(&next));
        if !is_api && !is_download {
            return Err(AddressError::Host(authority(&next)));
        }
        self.check_scheme(&next)?;
        Ok(next)
    }

    fn check_scheme(&self, url: &Url) -> Result<(), AddressError> {
        match url.scheme() {
            "https" => Ok(()),
            "http" if self.insecure.iter().any(|host| host.matches(url)) => Ok(()),
            "http" => Err(AddressError::Insecure(authority(url))),
            _ => Err(AddressError::Malformed),
        }
    }
}

fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Host and, unless it is the scheme's own, port.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Limits as durations and sizes, none of them zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) lookup_floor: Duration,
    pub(crate) proof: Duration,
    pub(crate) connect: Duration,
    pub(crate) idle: Duration,
    pub(crate) total: Duration,
    pub(crate) download_bytes: u64,
    pub(crate) archive: ArchiveLimits,
}

/// How large an archive may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Bytes after decompression, headers and padding included.
    pub inflated_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files and links; as many folders are allowed as well.
    pub entries: u64,
}

fn positive(field: &'static str, value: u64) -> Result<u64, ConfigurationError> {
    if value == 0 {
        return Err(ConfigurationError::Zero { field });
    }
    Ok(value)
}

impl Limits {
    pub(crate) fn parse(configuration: &GithubConfiguration) -> Result<Self, ConfigurationError> {
        let seconds = |field, value| positive(field, value).map(Duration::from_secs);
        if configuration.concurrent_downloads == 0 {
            return Err(ConfigurationError::Zero {
                field: "concurrentDownloads",
            });
        }
        Ok(Self {
            lookup_floor: Duration::from_secs(configuration.lookup_floor_seconds),
            proof: seconds("proofSeconds", configuration.proof_seconds)?,
            connect: seconds("connectTimeoutSeconds", configuration.connect_timeout_seconds)?,
            idle: seconds("idleTimeoutSeconds", configuration.idle_timeout_seconds)?,
            total: seconds("totalTimeoutSeconds", configuration.total_timeout_seconds)?,
            download_bytes: positive("maxDownloadBytes", configuration.max_download_bytes)?,
            archive: ArchiveLimits {
                inflated_bytes: positive("maxInflatedBytes", configuration.max_inflated_bytes)?,
                file_bytes: positive("maxFileBytes", configuration.max_file_bytes)?,
                entries: positive("maxEntries", configuration.max_entries)?,
            },
        })
    }
}
