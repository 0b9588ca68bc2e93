//! Starting a kernel, and waiting until it answers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codeworkspace_protocol::StreamTail;
use rustix::process::Signal;
use serde_json::json;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;
use zeromq::{DealerSocket, Socket as _, SubSocket, ZmqError};

use super::Kernel;
use super::iopub::Iopub;
use super::spec::KernelSpec;
use super::wire::Wire;
use crate::processes::Ending;
use crate::program::{SpawnError, spawn};
use crate::serve::children::{Child, Children, Group};
use crate::serve::pipes::read_by_thread;
use crate::serve::private::PrivateFolder;

/// How long a kernel may take to answer; a cold node reads its files slowly.
const START_LIMIT: Duration = Duration::from_mins(2);
/// How often a kernel that dies before it answers is started: another process may have taken one of its ports meanwhile.
const ATTEMPTS: usize = 3;
const POLL: Duration = Duration::from_millis(10);
/// Ports below those that Linux gives to outgoing connections (`ip_local_port_range`), so that nobody gets one by chance.
const FIRST_PORT: u16 = 12_000;
const PORTS: u16 = 20_000;
const CHANNELS: usize = 5;

/// Why there is no kernel.
#[derive(Debug, Error)]
pub(in crate::serve) enum LaunchError {
    #[error("the kernel `{name}` cannot be started: {error}")]
    Io { name: String, error: io::Error },
    #[error("the kernel `{name}`: {error}")]
    Spawn { name: String, error: SpawnError },
    #[error("the kernel `{name}` died before it was ready ({ending}); its last words: {last_words}")]
    Died {
        name: String,
        ending: Ending,
        last_words: String,
    },
    #[error("the kernel `{name}` did not answer within {} s; its last words: {last_words}", START_LIMIT.as_secs())]
    Silent { name: String, last_words: String },
    #[error("the kernel `{name}` cannot be talked to: {error}")]
    Channel { name: String, error: ZmqError },
}

/// Everything that a kernel is started from.
pub(in crate::serve) struct Launcher {
    pub(super) name: String,
    pub(super) spec: KernelSpec,
    pub(super) folder: PrivateFolder,
    pub(super) root: String,
    pub(super) environment: BTreeMap<OsString, OsString>,
    pub(super) children: Children,
}

/// A kernel that has not answered yet; nobody would end it if it were not waited for any more.
struct Unready(Option<Child>);

impl Drop for Unready {
    fn drop(&mut self) {
        if let Some(child) = &self.0 {
            child.signal(Signal::KILL);
        }
    }
}

/// What a kernel said outside of Jupyter's channels.
#[derive(Clone, Default)]
struct LastWords(Arc<Mutex<StreamTail>>);

impl LastWords {
    fn add(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }

    fn text(&self) -> String {
        let tail = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .to_record()
            .tail;
        match tail.trim() {
            "" => "none".to_owned(),
            words => words.to_owned(),
        }
    }
}

impl Launcher {
    /// A kernel that has answered.
    pub(super) async fn start(&self) -> Result<Kernel, LaunchError> {
        let mut attempt = 1;
        loop {
            match self.attempt().await {
                Err(LaunchError::Died { .. }) if attempt < ATTEMPTS => attempt += 1,
                answer => return answer,
            }
        }
    }

    async fn attempt(&self) -> Result<Kernel, LaunchError> {
        let failed = |error| LaunchError::Io {
            name: self.name.clone(),
            error,
        };
        let (ports, reserved) = reserve_ports().map_err(failed)?;
        let key = Uuid::new_v4().to_string();
        let connection = self.connection(&key, &ports);
        let connection_file = self.folder.file("json", connection.as_bytes()).map_err(failed)?;
        let last_words = LastWords::default();
        let child = self.spawn(connection_file.path(), &last_words, reserved)?;
        let mut unready = Unready(Some(child.clone()));
        let ready = Self::connect(ports, &key, child.clone());
        let answer = tokio::select! {
            ready = timeout_at(Instant::now() + START_LIMIT, ready) => match ready {
                Ok(ready) => ready.map_err(|error| LaunchError::Channel { name: self.name.clone(), error }),
                Err(_) => Err(LaunchError::Silent { name: self.name.clone(), last_words: last_words.text() }),
            },
            ending = child.ended() => {
                Err(LaunchError::Died { name: self.name.clone(), ending, last_words: last_words.text() })
            }
        };
        if answer.is_ok() {
            unready.0 = None;
        }
        answer
    }

    /// What a connection file says (jupyter_client, "Connection files").
    fn connection(&self, key: &str, ports: &[u16; CHANNELS]) -> String {
        let [shell_port, iopub_port, stdin_port, control_port, hb_port] = ports;
        let connection = json!({
            "transport": "tcp", "ip": Ipv4Addr::LOCALHOST, "shell_port": shell_port, "iopub_port": iopub_port,
            "stdin_port": stdin_port, "control_port": control_port, "hb_port": hb_port, "key": key,
            "signature_scheme": "hmac-sha256", "kernel_name": self.name,
        });
        connection.to_string()
    }

    fn spawn(
        &self,
        connection_file: &Path,
        last_words: &LastWords,
        reserved: Vec<TcpListener>,
    ) -> Result<Child, LaunchError> {
        let failed = |error| LaunchError::Io {
            name: self.name.clone(),
            error,
        };
        let mut ends = Vec::new();
        for _ in 0..2 {
            let last_words = last_words.clone();
            ends.push(
                read_by_thread(move |bytes| last_words.add(bytes))
                    .map_err(failed)?
                    .0,
            );
        }
        let (Some(stdout), Some(stderr)) = (ends.pop(), ends.pop()) else {
            return Err(failed(io::ErrorKind::Other.into()));
        };
        let command = self.spec.command(connection_file);
        drop(reserved);
        self.children
            .start(Group::EndsWithChild, || {
                spawn(&command, &self.root, &self.environment, stdout, stderr)
            })
            .map_err(|error| LaunchError::Spawn {
                name: self.name.clone(),
                error,
            })
    }

    async fn connect(ports: [u16; CHANNELS], key: &str, process: Child) -> Result<Kernel, ZmqError> {
        let [shell_port, iopub_port, _, control_port, _] = ports;
        for port in [shell_port, iopub_port, control_port] {
            while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
                sleep(POLL).await;
            }
        }
        let endpoint = |port: u16| format!("tcp://{}:{port}", Ipv4Addr::LOCALHOST);
        let mut iopub = SubSocket::new();
        iopub.connect(&endpoint(iopub_port)).await?;
        iopub.subscribe("").await?;
        let mut shell = DealerSocket::new();
        shell.connect(&endpoint(shell_port)).await?;
        let mut control = DealerSocket::new();
        control.connect(&endpoint(control_port)).await?;
        let wire = Wire::new(key);
        let mut kernel = Kernel {
            process,
            iopub: Iopub::listen(iopub, wire.clone()),
            wire,
            shell,
            control,
            fresh: true,
        };
        kernel.greet().await?;
        Ok(kernel)
    }
}

/// Free ports, and the listeners that keep them until the kernel is about to take them.
fn reserve_ports() -> io::Result<([u16; CHANNELS], Vec<TcpListener>)> {
    let mut ports = [0; CHANNELS];
    let mut listeners = Vec::new();
    // Each number has its own beginning, so that kernels which start at once do not want the same ports.
    let (_, start, _, _) = Uuid::new_v4().as_fields();
    let candidates = (0..PORTS).map(|step| FIRST_PORT + (start % PORTS + step) % PORTS);
    for port in candidates {
        if listeners.len() == CHANNELS {
            break;
        }
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            ports[listeners.len()] = port;
            listeners.push(listener);
        }
    }
    if listeners.len() < CHANNELS {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "no free ports"));
    }
    Ok((ports, listeners))
}
