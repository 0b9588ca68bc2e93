//! What a call has told so far, for everybody who listens: from the beginning, and on to the end.
//!
//! A transcript is bounded: streams by [`MAX_STREAM_BYTES`] each (the whole is in a file then), rich results and the number of events
//! by limits of their own. What was left out is said at the end.

mod stream;
mod text;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(doc)]
use codeworkspace_protocol::session::MAX_STREAM_BYTES;
use codeworkspace_protocol::session::{
    ExecutionOutcome, Finished, OutputStream, SessionEvent, StreamSummary,
};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::invocations::Outcome;
use stream::Stream;
use text::{beginning, without_colours};

pub(super) use stream::Outputs;

/// Bytes of rich results of one call.
const MAX_DISPLAY_BYTES: usize = 32 * 1024 * 1024;
/// Bytes of an exception's message, and of its traceback.
const MAX_ERROR_BYTES: usize = 256 * 1024;
/// Events of one call. Text in excess is only in the stream's file.
const MAX_EVENTS: usize = 16 * 1024;
/// Bytes of text that one event takes before the next begins.
const MAX_EVENT_BYTES: usize = 64 * 1024;

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) outcome: ExecutionOutcome,
    pub(super) exit_code: Option<i32>,
    pub(super) message: Option<String>,
}

impl End {
    pub(super) fn new(outcome: ExecutionOutcome) -> Self {
        Self {
            outcome,
            exit_code: None,
            message: None,
        }
    }

    pub(super) fn exit_code(mut self, code: i32) -> Self {
        self.exit_code = Some(code);
        self
    }

    /// Adds a remark to those that there are.
    pub(super) fn remark(mut self, remark: impl Into<String>) -> Self {
        let remark = remark.into();
        self.message = Some(match self.message {
            Some(message) => format!("{message}; {remark}"),
            None => remark,
        });
        self
    }
}

pub(super) struct Transcript {
    outputs: Outputs,
    state: Mutex<State>,
    changed: watch::Sender<()>,
    listeners: watch::Sender<usize>,
}

struct State {
    events: Vec<SessionEvent>,
    stdout: Stream,
    stderr: Stream,
    display_bytes: usize,
    error_bytes: usize,
    left_out: u64,
    started: Option<Instant>,
    finished: Option<Finished>,
}

impl Transcript {
    pub(super) fn new(outputs: Outputs) -> Arc<Self> {
        Arc::new(Self {
            outputs,
            state: Mutex::new(State {
                events: Vec::new(),
                stdout: Stream::new(OutputStream::Stdout),
                stderr: Stream::new(OutputStream::Stderr),
                display_bytes: 0,
                error_bytes: 0,
                left_out: 0,
                started: None,
                finished: None,
            }),
            changed: watch::Sender::new(()),
            listeners: watch::Sender::new(0),
        })
    }

    /// The code or command begins now, after its time in the queue.
    pub(super) fn start(&self) {
        self.lock().started = Some(Instant::now());
    }

    pub(super) fn has_started(&self) -> bool {
        self.lock().started.is_some()
    }

    /// The next bytes of a stream.
    pub(super) fn output(&self, stream: OutputStream, bytes: &[u8]) {
        let mut state = self.lock();
        if state.finished.is_some() {
            return;
        }
        let text = state.stream(stream).push(bytes, &self.outputs);
        state.tell(stream, &text, &self.outputs);
        drop(state);
        self.changed.send_replace(());
    }

    /// A rich result.
    pub(super) fn display(&self, data: Map<String, Value>, result: bool) {
        let bytes: usize = data
            .iter()
            .map(|(media_type, value)| media_type.len() + json_bytes(value))
            .sum();
        let mut state = self.lock();
        if state.finished.is_some() {
            return;
        }
        if state.display_bytes + bytes > MAX_DISPLAY_BYTES || state.events.len() >= MAX_EVENTS {
            state.left_out += 1;
            return;
        }
        state.display_bytes += bytes;
        state.events.push(SessionEvent::Display { data, result });
        drop(state);
        self.changed.send_replace(());
    }

    /// There was a rich result that cannot be told.
    pub(super) fn leave_out(&self) {
        self.lock().left_out += 1;
    }

    /// An exception that the code did not catch.
    pub(super) fn error(&self, name: &str, value: &str, traceback: &[String]) {
        let mut state = self.lock();
        if state.finished.is_some() || state.error_bytes >= MAX_ERROR_BYTES {
            return;
        }
        let name = bounded(&without_colours(name));
        let value = bounded(&without_colours(value));
        // The end says most.
        let mut room = MAX_ERROR_BYTES;
        let plain: Vec<String> = traceback.iter().map(|part| without_colours(part)).collect();
        let lines: Vec<&str> = plain.iter().flat_map(|part| part.lines()).collect();
        let mut kept: Vec<String> = lines
            .iter()
            .rev()
            .map_while(|line| {
                room = room.checked_sub(line.len() + 1)?;
                Some((*line).to_owned())
            })
            .collect();
        if kept.len() < lines.len() {
            kept.push(format!("… {} earlier lines left out", lines.len() - kept.len()));
        }
        kept.reverse();
        state.error_bytes += name.len() + value.len() + (MAX_ERROR_BYTES - room);
        state.events.push(SessionEvent::Error {
            name,
            value,
            traceback: kept,
        });
        drop(state);
        self.changed.send_replace(());
    }

    /// The end; what comes later is not told. The first end counts.
    pub(super) fn finish(&self, end: End) {
        let mut state = self.lock();
        if state.finished.is_some() {
            return;
        }
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let text = state.stream(stream).finish(&self.outputs);
            state.tell(stream, &text, &self.outputs);
        }
        let mut end = end;
        if state.left_out > 0 {
            let left_out = state.left_out;
            end = end.remark(format!(
                "{left_out} rich results were left out: they are too large, too many, or no JSON"
            ));
        }
        for failure in [state.stdout.failure(), state.stderr.failure()]
            .into_iter()
            .flatten()
        {
            end = end.remark(failure);
        }
        let time = state.started.map_or(Duration::ZERO, |started| started.elapsed());
        let finished = Finished {
            outcome: end.outcome,
            exit_code: end.exit_code,
            execution_time_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
            stdout: state.stdout.summary(),
            stderr: state.stderr.summary(),
            message: end.message,
        };
        state.stdout.release();
        state.stderr.release();
        state.events.push(SessionEvent::Finished(finished.clone()));
        state.finished = Some(finished);
        drop(state);
        self.changed.send_replace(());
    }

    pub(super) fn finished(&self) -> Option<Finished> {
        self.lock().finished.clone()
    }

    /// The text of a stream that was told so far, and what there is to say of the whole stream.
    pub(super) fn text(&self, wanted: OutputStream) -> (String, StreamSummary) {
        let mut state = self.lock();
        let mut text = String::new();
        for event in &state.events {
            if let SessionEvent::Output { stream, text: part } = event
                && *stream == wanted
            {
                text.push_str(part);
            }
        }
        (text, state.stream(wanted).summary())
    }

    /// Waits until the call has ended.
    pub(super) async fn ended(&self) {
        let mut changed = self.changed.subscribe();
        while self.lock().finished.is_none() {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Begins to listen, from the first event.
    pub(super) fn listen(self: &Arc<Self>) -> Listener {
        self.listeners.send_modify(|listeners| *listeners += 1);
        Listener {
            transcript: Arc::clone(self),
            changed: self.changed.subscribe(),
            event: 0,
            offset: 0,
        }
    }

    /// Waits until nobody has listened for as long as `limit`.
    pub(super) async fn unheard(&self, limit: Duration) {
        let mut listeners = self.listeners.subscribe();
        loop {
            let somebody = *listeners.borrow_and_update() > 0;
            tokio::select! {
                () = sleep(limit), if !somebody => return,
                // The sender is `self`, so this cannot fail while it is polled.
                _ = listeners.changed() => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outcome for Arc<Transcript> {
    fn kept_bytes(&self) -> Option<usize> {
        let state = self.lock();
        state.finished.as_ref()?;
        let text: usize = state
            .events
            .iter()
            .map(|event| match event {
                SessionEvent::Output { text, .. } => text.len(),
                _ => size_of::<SessionEvent>(),
            })
            .sum();
        Some(text + state.display_bytes + state.error_bytes)
    }
}

impl State {
    fn stream(&mut self, stream: OutputStream) -> &mut Stream {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }

    /// Appends to the last event while it is of the same stream, so that many small writes do not become as many events.
    fn tell(&mut self, stream: OutputStream, text: &str, outputs: &Outputs) {
        if text.is_empty() {
            return;
        }
        if let Some(SessionEvent::Output {
            stream: last,
            text: told,
        }) = self.events.last_mut()
            && *last == stream
            && told.len() < MAX_EVENT_BYTES
        {
            told.push_str(text);
        } else if self.events.len() < MAX_EVENTS {
            self.events.push(SessionEvent::Output {
                stream,
                text: text.to_owned(),
            });
        } else {
            self.stream(stream).cut(outputs);
        }
    }
}

/// Somebody who reads a transcript while it is written.
pub(super) struct Listener {
    transcript: Arc<Transcript>,
    changed: watch::Receiver<()>,
    event: usize,
    /// Bytes of an output event that were taken already: it may still have grown since.
    offset: usize,
}

impl Listener {
    /// The next event, `None` after the last one.
    pub(super) async fn next(&mut self) -> Option<SessionEvent> {
        loop {
            match self.take() {
                News::Event(event) => return Some(event),
                News::End => return None,
                News::Nothing => self.changed.changed().await.ok()?,
            }
        }
    }

    fn take(&mut self) -> News {
        self.changed.mark_unchanged();
        let state = self.transcript.lock();
        loop {
            let Some(event) = state.events.get(self.event) else {
                return if state.finished.is_some() {
                    News::End
                } else {
                    News::Nothing
                };
            };
            let SessionEvent::Output { stream, text } = event else {
                self.event += 1;
                return News::Event(event.clone());
            };
            if self.offset < text.len() {
                let text = text[self.offset..].to_owned();
                self.offset += text.len();
                return News::Event(SessionEvent::Output {
                    stream: *stream,
                    text,
                });
            }
            if self.event + 1 == state.events.len() {
                return News::Nothing;
            }
            self.event += 1;
            self.offset = 0;
        }
    }
}

/// What a listener has not heard yet.
enum News {
    Event(SessionEvent),
    Nothing,
    End,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.transcript.listeners.send_modify(|listeners| *listeners -= 1);
    }
}

fn json_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        other => {
            let mut counter = Counter(0);
            // Counting cannot fail.
            let _ = write!(counter, "{other}");
            counter.0
        }
    }
}

struct Counter(usize);

impl std::fmt::Write for Counter {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

fn bounded(text: &str) -> String {
    let kept = beginning(text, MAX_ERROR_BYTES);
    if kept.len() < text.len() {
        format!("{kept}…")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests;
