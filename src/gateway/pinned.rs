//! TLS to a peer that is known by its key alone. Pods have no names that an authority could vouch for; each registered its key with
//! the operator, which wrote the digest into the pod's object.

use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use sha2::{Digest as _, Sha256};

/// Accepts the one server whose key has the pinned digest.
#[derive(Debug)]
pub struct Pinned {
    digest: [u8; 32],
    provider: Arc<CryptoProvider>,
}

/// A digest that is none.
#[derive(Debug, thiserror::Error)]
#[error("the pod's key digest must be `sha256:` and 64 hex digits, not `{0}`")]
pub struct NoDigest(String);

impl Pinned {
    /// Reads the digest as it stands in the pod's annotation.
    pub fn new(digest: &str) -> Result<Self, NoDigest> {
        let bytes = digest
            .strip_prefix("sha256:")
            .and_then(read_hex)
            .ok_or_else(|| NoDigest(digest.chars().take(100).collect()))?;
        Ok(Self {
            digest: bytes,
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

fn read_hex(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let digits = hex.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
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
        if Sha256::digest(key.as_ref())[..] == self.digest {
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
