//! What a kernel publishes.
//!
//! It is read all the time, by a task of its own: a kernel whose messages nobody takes drops them, output and the end of executions
//! alike.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codeworkspace_protocol::session::OutputStream;
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use zeromq::{SocketRecv as _, SubSocket};

use super::wire::{Message, Wire};
use crate::serve::transcript::Transcript;

/// A connection that fails at once again must not keep the processor busy.
pub(super) const AFTER_FAULT: Duration = Duration::from_millis(10);

/// The listening task of one kernel's process.
pub(super) struct Iopub {
    current: Arc<Mutex<Current>>,
    progress: watch::Receiver<()>,
    task: JoinHandle<()>,
}

/// The request whose messages are wanted, and what it came to. Messages of others are late or unasked for and belong to nobody.
#[derive(Default)]
struct Current {
    request: String,
    /// A later request of which only the beginning is of interest.
    probe: String,
    sink: Option<Arc<Transcript>>,
    heard: Heard,
}

/// What was heard of the current request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// The kernel said that it is done.
    pub(super) idle: bool,
    /// An exception was published.
    pub(super) error: bool,
    /// Something of the probe was published, before which everything of the request was.
    pub(super) probe: bool,
}

impl Iopub {
    pub(super) fn listen(mut socket: SubSocket, wire: Wire) -> Self {
        let current = Arc::new(Mutex::new(Current::default()));
        let (sender, progress) = watch::channel(());
        let listening = Arc::clone(&current);
        let task = tokio::spawn(async move {
            // An error is one message's, or the end of the connection, which the end of the process tells as well.
            loop {
                let Ok(message) = socket.recv().await else {
                    sleep(AFTER_FAULT).await;
                    continue;
                };
                if let Ok(message) = wire.read(message) {
                    lock(&listening).take(&message);
                    sender.send_replace(());
                }
            }
        });
        Self {
            current,
            progress,
            task,
        }
    }

    /// From now on the messages of `request` are wanted, and told to `sink`.
    pub(super) fn expect(&self, request: &str, sink: Option<&Arc<Transcript>>) {
        *lock(&self.current) = Current {
            request: request.to_owned(),
            probe: String::new(),
            sink: sink.map(Arc::clone),
            heard: Heard::default(),
        };
    }

    /// Messages of `request` are only of interest as a sign of what came before them.
    pub(super) fn probe(&self, request: &str) {
        request.clone_into(&mut lock(&self.current).probe);
    }

    pub(super) fn heard(&self) -> Heard {
        lock(&self.current).heard
    }

    /// Waits for the next message of any request.
    pub(super) async fn progress(&mut self) {
        if self.progress.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Iopub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(current: &Mutex<Current>) -> MutexGuard<'_, Current> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Deserialize)]
struct Stream {
    name: Text,
    text: Text,
}

#[derive(Deserialize)]
struct Display {
    data: Map<String, Value>,
}

/// An exception, as it stands in messages and replies.
#[derive(Debug, Deserialize)]
pub(super) struct Exception {
    #[serde(default)]
    ename: Text,
    #[serde(default)]
    evalue: Text,
    #[serde(default)]
    traceback: Vec<Text>,
}

impl Exception {
    pub(super) fn tell(&self, sink: &Transcript) {
        let traceback: Vec<String> = self
            .traceback
            .iter()
            .map(|part| part.lossy().into_owned())
            .collect();
        sink.error(&self.ename.lossy(), &self.evalue.lossy(), &traceback);
    }
}

#[derive(Deserialize)]
struct Status {
    execution_state: String,
}

impl Current {
    fn take(&mut self, message: &Message) {
        match message.parent.as_deref() {
            Some(parent) if parent == self.request => {}
            Some(parent) => {
                self.heard.probe |= parent == self.probe;
                return;
            }
            None => return,
        }
        if message.kind == "status" {
            self.heard.idle |= read::<Status>(message).is_some_and(|status| status.execution_state == "idle");
            return;
        }
        self.heard.error |= message.kind == "error";
        let Some(sink) = &self.sink else {
            return;
        };
        match message.kind.as_str() {
            "stream" => {
                if let Some(stream) = read::<Stream>(message) {
                    let which = match stream.name.0.as_slice() {
                        b"stderr" => OutputStream::Stderr,
                        _ => OutputStream::Stdout,
                    };
                    sink.output(which, &stream.text.0);
                }
            }
            "display_data" | "update_display_data" | "execute_result" => match read::<Display>(message) {
                Some(display) => sink.display(display.data, message.kind == "execute_result"),
                None => sink.leave_out(),
            },
            "error" => {
                if let Some(exception) = read::<Exception>(message) {
                    exception.tell(sink);
                }
            }
            _ => {}
        }
    }
}

fn read<T: DeserializeOwned>(message: &Message) -> Option<T> {
    serde_json::from_slice(&message.content).ok().or_else(|| {
        // ipykernel writes bytes that are no UTF-8 as they are.
        serde_json::from_str(&String::from_utf8_lossy(&message.content)).ok()
    })
}

/// The bytes of a JSON string, which kernels fill with more than Unicode: bytes that are no UTF-8, and lone surrogates.
#[derive(Debug, Default, PartialEq, Eq)]
struct Text(Vec<u8>);

impl Text {
    fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Text;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text, E> {
                Ok(Text(bytes.to_vec()))
            }

            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Text, E> {
                Ok(Text(bytes))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.as_bytes().to_vec()))
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn message(content: &'static [u8]) -> Message {
        Message {
            kind: "stream".to_owned(),
            parent: None,
            content: Bytes::from_static(content),
        }
    }

    #[test]
    fn strings_that_are_no_unicode_keep_their_bytes() {
        for (content, bytes) in [
            (
                &b"{\"name\":\"stdout\",\"text\":\"a\xff\\n\"}"[..],
                &b"a\xff\n"[..],
            ),
            (b"{\"name\":\"stdout\",\"text\":\"\\ud800!\"}", b"\xed\xa0\x80!"),
            (b"{\"name\":\"stdout\",\"text\":\"\\u00e9\"}", "é".as_bytes()),
        ] {
            let stream: Stream = read(&message(content)).unwrap();
            assert_eq!(stream.text.0, bytes);
        }
        let display: Display = read(&message(b"{\"data\":{\"text/plain\":\"\xff\"}}")).unwrap();
        assert_eq!(display.data["text/plain"], "\u{fffd}");
        assert!(read::<Display>(&message(b"{\"data\":[]}")).is_none());
    }
}
