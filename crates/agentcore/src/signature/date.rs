//! The date that a request was signed at.

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp, fmt::rfc2822, fmt::strtime, tz::TimeZone};

use super::{SignatureError, only};

/// How far the clocks of client and server may be apart, either way.
const WINDOW: SignedDuration = SignedDuration::from_mins(5);

const BASIC: &str = "%Y%m%dT%H%M%SZ";

const BASIC_LENGTH: usize = "20260101T000000Z".len();

const DAY_LENGTH: usize = "20260101".len();

/// The date of a request, in the form that was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SigningDate {
    at: Timestamp,
    written: String,
}

impl SigningDate {
    /// `20260101T000000Z`
    pub(super) fn as_str(&self) -> &str {
        &self.written
    }

    /// `20260101`
    pub(super) fn day(&self) -> &str {
        self.written.get(..DAY_LENGTH).unwrap_or_default()
    }

    pub(super) fn check(&self, now: Timestamp) -> Result<(), SignatureError> {
        let age = now.duration_since(self.at);
        if age > WINDOW {
            return Err(SignatureError::Expired {
                signed: self.written.clone(),
                earliest: basic(now.saturating_sub(WINDOW).unwrap_or(Timestamp::MIN)),
                now: basic(now),
            });
        }
        if age < -WINDOW {
            return Err(SignatureError::NotYetCurrent {
                signed: self.written.clone(),
                latest: basic(now.saturating_add(WINDOW).unwrap_or(Timestamp::MAX)),
                now: basic(now),
            });
        }
        Ok(())
    }
}

/// From `x-amz-date`, else from `date`, which may be written as HTTP does. What is signed has the basic form either way.
pub(super) fn signing_date(headers: &HeaderMap) -> Result<SigningDate, SignatureError> {
    let at = match only(headers, "x-amz-date")? {
        Some(text) => from_basic(text),
        None => only(headers, "date")?.and_then(|text| from_basic(text).or_else(|| from_http(text))),
    }
    .ok_or(SignatureError::NoDate)?;
    Ok(SigningDate {
        at,
        written: basic(at),
    })
}

fn from_basic(text: &str) -> Option<Timestamp> {
    if text.len() != BASIC_LENGTH {
        return None;
    }
    let time = strtime::parse(BASIC, text).ok()?.to_datetime().ok()?;
    time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

fn from_http(text: &str) -> Option<Timestamp> {
    rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

fn basic(at: Timestamp) -> String {
    at.strftime(BASIC).to_string()
}
