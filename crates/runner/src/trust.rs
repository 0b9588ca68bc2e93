//! The internal authority, as pods are told about it on their command lines.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// The only certificates that are trusted: those of the PEM text in `authority` (base64).
pub(crate) fn roots(authority: &str) -> io::Result<RootCertStore> {
    let unusable = |error: &dyn std::fmt::Display| {
        io::Error::other(format!(
            "the certificate given with `--authority` cannot be used: {error}"
        ))
    };
    let pem = STANDARD.decode(authority).map_err(|error| unusable(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"it holds none"));
    }
    Ok(roots)
}

/// The one implementation of TLS that the program links.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
