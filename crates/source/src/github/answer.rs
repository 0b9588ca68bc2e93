//! What each answer of GitHub means that is neither success, redirect nor "not found".

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::clock::until;
use crate::error::{SourceError, SourceErrorReason as Reason, quoted};

/// What GitHub asks of clients that meet a secondary limit without a given time; it doubles each time.
const SECONDARY_WAIT: Duration = Duration::from_mins(1);
/// No host is left alone for longer: its primary window is an hour, and its clock may be wrong.
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// A time that is over already still means "not now".
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// GitHub has some forty scopes.
const MAXIMUM_SCOPES: usize = 64;

/// The state of the primary rate limit, as the host last told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests in each window.
    pub limit: u64,
    /// Requests left in this window.
    pub remaining: u64,
    /// When the window ends.
    pub reset: Timestamp,
}

impl RateLimit {
    /// Reads the headers; `None` when the host sets no limit.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
        Some(Self {
            limit: number("x-ratelimit-limit")?.try_into().ok()?,
            remaining: number("x-ratelimit-remaining")?.try_into().ok()?,
            reset: Timestamp::from_second(number("x-ratelimit-reset")?).ok()?,
        })
    }

    /// How long to wait when nothing is left.
    pub(crate) fn exhausted(&self, now: Timestamp) -> Option<Duration> {
        (self.remaining == 0).then(|| until(now, self.reset).clamp(SHORTEST_WAIT, LONGEST_WAIT))
    }
}

/// The host's own time, by which its times are to be read: ours may be wrong.
pub(crate) fn server_time(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(DATE)?.to_str().ok()?;
    Some(rfc2822::parse(date.trim()).ok()?.timestamp())
}

/// What a classic token may do. Empty for all other tokens, which do not tell.
pub(crate) fn scopes(headers: &HeaderMap) -> Vec<String> {
    let listed = headers.get("x-oauth-scopes").and_then(|list| list.to_str().ok());
    listed
        .into_iter()
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|scope| !scope.is_empty())
        .take(MAXIMUM_SCOPES)
        .map(str::to_owned)
        .collect()
}

/// An answer that refuses.
#[derive(Debug)]
pub(crate) struct Refusal<'a> {
    pub(crate) host: &'a str,
    pub(crate) status: StatusCode,
    pub(crate) headers: &'a HeaderMap,
    /// The beginning of the body. Only looked at, never shown.
    pub(crate) body: &'a str,
    /// The name of the credential that was used.
    pub(crate) credential: Option<&'a str>,
}

impl Refusal<'_> {
    /// What the answer means. `strikes` counts earlier limits of that host that came without a time.
    pub(crate) fn meaning(&self, now: Timestamp, strikes: u32) -> SourceError {
        let now = server_time(self.headers).unwrap_or(now);
        if let Some(wait) = self.limit(now, strikes) {
            return limited(self.host, self.credential, wait);
        }
        let host = quoted(self.host);
        let status = self.status.as_u16();
        let (reason, text) = match (status, self.credential) {
            (401, None) => (
                Reason::AuthFailed,
                format!(
                    "{host} wants a credential (HTTP 401), and none was used: only public repositories can be read"
                ),
            ),
            (401, Some(name)) => (
                Reason::AuthFailed,
                format!(
                    "{host} does not accept the credential of {name} (HTTP 401): it is wrong, expired or revoked; put a \
                     valid one into its Secret"
                ),
            ),
            (403, used) if self.headers.contains_key("x-github-sso") => (
                Reason::SsoRequired,
                match used {
                    None => format!(
                        "the organisation at {host} wants single sign-on (HTTP 403), and no credential was used"
                    ),
                    Some(name) => format!(
                        "the organisation at {host} wants the credential of {name} to be authorised for single sign-on \
                         (HTTP 403); authorise it in the token's settings"
                    ),
                },
            ),
            (451, _) => (
                Reason::LegallyBlocked,
                format!(
                    "{host} does not serve the repository for legal reasons (HTTP 451); use another source"
                ),
            ),
            (403, _) if self.body.contains("\"block\"") || self.body.contains("access blocked") => (
                Reason::Blocked,
                format!("{host} has blocked the repository (HTTP 403); use another source"),
            ),
            (403, None) => (
                Reason::Forbidden,
                format!(
                    "{host} refuses (HTTP 403), no credential was used; check that the repository is public"
                ),
            ),
            (403, Some(name)) => (
                Reason::Forbidden,
                format!(
                    "{host} refuses the credential of {name} (HTTP 403); check that it may read the contents of the \
                     repository"
                ),
            ),
            (409, _) => (
                Reason::EmptyRepository,
                "the repository is empty; push a commit to it".to_owned(),
            ),
            _ => {
                let text = format!("{host} answers HTTP {status}; it will be asked again");
                let failed = SourceError::new(Reason::FetchFailed, text);
                return match self.retry_after(now) {
                    Some(wait) => failed.retry_after(wait),
                    None => failed,
                };
            }
        };
        SourceError::new(reason, text)
    }

    /// How long to wait when the answer is a limit: GitHub's primary limit is 403 or 429 with nothing remaining, the
    /// secondary one has `retry-after`, or only says so in its text.
    fn limit(&self, now: Timestamp, strikes: u32) -> Option<Duration> {
        if !matches!(self.status, StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS) {
            return None;
        }
        let exhausted = || RateLimit::read(self.headers)?.exhausted(now);
        let text = self.body.to_ascii_lowercase();
        let is_limit = self.status == StatusCode::TOO_MANY_REQUESTS || text.contains("rate limit");
        let doubled = || {
            let wait = SECONDARY_WAIT.saturating_mul(2_u32.saturating_pow(strikes));
            is_limit.then(|| wait.min(LONGEST_WAIT))
        };
        self.retry_after(now).or_else(exhausted).or_else(doubled)
    }

    /// Seconds or a date (RFC 9110, 10.2.3).
    fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        let value = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        let wait = match value.parse() {
            Ok(seconds) => Duration::from_secs(seconds),
            Err(_) => until(now, rfc2822::parse(value).ok()?.timestamp()),
        };
        Some(wait.clamp(SHORTEST_WAIT, LONGEST_WAIT))
    }
}

/// The host must be left alone, for now and for everything that is asked with this credential.
pub(crate) fn limited(host: &str, credential: Option<&str>, wait: Duration) -> SourceError {
    let host = quoted(host);
    let text = match credential {
        None => {
            format!(
                "{host} allows no more requests without a credential for now, and will be asked again later"
            )
        }
        Some(name) => format!(
            "{host} allows no more requests with the credential of {name} for now, and will be asked again later"
        ),
    };
    SourceError::new(Reason::RateLimited, text).retry_after(wait)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    const NOW: i64 = 784_111_777;

    fn meaning(
        status: u16,
        headers: &[(&'static str, &str)],
        body: &str,
        strikes: u32,
    ) -> (Reason, Option<u64>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        let refusal = Refusal {
            host: "api.github.com",
            status,
            headers: &map,
            body,
            credential: Some("team/default"),
        };
        let error = refusal.meaning(Timestamp::from_second(NOW).unwrap(), strikes);
        (error.reason, error.retry_after.map(|wait| wait.as_secs()))
    }

    fn primary(remaining: &'static str, reset: &str) -> Vec<(&'static str, String)> {
        vec![
            ("x-ratelimit-limit", "60".to_owned()),
            ("x-ratelimit-remaining", remaining.to_owned()),
            ("x-ratelimit-reset", reset.to_owned()),
        ]
    }

    #[test]
    fn limits_are_told_apart_from_refusals_and_say_how_long() {
        let limited = |seconds| (Reason::RateLimited, Some(seconds));
        assert_eq!(meaning(403, &[("retry-after", "30")], "", 0), limited(30));
        assert_eq!(
            meaning(429, &[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], "", 0),
            limited(30)
        );
        for (reset, wait) in [(NOW + 1200, 1200), (NOW - 5, 1), (NOW + 100_000, 3600)] {
            let reset = reset.to_string();
            let headers = primary("0", &reset);
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            assert_eq!(meaning(403, &headers, "", 0), limited(wait));
        }
        let secondary = r#"{"message": "You have exceeded a secondary rate limit."}"#;
        assert_eq!(meaning(403, &[], secondary, 0), limited(60));
        assert_eq!(meaning(403, &[], secondary, 2), limited(240));
        assert_eq!(meaning(429, &[], "", 40), limited(3600));
    }

    #[test]
    fn a_403_with_requests_left_is_a_refusal() {
        let headers = primary("59", "784111800");
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        assert_eq!(meaning(403, &headers, "", 0), (Reason::Forbidden, None));
    }

    #[test]
    fn every_other_answer_has_its_own_meaning() {
        for (status, headers, body, reason) in [
            (401, &[][..], "", Reason::AuthFailed),
            (
                403,
                &[("x-github-sso", "required; url=https://x")],
                "",
                Reason::SsoRequired,
            ),
            (
                403,
                &[],
                r#"{"message":"Repository access blocked","block":{"reason":"tos"}}"#,
                Reason::Blocked,
            ),
            (451, &[], "", Reason::LegallyBlocked),
            (409, &[], "", Reason::EmptyRepository),
            (422, &[], "", Reason::FetchFailed),
            (500, &[], "", Reason::FetchFailed),
            (300, &[], "", Reason::FetchFailed),
        ] {
            assert_eq!(meaning(status, headers, body, 0), (reason, None), "{status}");
        }
        assert_eq!(
            meaning(503, &[("retry-after", "7")], "", 0),
            (Reason::FetchFailed, Some(7))
        );
    }

    #[test]
    fn scopes_are_read_as_a_list_and_only_classic_tokens_have_some() {
        let read = |value: &str| {
            let mut map = HeaderMap::new();
            map.insert("x-oauth-scopes", HeaderValue::from_str(value).unwrap());
            scopes(&map)
        };
        assert_eq!(read("repo, read:org,workflow"), ["repo", "read:org", "workflow"]);
        assert_eq!(read(" , "), [""; 0]);
        assert_eq!(scopes(&HeaderMap::new()), [""; 0]);
    }

    #[test]
    fn times_are_read_by_the_clock_of_the_host() {
        let reset = (NOW + 600).to_string();
        let headers = primary("0", &reset);
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
        let with_date: Vec<_> = headers
            .chain([("date", "Sun, 06 Nov 1994 08:54:37 GMT")])
            .collect();
        // The host is five minutes ahead of us.
        assert_eq!(meaning(403, &with_date, "", 0), (Reason::RateLimited, Some(300)));
    }

    fn value() -> impl Strategy<Value = HeaderValue> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..40);
        let any_bytes =
            bytes.prop_filter_map("no header value", |bytes| HeaderValue::from_bytes(&bytes).ok());
        let number = any::<i128>().prop_filter_map("no header value", |number| {
            HeaderValue::from_str(&number.to_string()).ok()
        });
        let date =
            "(Sun|Mon), [0-9]{1,2} (Nov|Feb|Xxx) [0-9]{1,6} [0-9]{2}:[0-9]{2}:[0-9]{2} (GMT|[+-][0-9]{4})"
                .prop_filter_map("no header value", |date| HeaderValue::from_str(&date).ok());
        prop_oneof![any_bytes, number, date]
    }

    proptest! {
        #[test]
        fn no_header_makes_us_panic_or_wait_for_longer_than_an_hour(
            status in 400_u16..600,
            values in proptest::collection::vec(proptest::option::of(value()), 6),
            body in ".{0,40}|.*rate limit.*",
            strikes in any::<u32>(),
        ) {
            let names = [
                "retry-after",
                "date",
                "x-ratelimit-limit",
                "x-ratelimit-remaining",
                "x-ratelimit-reset",
                "x-oauth-scopes",
            ];
            let mut headers = HeaderMap::new();
            for (name, value) in names.into_iter().zip(values) {
                value.map(|value| headers.insert(name, value));
            }
            let refusal = Refusal {
                host: "api.github.com",
                status: StatusCode::from_u16(status).unwrap(),
                headers: &headers,
                body: &body,
                credential: None,
            };
            let error = refusal.meaning(Timestamp::from_second(NOW).unwrap(), strikes);
            if let Some(wait) = error.retry_after {
                prop_assert!((SHORTEST_WAIT..=LONGEST_WAIT).contains(&wait), "{wait:?}");
            }
            prop_assert!(error.reason != Reason::RateLimited || error.retry_after.is_some());
            prop_assert!(scopes(&headers).iter().all(|scope| !scope.is_empty()));
        }
    }
}
