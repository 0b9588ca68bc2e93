//! The endpoint's connections: TLS, one request each, so many at once, and none for long.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::handler::{Peer, Registrar};
use crate::controller::turns::Turns;

/// Most connections at once; whoever comes then waits to be accepted.
const CONNECTIONS: usize = 256;
/// Longest that one connection lives: a handshake, a request, and what the API server takes.
const LIFE: Duration = Duration::from_secs(20);
/// Longest that a request's head may take.
const HEAD: Duration = Duration::from_secs(5);
/// Delay after a connection could not be accepted, which happens when files run out.
const AGAIN: Duration = Duration::from_millis(100);

/// Serves until `stop`; connections that are open are finished.
pub async fn serve(
    listener: TcpListener,
    config: Arc<ServerConfig>,
    registrar: Registrar,
    stop: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(config);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    // Nobody takes all of them.
    let turns = Turns::default();
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            // The semaphore is never closed.
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = stop.cancelled() => break,
            next = next => next,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let Some(turn) = turns.take(&address.ip().to_canonical().to_string()) else {
            continue;
        };
        let connection = serve_one(stream, address, acceptor.clone(), registrar.clone());
        connections.spawn(async move {
            let _held = (place, turn);
            // Whoever hangs up, or dawdles, does so in silence: a port can be tried by anybody.
            if let Ok(Err(error)) = tokio::time::timeout(LIFE, connection).await {
                tracing::debug!(%address, %error, "a connection ended early");
            }
        });
    }
    while connections.join_next().await.is_some() {}
}

async fn serve_one(
    stream: TcpStream,
    address: SocketAddr,
    acceptor: TlsAcceptor,
    registrar: Registrar,
) -> anyhow::Result<()> {
    let stream = acceptor.accept(stream).await?;
    let router = registrar.router(Peer(address.ip()));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use codeworkspace_protocol::session::{GATEWAY_NAME, OPERATOR_NAME};
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::TlsConnector;

    use super::*;
    use crate::authority::Authority;
    use crate::controller::FakeApi;

    async fn dial(address: SocketAddr, authority: &Authority, name: &'static str) -> std::io::Result<String> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(name).unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let request = "POST /v1/register HTTP/1.1\r\nHost: operator\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn pods_find_the_operator_by_its_name_and_its_authority() {
        let api = FakeApi::default();
        let authority = Authority::ensure(api.client(), "release").await.unwrap();
        let other = Authority::ensure(FakeApi::default().client(), "release")
            .await
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let registrar = Registrar::new(api.client(), Arc::default());
        let server = tokio::spawn(serve(
            listener,
            authority.server_config(),
            registrar,
            stop.clone(),
        ));
        let answer = dial(address, &authority, OPERATOR_NAME).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        dial(address, &authority, GATEWAY_NAME).await.unwrap_err();
        dial(address, &other, OPERATOR_NAME).await.unwrap_err();
        stop.cancel();
        server.await.unwrap();
    }
}
