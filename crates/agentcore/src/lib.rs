//! The wire of AWS Bedrock AgentCore's code interpreter, as a server sees it: routes, signatures, request and response shapes,
//! tools, results and the event stream. Data plane (`bedrock-agentcore`) and control plane (`bedrock-agentcore-control`).
//!
//! Names, patterns, lengths and statuses are those of the service models that the AWS SDKs are generated from. Pure: who calls
//! this crate owns the sockets, the clock and the keys.
//!
//! A request passes through in this order:
//! 1. [`route::route`] finds the operation and its interpreter in the path.
//! 2. [`signature::parse`] reads everything of the signature that stands in the head of the request, and names the access key.
//! 3. The caller looks the key up, reads the body and hashes it; [`signature::SignedRequest::verify`] has the last word.
//! 4. [`shapes`] and [`tools::parse`] make types of the query, the headers and the body.
//! 5. The response is JSON of a type of [`shapes`], or the events of a [`result::ToolResult`] in frames of [`event_stream`];
//!    or an [`error::ErrorAnswer`].

pub mod error;
pub mod event_stream;
pub mod identifier;
mod json;
pub mod operation;
pub mod query;
pub mod result;
pub mod route;
pub mod shapes;
pub mod signature;
pub mod tools;
pub mod validation;

/// Bytes that the body of a request has at most, all operations alike.
pub const MAX_BODY_BYTES: u64 = 100_000_000;
