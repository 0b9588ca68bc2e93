use rustls::server::ParsedCertificate;
use rustls_pki_types::CertificateDer;

use super::*;

fn certificate() -> (CertificateDer<'static>, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["session.codeworkspace.internal".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let certificate = certificate.der().clone();
    let parsed = ParsedCertificate::try_from(&certificate).unwrap();
    let digest = Digest::of(&parsed.subject_public_key_info());
    (certificate, digest.to_string())
}

fn verify(pin: &str, certificate: &CertificateDer<'_>) -> Result<ServerCertVerified, Error> {
    Pinned::new(pin).unwrap().verify_server_cert(
        certificate,
        &[],
        &ServerName::try_from("session.codeworkspace.internal").unwrap(),
        &[],
        UnixTime::now(),
    )
}

#[test]
fn only_the_registered_key_is_talked_to() {
    let (own, pin) = certificate();
    let (other, _) = certificate();
    assert!(verify(&pin, &own).is_ok());
    assert_eq!(
        verify(&pin, &other).unwrap_err(),
        Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
    );
    assert_eq!(
        verify(&pin, &CertificateDer::from(b"no certificate".to_vec())).unwrap_err(),
        Error::InvalidCertificate(CertificateError::BadEncoding)
    );
}

#[test]
fn what_is_no_digest_is_no_pin() {
    for text in [
        "",
        "sha256:",
        "sha256:zz",
        "md5:00",
        &format!("sha256:{}", "é".repeat(32)),
    ] {
        assert!(Pinned::new(text).is_err(), "{text}");
    }
}
