//! Pods that do not start: how many were tried, and when the next one may be. Pure.

use jiff::{SignedDuration, Timestamp};

use super::member::{Member, Standing};

/// Delay after the first failure.
const FIRST: SignedDuration = SignedDuration::from_secs(5);
/// No delay is longer.
const CEILING: SignedDuration = SignedDuration::from_mins(5);

/// What is known of starts that failed, for one hash: a changed template starts anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    hash: String,
    /// Rounds that failed in a row.
    failures: u32,
    /// When the next pod may be made.
    pub retry_at: Timestamp,
    /// Why the last one did not start.
    pub error: String,
    /// When the newest failed pod was made: a younger one that starts ends the trouble.
    newest: Timestamp,
}

impl Trouble {
    /// Counts one more failure. However many pods fail at once, they fail for one reason.
    pub fn after(former: Option<&Self>, hash: &str, error: &str, made: Timestamp, now: Timestamp) -> Self {
        let former = former.filter(|former| former.hash == hash);
        let failures = former.map_or(0, |former| former.failures);
        Self {
            hash: hash.to_owned(),
            failures: failures.saturating_add(1),
            retry_at: now.saturating_add(delay(failures)).unwrap_or(now),
            error: error.to_owned(),
            newest: former.map_or(made, |former| former.newest.max(made)),
        }
    }

    /// The trouble as it stands once these pods are seen: it ends when a pod starts that was made later, or when pods are made from
    /// something else now.
    pub fn still(self, hash: &str, members: &[Member]) -> Option<Self> {
        let started = members.iter().any(|member| {
            member.hash == hash
                && member.created > self.newest
                && matches!(
                    member.standing,
                    Standing::Ready | Standing::Reserved | Standing::Claimed
                )
        });
        (self.hash == hash && !started).then_some(self)
    }
}

fn delay(failures: u32) -> SignedDuration {
    FIRST
        .saturating_mul(2_i32.saturating_pow(failures.min(16)))
        .min(CEILING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn member(hash: &str, created: i64, standing: Standing) -> Member {
        Member {
            name: "pod".to_owned(),
            uid: "uid".to_owned(),
            resource_version: None,
            created: at(created),
            hash: hash.to_owned(),
            session: None,
            standing,
        }
    }

    #[test]
    fn delays_double_up_to_a_ceiling() {
        let delays: Vec<_> = (0..9).map(|failures| delay(failures).as_secs()).collect();
        assert_eq!(delays, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(delay(u32::MAX), CEILING);
    }

    #[test]
    fn only_a_later_pod_that_starts_or_another_template_ends_the_trouble() {
        let trouble = Trouble::after(None, "a", "no image", at(100), at(110));
        assert_eq!(trouble.retry_at, at(115));
        let still = |hash: &str, members: &[Member]| trouble.clone().still(hash, members).is_some();
        assert!(still("a", &[]));
        assert!(still("a", &[member("a", 50, Standing::Ready)]));
        assert!(still("a", &[member("b", 120, Standing::Ready)]));
        assert!(still("a", &[member("a", 120, Standing::Starting)]));
        assert!(!still("a", &[member("a", 120, Standing::Ready)]));
        assert!(!still("a", &[member("a", 120, Standing::Claimed)]));
        assert!(!still("b", &[]));
        let again = Trouble::after(Some(&trouble), "a", "no image", at(90), at(120));
        assert_eq!((again.retry_at, again.newest), (at(130), at(100)));
    }
}
