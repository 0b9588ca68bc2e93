//! Jupyter's messages as they travel (jupyter_client, "Messaging in Jupyter", wire protocol 5).
//!
//! Contents stay JSON: kernels of any language put members and media types of their own into them, and nothing of that may be lost.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;
use uuid::Uuid;
use zeromq::ZmqMessage;

const DELIMITER: &[u8] = b"<IDS|MSG>";
const PROTOCOL_VERSION: &str = "5.3";

/// Signs and reads the messages between this process and one kernel.
#[derive(Clone)]
pub(super) struct Wire {
    key: hmac::Key,
    session: String,
}

/// A message from a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// `msg_type`.
    pub(super) kind: String,
    /// `msg_id` of the request that it belongs to.
    pub(super) parent: Option<String>,
    /// The content, as JSON text.
    pub(super) content: Bytes,
}

/// Why a message is not believed.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum WireError {
    #[error("it has no delimiter")]
    NoDelimiter,
    #[error("it has {0} parts behind the delimiter; at least 5 were expected")]
    TooShort(usize),
    #[error("its signature is wrong")]
    Signature,
    #[error("its header cannot be read: {0}")]
    Header(String),
}

#[derive(Deserialize)]
struct Header {
    msg_type: String,
}

#[derive(Deserialize)]
struct ParentHeader {
    #[serde(default)]
    msg_id: Option<String>,
}

impl Wire {
    pub(super) fn new(key: &str) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()),
            session: Uuid::new_v4().to_string(),
        }
    }

    /// A new request, and its id.
    pub(super) fn request(&self, kind: &str, content: &Value) -> (String, ZmqMessage) {
        let id = Uuid::new_v4().to_string();
        let header = json!({
            "msg_id": id, "session": self.session, "username": "runner", "date": jiff::Timestamp::now().to_string(),
            "msg_type": kind, "version": PROTOCOL_VERSION,
        });
        let parts = [
            header.to_string(),
            "{}".to_owned(),
            "{}".to_owned(),
            content.to_string(),
        ]
        .map(Bytes::from);
        let mut message = ZmqMessage::from(DELIMITER.to_vec());
        message.push_back(Bytes::from(self.signature(&parts)));
        for part in parts {
            message.push_back(part);
        }
        (id, message)
    }

    /// Reads what a kernel sent.
    pub(super) fn read(&self, message: ZmqMessage) -> Result<Message, WireError> {
        let frames = message.into_vec();
        let delimiter = frames
            .iter()
            .position(|frame| frame == DELIMITER)
            .ok_or(WireError::NoDelimiter)?;
        let rest = &frames[delimiter + 1..];
        let [signature, parts @ ..] = rest else {
            return Err(WireError::TooShort(0));
        };
        let Some(signed @ [header, parent, _, content]) = parts.first_chunk::<4>() else {
            return Err(WireError::TooShort(rest.len()));
        };
        verify_slices_are_equal(self.signature(signed).as_bytes(), signature)
            .map_err(|_| WireError::Signature)?;
        let unreadable = |error: serde_json::Error| WireError::Header(error.to_string());
        let header: Header = serde_json::from_slice(header).map_err(unreadable)?;
        // A message without a parent has `{}`; some kernels write `null`.
        let parent: Option<ParentHeader> = serde_json::from_slice(parent).map_err(unreadable)?;
        Ok(Message {
            kind: header.msg_type,
            parent: parent.and_then(|parent| parent.msg_id),
            content: content.clone(),
        })
    }

    fn signature(&self, parts: &[Bytes; 4]) -> String {
        use std::fmt::Write as _;
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(part);
        }
        context
            .sign()
            .as_ref()
            .iter()
            .fold(String::new(), |mut text, byte| {
                // Writing to a string cannot fail.
                let _ = write!(text, "{byte:02x}");
                text
            })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(message: ZmqMessage) -> Vec<Bytes> {
        message.into_vec()
    }

    fn message(frames: Vec<Bytes>) -> ZmqMessage {
        ZmqMessage::try_from(frames).unwrap()
    }

    #[test]
    fn a_request_is_read_by_whoever_has_the_key() {
        let wire = Wire::new("key");
        let (_, request) = wire.request("execute_request", &json!({"code": "1"}));
        let mut routed = request.clone();
        routed.push_front(Bytes::from_static(b"identity"));
        for request in [request, routed] {
            assert_eq!(
                wire.read(request),
                Ok(Message {
                    kind: "execute_request".to_owned(),
                    parent: None,
                    content: Bytes::from_static(b"{\"code\":\"1\"}"),
                })
            );
        }
    }

    #[test]
    fn a_message_that_was_not_signed_by_the_kernel_is_not_believed() {
        let (_, request) = Wire::new("key").request("stream", &json!({}));
        assert_eq!(
            Wire::new("other").read(request.clone()),
            Err(WireError::Signature)
        );
        let mut forged = frames(request.clone());
        forged[5] = Bytes::from_static(b"{\"text\":\"x\"}");
        assert_eq!(Wire::new("key").read(message(forged)), Err(WireError::Signature));
        let short = frames(request)[..5].to_vec();
        assert_eq!(Wire::new("key").read(message(short)), Err(WireError::TooShort(4)));
    }

    proptest! {
        #[test]
        fn no_frames_make_reading_panic(frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..12), 1..8)) {
            let wire = Wire::new("key");
            let mut frames: Vec<Bytes> = frames.into_iter().map(Bytes::from).collect();
            prop_assert!(wire.read(message(frames.clone())).is_err());
            frames.insert(0, Bytes::from_static(DELIMITER));
            prop_assert!(wire.read(message(frames)).is_err());
        }
    }
}
