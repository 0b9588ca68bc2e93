//! The wall clock, as records show it.

use jiff::Timestamp;

/// The present moment in milliseconds: finer digits only take room in a record.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}
