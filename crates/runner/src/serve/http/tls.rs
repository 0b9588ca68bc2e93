//! The port: only the gateway is heard.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use codeworkspace_protocol::{ServeArguments, layout, session};
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_nodelay,
};
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::trust;

/// How long a caller may take to show who it is.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Callers that may be showing it at once. Code in the pod can dial, too.
const HANDSHAKES: usize = 64;
/// A caller that is gone without a word is missed after this, and so is not listened for any more.
const KEEPALIVE: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;

/// Reads who the pod is, and removes the key: nothing that runs in the pod later finds it.
pub(in crate::serve) fn server_config(arguments: &ServeArguments) -> io::Result<ServerConfig> {
    let directory = Path::new(&arguments.identity);
    let certificate = fs_err::read(directory.join(layout::CERTIFICATE_FILE))?;
    let key_file = directory.join(layout::KEY_FILE);
    let key = fs_err::read(&key_file)?;
    fs_err::remove_file(&key_file)?;
    let provider = trust::provider();
    let roots = Arc::new(trust::roots(&arguments.authority)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .map_err(io::Error::other)?;
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(&certificate).map_err(io::Error::other)?],
            PrivateKeyDer::from_pem_slice(&key).map_err(io::Error::other)?,
        )
        .map_err(io::Error::other)
}

/// Connections whose callers are known.
pub(in crate::serve) struct Callers {
    known: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl Callers {
    /// Opens the port.
    pub(in crate::serve) async fn listen(port: u16, config: ServerConfig) -> io::Result<Self> {
        let listener = match TcpListener::bind(("::", port)).await {
            Ok(listener) => listener,
            // A node without IPv6.
            Err(_) => TcpListener::bind(("0.0.0.0", port)).await?,
        };
        let address = listener.local_addr()?;
        let gateway = ServerName::try_from(session::GATEWAY_NAME).map_err(io::Error::other)?;
        let (sender, known) = mpsc::channel(HANDSHAKES);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let room = Arc::new(Semaphore::new(HANDSHAKES));
        tokio::spawn(async move {
            while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
                let Ok((stream, address)) = listener.accept().await else {
                    // Out of descriptors, for example: trying again at once would only burn time.
                    sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let (acceptor, gateway, sender) = (acceptor.clone(), gateway.clone(), sender.clone());
                tokio::spawn(async move {
                    // The kubelet's probe and strangers end here; neither is worth a word.
                    if let Some(stream) = admit(&acceptor, stream, &gateway).await {
                        let _ = sender.send((stream, address)).await;
                    }
                    drop(permit);
                });
            }
        });
        Ok(Self { known, address })
    }

    pub(in crate::serve) fn port(&self) -> u16 {
        self.address.port()
    }
}

async fn admit(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    gateway: &ServerName<'static>,
) -> Option<TlsStream<TcpStream>> {
    detect_loss(&stream).ok()?;
    let stream = timeout(HANDSHAKE_LIMIT, acceptor.accept(stream))
        .await
        .ok()?
        .ok()?;
    let certificate = stream.get_ref().1.peer_certificates()?.first()?;
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    verify_server_name(&parsed, gateway).ok()?;
    Some(stream)
}

fn detect_loss(stream: &TcpStream) -> rustix::io::Result<()> {
    set_tcp_nodelay(stream, true)?;
    set_socket_keepalive(stream, true)?;
    set_tcp_keepidle(stream, KEEPALIVE)?;
    set_tcp_keepintvl(stream, KEEPALIVE)?;
    set_tcp_keepcnt(stream, KEEPALIVE_PROBES)
}

impl Listener for Callers {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.known.recv().await {
            Some(caller) => caller,
            // The accepting task never ends.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
