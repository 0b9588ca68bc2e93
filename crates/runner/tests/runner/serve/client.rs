//! A gateway, as small as it can be.

use std::collections::BTreeMap;
use std::sync::Arc;

use codeworkspace_protocol::session::{
    CommandRequest, ErrorCode, ExecuteRequest, Finished, OutputStream, SESSION_NAME, SessionError,
    SessionEvent, path,
};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::pod::{Identity, PYTHON};

pub type Answer<T> = Result<T, SessionError>;

/// Dials anew for each call.
#[derive(Clone)]
pub struct Client {
    port: u16,
    config: Arc<ClientConfig>,
}

/// An answer with events, while it comes.
pub struct Events {
    body: Incoming,
    rest: Vec<u8>,
}

/// All that one execution told.
#[derive(Debug)]
pub struct Told {
    pub events: Vec<SessionEvent>,
    pub finished: Finished,
}

impl Client {
    pub fn new(port: u16, server: &str, own: &Identity) -> Self {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(server.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap(),
            )
            .unwrap();
        Self {
            port,
            config: Arc::new(config),
        }
    }

    /// Sends a request whose answer may come in pieces.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))
            .await
            .map_err(|error| error.to_string())?;
        let name = ServerName::try_from(SESSION_NAME).unwrap();
        let stream = TlsConnector::from(Arc::clone(&self.config))
            .connect(name, stream)
            .await
            .map_err(|error| error.to_string())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        sender
            .send_request(request)
            .await
            .map_err(|error| error.to_string())
    }

    pub async fn call(&self, method: Method, uri: &str, body: impl Into<Bytes>) -> Answer<Bytes> {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("host", SESSION_NAME)
            .body(Full::new(body.into()))
            .unwrap();
        let response = self.send(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        let error: SessionError =
            serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{status}: {body:?}"));
        assert_eq!(error.code.status(), status.as_u16());
        Err(error)
    }

    pub async fn post<T: DeserializeOwned>(&self, uri: &str, request: &impl Serialize) -> Answer<T> {
        let body = self
            .call(Method::POST, uri, serde_json::to_vec(request).unwrap())
            .await?;
        Ok(serde_json::from_slice(&body).unwrap())
    }

    /// For verbs whose answer says nothing.
    pub async fn tell(&self, uri: &str, request: &impl Serialize) -> Answer<()> {
        let body = self
            .call(Method::POST, uri, serde_json::to_vec(request).unwrap())
            .await?;
        assert_eq!(body, Bytes::new());
        Ok(())
    }

    pub async fn get<T: DeserializeOwned>(&self, uri: &str) -> Answer<T> {
        let body = self.call(Method::GET, uri, Bytes::new()).await?;
        Ok(serde_json::from_slice(&body).unwrap())
    }

    /// Begins a call that is answered with events.
    pub async fn begin(&self, uri: &str, request: &impl Serialize) -> Answer<Events> {
        let request = Request::post(uri)
            .header("host", SESSION_NAME)
            .body(Full::new(Bytes::from(serde_json::to_vec(request).unwrap())))
            .unwrap();
        let response = self.send(request).await.unwrap();
        if response.status().is_success() {
            return Ok(Events {
                body: response.into_body(),
                rest: Vec::new(),
            });
        }
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Err(serde_json::from_slice(&body).unwrap())
    }

    pub async fn events(&self, uri: &str, request: &impl Serialize) -> Answer<Told> {
        Ok(self.begin(uri, request).await?.all().await)
    }

    /// Runs a command.
    pub async fn command(&self, text: &str) -> Told {
        self.events(path::COMMAND, &command(text)).await.unwrap()
    }

    /// Runs code in the tests' kernel.
    pub async fn python(&self, code: &str) -> Told {
        self.events(path::EXECUTE, &python(code)).await.unwrap()
    }
}

pub fn command(text: &str) -> CommandRequest {
    CommandRequest {
        invocation: None,
        command: text.to_owned(),
        timeout_ms: None,
        environment: BTreeMap::new(),
    }
}

pub fn python(code: &str) -> ExecuteRequest {
    ExecuteRequest {
        invocation: None,
        kernel: PYTHON.to_owned(),
        code: code.to_owned(),
        clear_context: false,
        timeout_ms: None,
        environment: BTreeMap::new(),
    }
}

impl Events {
    /// The next event; `None` at the end, whether it came as it should or not.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.ok()?;
            self.rest.extend_from_slice(frame.data_ref()?);
        }
    }

    pub async fn all(mut self) -> Told {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        match events.pop() {
            Some(SessionEvent::Finished(finished)) => Told { events, finished },
            last => panic!("the last event is {last:?} after {events:?}"),
        }
    }
}

impl Told {
    pub fn stdout(&self) -> String {
        self.text(OutputStream::Stdout)
    }

    pub fn stderr(&self) -> String {
        self.text(OutputStream::Stderr)
    }

    fn text(&self, wanted: OutputStream) -> String {
        self.events
            .iter()
            .filter_map(|event| match event {
                SessionEvent::Output { stream, text } if *stream == wanted => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    pub fn message(&self) -> &str {
        self.finished.message.as_deref().unwrap_or_default()
    }
}

/// The code of an answer that was expected to be a refusal.
pub fn code<T: std::fmt::Debug>(answer: Answer<T>) -> ErrorCode {
    answer.unwrap_err().code
}
