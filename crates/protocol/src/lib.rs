//! What the operator and the in-pod runner say to each other: where things lie in a pod, the runner's command lines, and the
//! record of a run that travels back in the container's termination message, and the stream in which a volume's files do.
//!
//! Pure: both sides depend on this crate, so it does no I/O and knows neither Kubernetes nor the bundle's format.

mod arguments;
pub mod layout;
mod reading;
mod record;
pub mod session;
mod tail;

pub use arguments::{
    ArgumentError, ExecArguments, PrepareArguments, ReadArguments, RefusedLinks, RegisterArguments,
    RunnerArguments, ServeArguments,
};
pub use reading::{
    BEGIN, FailedReading, FinishedReading, MAX_REPORT_BYTES, ReadFailure, ReadReport, ReadingReader,
    ReadingWriter, StreamError,
};
pub use record::{Cause, MAX_RECORD_BYTES, RecordError, RunRecord, RunState, StreamRecord};
pub use tail::{MAX_TAIL_BYTES, StreamTail};
