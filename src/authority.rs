//! The internal certificate authority, by which the processes of one release know each other.
//!
//! Its key lies in a Secret of the release's namespace, made by whichever process finds none. Nothing that it signs is ever stored:
//! each process issues itself a certificate for a day, and another one before that day is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codeworkspace_api::labels;
use codeworkspace_protocol::session::{GATEWAY_NAME, OPERATOR_NAME};
use codeworkspace_source::{Clock, SystemClock};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::client::{ResolvesClientCert, WebPkiServerVerifier, danger::ServerCertVerifier as _};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig, SignatureScheme};

/// Name of the Secret.
pub const SECRET: &str = "codeworkspace-internal-ca";

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// Subject of the authority. It is fixed, so that a certificate can be signed without reading the authority's own.
const SUBJECT: &str = "codeworkspace internal authority";

/// How long the authority lasts by its own words. It is a trust anchor, of which verifiers only take name and key (RFC 5280, 6.1.1).
const AUTHORITY_LIFE: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// How long a certificate of one process lasts.
const LIFE: SignedDuration = SignedDuration::from_hours(24);
/// Age at which it is replaced: two replacements may fail before anybody notices.
const RENEWAL: SignedDuration = SignedDuration::from_hours(8);
/// By how much the clocks of two nodes may differ.
const SKEW: SignedDuration = SignedDuration::from_hours(1);

/// The authority, with the certificates that it gave this process.
#[derive(Clone, Debug)]
pub struct Authority {
    pem: String,
    server: Arc<ServerConfig>,
    client: Arc<Identity>,
}

impl Authority {
    /// Reads the authority, or makes it.
    pub async fn ensure(client: Client, namespace: &str) -> anyhow::Result<Self> {
        Self::ensure_at(client, namespace, Arc::new(SystemClock)).await
    }

    async fn ensure_at(client: Client, namespace: &str, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let secrets: Api<Secret> = Api::namespaced(client, namespace);
        let there = secrets.get_opt(SECRET).await;
        let there = there.with_context(|| format!("Secret {namespace}/{SECRET} cannot be read"))?;
        let secret = match there {
            Some(secret) => secret,
            None => make(&secrets, namespace, clock.now()).await?,
        };
        Self::read(&secret, clock).with_context(|| {
            format!(
                "Secret {namespace}/{SECRET} holds no usable authority: delete it, and restart operator and gateway, \
                 which then make another one"
            )
        })
    }

    fn read(secret: &Secret, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let part = |key: &str| {
            let bytes = secret.data.as_ref().and_then(|data| data.get(key));
            let bytes = bytes.with_context(|| format!("there is no {key}"))?;
            std::str::from_utf8(&bytes.0).with_context(|| format!("{key} is not PEM"))
        };
        Self::of(part(CERTIFICATE)?, part(KEY)?, clock)
    }

    fn of(certificate: &str, key: &str, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let root =
            CertificateDer::from_pem_slice(certificate.as_bytes()).context("tls.crt holds no certificate")?;
        // What the parser says of a key is kept to itself.
        let key = KeyPair::from_pem(key)
            .ok()
            .context("tls.key holds no private key in PKCS #8")?;
        let signer = Arc::new(Signer {
            issuer: Issuer::new(authority_parameters(clock.now()), key),
            provider: provider.clone(),
            clock,
        });
        let server = Identity::new(signer.clone(), OPERATOR_NAME, ExtendedKeyUsagePurpose::ServerAuth)?;
        let client = Identity::new(signer.clone(), GATEWAY_NAME, ExtendedKeyUsagePurpose::ClientAuth)?;
        check(&server.current(), root, &signer)?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("there is no usable version of TLS")?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(server));
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            pem: certificate.to_owned(),
            server: Arc::new(server),
            client: Arc::new(client),
        })
    }

    /// The authority's certificate as PEM.
    pub fn pem(&self) -> String {
        self.pem.clone()
    }

    /// The same as one word, as command lines of pods take it: PEM in base64.
    pub fn word(&self) -> String {
        STANDARD.encode(&self.pem)
    }

    /// TLS as the registration endpoint speaks it, under [`OPERATOR_NAME`]. Certificates renew themselves.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        self.server.clone()
    }

    /// The gateway's proof of who it is, under [`GATEWAY_NAME`]. It renews itself.
    pub fn client_identity(&self) -> Arc<Identity> {
        self.client.clone()
    }
}

/// Makes the Secret. When another process was faster, that one's is read.
async fn make(secrets: &Api<Secret>, namespace: &str, now: Timestamp) -> anyhow::Result<Secret> {
    let secret = fresh(now).context("the internal authority cannot be made")?;
    match secrets.create(&PostParams::default(), &secret).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => secrets
            .get(SECRET)
            .await
            .with_context(|| format!("Secret {namespace}/{SECRET} cannot be read")),
        made => {
            let made = made.with_context(|| format!("Secret {namespace}/{SECRET} cannot be made"))?;
            tracing::info!(namespace, name = SECRET, "made the internal authority");
            Ok(made)
        }
    }
}

fn fresh(now: Timestamp) -> Result<Secret, rcgen::Error> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let certificate = authority_parameters(now).self_signed(&key)?;
    let bytes = |text: String| ByteString(text.into_bytes());
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(SECRET.to_owned()),
            labels: Some([(labels::MANAGED_BY.to_owned(), labels::MANAGER.to_owned())].into()),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        // One process must not go on with an authority that another one has replaced.
        immutable: Some(true),
        data: Some(
            [
                (CERTIFICATE.to_owned(), bytes(certificate.pem())),
                (KEY.to_owned(), bytes(key.serialize_pem())),
            ]
            .into(),
        ),
        ..Secret::default()
    })
}

fn authority_parameters(now: Timestamp) -> CertificateParams {
    let mut parameters = parameters(SUBJECT, now, AUTHORITY_LIFE);
    // It signs certificates of processes, and no other authorities.
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    parameters
}

fn parameters(subject: &str, now: Timestamp, life: SignedDuration) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, subject);
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    parameters.not_before = epoch + since_epoch(now.saturating_sub(SKEW).unwrap_or(now));
    parameters.not_after = epoch + since_epoch(now.saturating_add(life).unwrap_or(now));
    parameters
}

fn since_epoch(time: Timestamp) -> std::time::Duration {
    std::time::Duration::try_from(time.as_duration()).unwrap_or_default()
}

/// Whether what was issued leads to the authority's certificate: it does not when the key is another one's.
fn check(issued: &CertifiedKey, root: CertificateDer<'static>, signer: &Signer) -> anyhow::Result<()> {
    let mut roots = RootCertStore::empty();
    roots.add(root).context("tls.crt is no authority's certificate")?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), signer.provider.clone()).build()?;
    let Some(certificate) = issued.cert.first() else {
        bail!("no certificate was issued");
    };
    let name = ServerName::try_from(OPERATOR_NAME)?;
    let now = UnixTime::since_unix_epoch(since_epoch(signer.clock.now()));
    verifier
        .verify_server_cert(certificate, &[], &name, &[], now)
        .context("tls.crt and tls.key do not belong together")?;
    Ok(())
}

/// What signs.
struct Signer {
    issuer: Issuer<'static, KeyPair>,
    provider: Arc<CryptoProvider>,
    clock: Arc<dyn Clock>,
}

impl Signer {
    fn issue(&self, name: &'static str, usage: &ExtendedKeyUsagePurpose) -> anyhow::Result<Issued> {
        let now = self.clock.now();
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let mut parameters = parameters(name, now, LIFE);
        parameters.subject_alt_names = vec![rcgen::SanType::DnsName(name.try_into()?)];
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![usage.clone()];
        parameters.use_authority_key_identifier_extension = true;
        let certificate = parameters.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
        let key = self.provider.key_provider.load_private_key(key)?;
        Ok(Issued {
            key: Arc::new(CertifiedKey::new(vec![certificate.into()], key)),
            renewal: now.saturating_add(RENEWAL).unwrap_or(now),
        })
    }
}

struct Issued {
    key: Arc<CertifiedKey>,
    renewal: Timestamp,
}

/// A certificate and its key under one name, renewed as they are used.
pub struct Identity {
    signer: Arc<Signer>,
    name: &'static str,
    usage: ExtendedKeyUsagePurpose,
    issued: Mutex<Issued>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without keys.
        formatter
            .debug_struct("Identity")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Identity {
    fn new(signer: Arc<Signer>, name: &'static str, usage: ExtendedKeyUsagePurpose) -> anyhow::Result<Self> {
        let issued = signer
            .issue(name, &usage)
            .with_context(|| format!("no certificate can be issued for {name}"))?;
        Ok(Self {
            signer,
            name,
            usage,
            issued: Mutex::new(issued),
        })
    }

    fn issued(&self) -> MutexGuard<'_, Issued> {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The certificate and key of now.
    pub fn current(&self) -> Arc<CertifiedKey> {
        let mut issued = self.issued();
        if self.signer.clock.now() >= issued.renewal {
            match self.signer.issue(self.name, &self.usage) {
                Ok(renewed) => *issued = renewed,
                // The one at hand lasts for longer.
                Err(error) => tracing::warn!(name = self.name, %error, "certificate could not be renewed"),
            }
        }
        issued.key.clone()
    }
}

impl ResolvesServerCert for Identity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "authority_tests.rs"]
mod tests;
