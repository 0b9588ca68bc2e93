//! What the operator and the in-pod runner say to each other: where things lie in a pod, the runner's command lines, and the
//! record of a run that travels back in the container's termination message.
//!
//! Pure: both sides depend on this crate, so it does no I/O and knows neither Kubernetes nor the bundle's format.

mod arguments;
pub mod layout;
mod record;
mod tail;

pub use arguments::{ArgumentError, ExecArguments, PrepareArguments, RunnerArguments};
pub use record::{Cause, MAX_RECORD_BYTES, RecordError, RunRecord, RunState, StreamRecord};
pub use tail::{MAX_TAIL_BYTES, StreamTail};
