//! When a workspace is looked at again. Pure.

use std::time::Duration;

use jiff::SignedDuration;

use crate::configuration::Scan;
use crate::controller::fault::{CREDENTIAL_RETRY, Fault, Healing};

/// Share of the interval by which objects are spread, in percent of it to each side.
const JITTER_PERCENT: u64 = 10;

/// The delay until the next look.
///
/// Pinned workspaces are only checked against the cluster again, floating ones looked up at their interval, and failing ones
/// tried again at the same interval, sooner if they may heal by themselves, or when the other side allows. `heals` says that
/// something besides the sources may heal by itself. `spread` (a hash of the object's uid) moves objects apart, always by the same
/// share for the same object.
pub fn next(
    wanted: Option<SignedDuration>,
    floating: bool,
    faults: &[Fault],
    heals: bool,
    scan: &Scan,
    spread: u64,
) -> Duration {
    let interval = scan.interval(wanted);
    let resync = SignedDuration::from_secs(scan.resync_seconds);
    let wanted = if heals || !faults.is_empty() {
        let retry_after = faults.iter().filter_map(|fault| fault.retry_after).min();
        let floor = SignedDuration::from_secs(scan.minimum_interval_seconds);
        match retry_after.and_then(|delay| SignedDuration::try_from(delay).ok()) {
            // A credential is read again sooner than the other side is asked again.
            Some(delay) => delay.clamp(floor.min(CREDENTIAL_RETRY), resync.max(floor)),
            None if heals || faults.iter().any(|fault| fault.healing == Healing::ByItself) => floor,
            // What waits for somebody is looked at when that somebody acts.
            None => interval,
        }
    } else if floating {
        interval
    } else {
        resync
    };
    jitter(
        Duration::try_from(wanted).unwrap_or(Duration::from_mins(1)),
        spread,
    )
}

fn jitter(delay: Duration, spread: u64) -> Duration {
    let milliseconds = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX / 200);
    let width = milliseconds / 100 * JITTER_PERCENT * 2;
    let offset = if width == 0 { 0 } else { spread % width };
    Duration::from_millis(milliseconds - width / 2 + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_a_tenth_and_is_the_same_for_the_same_object() {
        let delay = Duration::from_mins(10);
        for spread in [0, 1, 77_777, u64::MAX] {
            let jittered = jitter(delay, spread);
            assert!(
                (540_000..=660_000).contains(&jittered.as_millis()),
                "{jittered:?}"
            );
            assert_eq!(jittered, jitter(delay, spread));
        }
    }
}
