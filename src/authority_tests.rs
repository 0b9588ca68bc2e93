use codeworkspace_source::ManualClock;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use super::*;
use crate::controller::FakeApi;

const PATH: &str = "/api/v1/namespaces/release/secrets/codeworkspace-internal-ca";

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()))
}

async fn ensure(api: &FakeApi, clock: &Arc<ManualClock>) -> anyhow::Result<Authority> {
    Authority::ensure_at(api.client(), "release", clock.clone()).await
}

fn verifier(authority: &Authority) -> Arc<dyn ClientCertVerifier> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
        .build()
        .unwrap()
}

fn unix(clock: &ManualClock) -> UnixTime {
    UnixTime::since_unix_epoch(since_epoch(clock.now()))
}

#[tokio::test]
async fn every_process_of_a_release_has_the_same_authority() {
    let (api, clock) = (FakeApi::default(), clock());
    let first = ensure(&api, &clock).await.unwrap();
    let second = ensure(&api, &clock).await.unwrap();
    assert_eq!(first.pem(), second.pem());
    assert_eq!(
        api.take_writes(),
        ["POST /api/v1/namespaces/release/secrets".to_owned()]
    );
    // What one of them issued, whoever knows the other's root believes.
    let issued = first.client_identity().current();
    verifier(&second)
        .verify_client_cert(&issued.cert[0], &[], unix(&clock))
        .unwrap();
}

#[tokio::test]
async fn the_gateway_is_named_in_its_certificate_which_is_good_for_no_server() {
    let (api, clock) = (FakeApi::default(), clock());
    let authority = ensure(&api, &clock).await.unwrap();
    let issued = authority.client_identity().current();
    let named = rustls::server::ParsedCertificate::try_from(&issued.cert[0]).unwrap();
    let name = |name: &'static str| ServerName::try_from(name).unwrap();
    rustls::client::verify_server_name(&named, &name(GATEWAY_NAME)).unwrap();
    rustls::client::verify_server_name(&named, &name(OPERATOR_NAME)).unwrap_err();
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let servers = WebPkiServerVerifier::builder_with_provider(roots.into(), provider)
        .build()
        .unwrap();
    servers
        .verify_server_cert(&issued.cert[0], &[], &name(GATEWAY_NAME), &[], unix(&clock))
        .unwrap_err();
}

#[tokio::test]
async fn certificates_are_renewed_long_before_they_end_and_are_not_before() {
    let (api, clock) = (FakeApi::default(), clock());
    let authority = ensure(&api, &clock).await.unwrap();
    let identity = authority.client_identity();
    let first = identity.current();
    clock.advance(std::time::Duration::from_hours(7));
    assert!(Arc::ptr_eq(&first, &identity.current()));
    clock.advance(std::time::Duration::from_hours(1));
    let second = identity.current();
    assert!(!Arc::ptr_eq(&first, &second));
    clock.advance(std::time::Duration::from_hours(17));
    let believed = |identity: &CertifiedKey| {
        let verified = verifier(&authority).verify_client_cert(&identity.cert[0], &[], unix(&clock));
        verified.is_ok()
    };
    assert!(!believed(&first));
    assert!(believed(&second));
    assert!(believed(&identity.current()));
}

#[tokio::test]
async fn nobody_believes_what_another_releases_authority_signed() {
    let clock = clock();
    let ours = ensure(&FakeApi::default(), &clock).await.unwrap();
    let theirs = ensure(&FakeApi::default(), &clock).await.unwrap();
    verifier(&ours)
        .verify_client_cert(&theirs.client_identity().current().cert[0], &[], unix(&clock))
        .unwrap_err();
}

#[tokio::test]
async fn a_secret_that_holds_no_authority_is_an_error_that_says_what_to_do() {
    let (api, clock) = (FakeApi::default(), clock());
    ensure(&api, &clock).await.unwrap();
    let good = api.get(PATH).unwrap();
    let other = serde_json::to_value(fresh(clock.now()).unwrap()).unwrap();
    let replaced = |part: &str, by: serde_json::Value| {
        let mut secret = good.clone();
        let data = secret["data"].as_object_mut().unwrap();
        data.remove(part);
        data.extend((!by.is_null()).then(|| (part.to_owned(), by)));
        secret
    };
    for (secret, expected) in [
        (replaced(KEY, serde_json::Value::Null), "there is no tls.key"),
        (
            replaced(KEY, good["data"][CERTIFICATE].clone()),
            "tls.key holds no private key in PKCS #8",
        ),
        (
            replaced(CERTIFICATE, good["data"][KEY].clone()),
            "tls.crt holds no certificate",
        ),
        (
            replaced(KEY, other["data"][KEY].clone()),
            "tls.crt and tls.key do not belong together",
        ),
    ] {
        api.put(PATH, secret);
        let error = format!("{:#}", ensure(&api, &clock).await.unwrap_err());
        assert!(error.contains(expected), "{error}");
        assert!(
            error.contains("Secret release/codeworkspace-internal-ca"),
            "{error}"
        );
    }
}
