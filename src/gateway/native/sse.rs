//! What an execution tells, as server-sent events (HTML, 9.2).

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use codeworkspace_protocol::session::SessionEvent;
use futures::{Stream, stream};
use http::{HeaderName, HeaderValue};
use serde::Serialize;

use super::problem::Problem;
use crate::gateway::events::Events;
use crate::gateway::runner::RunnerError;

/// Pause after which a comment is sent. Proxies and load balancers often give up after a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The answer that streams events to their end. `explain` says what it means that they broke off.
pub fn response<F, R>(events: Events, explain: F) -> Response
where
    F: FnOnce(RunnerError) -> R + Send + 'static,
    R: Future<Output = Problem> + Send + 'static,
{
    let mut response = Sse::new(encoded(events, explain))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive"))
        .into_response();
    // For nginx, which would otherwise collect the answer.
    response.headers_mut().insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

fn encoded<F, R>(events: Events, explain: F) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static
where
    F: FnOnce(RunnerError) -> R + Send + 'static,
    R: Future<Output = Problem> + Send + 'static,
{
    stream::unfold(Some((events, explain, 1_u64)), |state| async move {
        let (mut events, explain, number) = state?;
        match events.next().await {
            Ok(Some(event)) => Some((
                Ok(encode(kind(&event), number, &event)),
                Some((events, explain, number + 1)),
            )),
            Ok(None) => None,
            Err(error) => {
                let problem = explain(error.into()).await;
                Some((Ok(encode("problem", number, &problem.body())), None))
            }
        }
    })
}

fn kind(event: &SessionEvent) -> &'static str {
    match event {
        SessionEvent::Output { .. } => "output",
        SessionEvent::Display { .. } => "display",
        SessionEvent::Error { .. } => "error",
        SessionEvent::Finished(_) => "finished",
    }
}

fn encode(kind: &str, number: u64, data: &impl Serialize) -> Event {
    // JSON has no line breaks outside of strings, and in strings it escapes them. Our types can always be written.
    let data = serde_json::to_string(data).unwrap_or_default();
    Event::default().event(kind).id(number.to_string()).data(data)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use codeworkspace_protocol::session::{ExecutionOutcome, Finished, OutputStream, StreamSummary};
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::gateway::events::EventsError;

    fn finished() -> SessionEvent {
        SessionEvent::Finished(Finished {
            outcome: ExecutionOutcome::Completed,
            exit_code: Some(0),
            execution_time_ms: 1,
            stdout: StreamSummary::default(),
            stderr: StreamSummary::default(),
            message: None,
        })
    }

    async fn sent(told: &[SessionEvent], breaks: bool) -> String {
        let mut lines: Vec<_> = told
            .iter()
            .map(|event| {
                let mut line = serde_json::to_vec(event).unwrap();
                line.push(b'\n');
                Ok(Bytes::from(line))
            })
            .collect();
        if breaks {
            lines.push(Err(EventsError::Broken("reset".to_owned())));
        }
        let events = Events::new(stream::iter(lines));
        let response = response(events, async |error: RunnerError| {
            Problem::invalid(error.to_string())
        });
        let body = axum::body::to_bytes(response.into_body(), usize::MAX)
            .await
            .unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    /// Reads events as HTML's parser does, for a stream without comments and byte order mark.
    fn read(stream: &str) -> Vec<(String, String, Value)> {
        let field = |event: &str, name: &str| {
            let lines = event
                .lines()
                .filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            lines.collect::<Vec<_>>().join("\n")
        };
        stream
            .split_terminator("\n\n")
            .map(|event| {
                let data = serde_json::from_str(&field(event, "data")).unwrap();
                (field(event, "id"), field(event, "event"), data)
            })
            .collect()
    }

    #[tokio::test]
    async fn events_are_numbered_and_the_last_is_the_end() {
        let output = SessionEvent::Output {
            stream: OutputStream::Stdout,
            text: "a\n".to_owned(),
        };
        assert_eq!(
            sent(&[output, finished()], false).await,
            "event: output\nid: 1\ndata: {\"type\":\"output\",\"stream\":\"stdout\",\"text\":\"a\\n\"}\n\n\
             event: finished\nid: 2\ndata: {\"type\":\"finished\",\"outcome\":\"completed\",\"exitCode\":0,\
             \"executionTimeMs\":1,\"stdout\":{\"totalBytes\":0},\"stderr\":{\"totalBytes\":0}}\n\n"
        );
    }

    #[tokio::test]
    async fn a_stream_that_breaks_ends_with_a_problem_and_never_looks_whole() {
        let output = SessionEvent::Output {
            stream: OutputStream::Stderr,
            text: "a".to_owned(),
        };
        let events = read(&sent(&[output], true).await);
        let kinds: Vec<_> = events.iter().map(|(_, kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["output", "problem"]);
        assert_eq!(events[1].2["code"], "InvalidRequest");
    }

    proptest! {
        #[test]
        fn whatever_code_prints_arrives_as_it_was(texts in prop::collection::vec(any::<String>(), 0..8)) {
            let mut told: Vec<_> = texts
                .into_iter()
                .map(|text| SessionEvent::Output { stream: OutputStream::Stdout, text })
                .collect();
            told.push(finished());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let read = read(&runtime.block_on(sent(&told, false)));
            let numbers: Vec<_> = read.iter().map(|(id, ..)| id.parse::<usize>().unwrap()).collect();
            prop_assert_eq!(numbers, (1..=told.len()).collect::<Vec<_>>());
            let received: Vec<SessionEvent> =
                read.into_iter().map(|(.., data)| serde_json::from_value(data).unwrap()).collect();
            prop_assert_eq!(received, told);
        }
    }
}
