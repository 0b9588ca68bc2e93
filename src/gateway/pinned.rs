//! TLS to a peer that is known by its key alone. Pods have no names that an authority could vouch for; each registered its key with
//! the operator, which wrote the digest into the pod's object.

use std::sync::Arc;

use codeworkspace_bundle::Digest;
use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Accepts the one server whose key has the pinned digest.
#[derive(Debug)]
pub struct Pinned {
    digest: Digest,
    provider: Arc<CryptoProvider>,
}

/// A digest that is none.
#[derive(Debug, thiserror::Error)]
#[error("the pod's key digest must be `sha256:` and 64 hex digits, not `{0}`")]
pub struct NoDigest(String);

impl Pinned {
    /// Reads the digest as it stands in the pod's annotation.
    pub fn new(digest: &str) -> Result<Self, NoDigest> {
        Ok(Self {
            digest: digest
                .parse()
                .map_err(|_| NoDigest(digest.chars().take(100).collect()))?,
            provider: Arc::new(rustls::crypto::aws_lc_rs::default_provider()),
        })
    }

    /// TLS 1.3 only: both ends are ours.
    pub fn client_config(self, identity: Arc<dyn ResolvesClientCert>) -> ClientConfig {
        ClientConfig::builder_with_protocol_versions(&[&rustls::version::TLS13])
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(self))
            .with_client_cert_resolver(identity)
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let key = certificate.subject_public_key_info();
        if Digest::of(&key) == self.digest {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            ))
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // Never asked: the client speaks TLS 1.3 only.
        Err(Error::PeerIncompatible(
            rustls::PeerIncompatible::ServerDoesNotSupportTls12Or13,
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // That the server has the private key, which a digest of the public one cannot tell.
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
#[path = "pinned_tests.rs"]
mod tests;
