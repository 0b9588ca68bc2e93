//! The call with which a pod makes itself known.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codeworkspace_protocol::RegisterArguments;
use codeworkspace_protocol::session::{OPERATOR_NAME, RegisterRequest, path};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use crate::trust;

/// How long an operator that is away, or busy, is tried. Whoever made the pod gives up on it later than that.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Pauses between attempts grow from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// Bytes of an answer that are looked at; it only serves the message.
const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// Why the operator does not know the pod.
#[derive(Debug, Error)]
pub(super) enum RegistrationError {
    #[error("the operator at {operator} refused the pod ({status}): {answer}")]
    Refused {
        operator: String,
        status: StatusCode,
        answer: String,
    },
    #[error("the operator at {operator} could not be told about the pod within {} s: {last}", PATIENCE.as_secs())]
    OutOfTime { operator: String, last: String },
}

/// What one attempt came to.
enum Attempt {
    Registered,
    Refused(StatusCode, String),
    /// The same call may succeed later.
    Failed(String),
}

/// Somebody who can register one pod.
pub(super) struct Client {
    operator: String,
    token_file: String,
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Client {
    pub(super) fn new(arguments: &RegisterArguments) -> io::Result<Self> {
        let config = ClientConfig::builder_with_provider(trust::provider())
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(trust::roots(&arguments.authority)?)
            .with_no_client_auth();
        Ok(Self {
            operator: arguments.operator.clone(),
            token_file: arguments.token.clone(),
            connector: TlsConnector::from(Arc::new(config)),
            name: ServerName::try_from(OPERATOR_NAME).map_err(io::Error::other)?,
        })
    }

    /// Tells the operator the digest of the pod's key, again and again while it cannot be reached or fails.
    pub(super) async fn register(&self, key_digest: String) -> Result<(), RegistrationError> {
        let request = RegisterRequest { key_digest };
        let deadline = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            let attempt = match timeout(ATTEMPT, self.attempt(&request)).await {
                Ok(Ok(attempt)) => attempt,
                Ok(Err(error)) => Attempt::Failed(error.to_string()),
                Err(_) => Attempt::Failed(format!("no answer within {} s", ATTEMPT.as_secs())),
            };
            let last = match attempt {
                Attempt::Registered => return Ok(()),
                Attempt::Refused(status, answer) => {
                    return Err(RegistrationError::Refused {
                        operator: self.operator.clone(),
                        status,
                        answer,
                    });
                }
                Attempt::Failed(last) => last,
            };
            eprintln!(
                "runner: the operator at {} does not know the pod yet: {last}",
                self.operator
            );
            if timeout_at(deadline, sleep(pause)).await.is_err() {
                return Err(RegistrationError::OutOfTime {
                    operator: self.operator.clone(),
                    last,
                });
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    async fn attempt(&self, request: &RegisterRequest) -> io::Result<Attempt> {
        // Read each time: the kubelet replaces the token before it expires.
        let token = fs_err::read_to_string(&self.token_file)?;
        let body = serde_json::to_vec(request).map_err(io::Error::other)?;
        let request = Request::post(path::REGISTER)
            .header(header::HOST, OPERATOR_NAME)
            .header(header::AUTHORIZATION, format!("Bearer {}", token.trim()))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(io::Error::other)?;
        let stream = TcpStream::connect(&self.operator).await?;
        let stream = self.connector.connect(self.name.clone(), stream).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        // The connection ends by itself once the sender and the answer are gone.
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status();
        if status.is_success() {
            return Ok(Attempt::Registered);
        }
        let answer = match Limited::new(response.into_body(), MAX_ANSWER_BYTES)
            .collect()
            .await
        {
            Ok(answer) => String::from_utf8_lossy(&answer.to_bytes()).into_owned(),
            Err(error) => format!("the answer cannot be read: {error}"),
        };
        if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS {
            return Ok(Attempt::Refused(status, answer));
        }
        Ok(Attempt::Failed(format!("{status}: {answer}")))
    }
}
