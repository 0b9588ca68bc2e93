//! What one pool needs: pods to make and pods to delete. Pure.

use codeworkspace_api::WarmPoolStatus;
use jiff::{SignedDuration, Timestamp};

use super::member::{Member, Standing};
use super::trouble::Trouble;

/// Most pods that are made at once. What is missing then is made in the next look, which follows soon.
pub const MOST_CREATED: usize = 10;
/// Most pods that are deleted at once.
const MOST_DELETED: usize = 50;
/// Share of their greatest age, in percent, by which pods go earlier, each by its own: those of one moment must not all go at another.
const SPREAD_PERCENT: i32 = 10;

/// What a pool should be.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Hash of what pods are made from now.
    pub hash: String,
    /// Pods that wait, as all interpreters together want them.
    pub size: usize,
    /// Sessions that have no pod.
    pub pending: usize,
    /// Most pods of this pool, waiting and claimed ones together.
    pub most: usize,
    /// Age at which a waiting pod is replaced.
    pub maximum_age: SignedDuration,
}

/// What to do, and what to tell.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Pods to make.
    pub create: usize,
    /// Pods to delete, unless they have changed since they were seen.
    pub delete: Vec<&'a Member>,
    /// What stands in the status of interpreters.
    pub report: WarmPoolStatus,
    /// When to look again although nothing happens.
    pub again: Option<Timestamp>,
}

/// Plans. `unseen` pods were made and are not among the members yet.
pub fn plan<'a>(
    now: Timestamp,
    demand: &Demand,
    members: &'a [Member],
    unseen: usize,
    trouble: Option<&Trouble>,
) -> Plan<'a> {
    let failed = members
        .iter()
        .filter(|member| matches!(member.standing, Standing::Failed(_)));
    let mut delete: Vec<&Member> = failed.collect();
    // Those that only took too long are still there until they are deleted.
    let failed = delete.len();
    let taken = members
        .iter()
        .filter(|member| matches!(member.standing, Standing::Reserved | Standing::Claimed))
        .count();
    let (mut current, mut outdated): (Vec<&Member>, Vec<&Member>) = members
        .iter()
        .filter(|member| member.is_warm())
        .partition(|member| member.hash == demand.hash);
    current.sort_by_key(|member| (member.created, &member.name));
    outdated.sort_by_key(|member| (member.created, &member.name));
    // Pods that are too old are replaced one by one, and after those that are made from something else.
    let oldest = current.first().copied();
    let goes_at = oldest.map(|oldest| oldest.created.saturating_add(life(oldest, demand.maximum_age)));
    let goes_at = goes_at.and_then(Result::ok);
    if outdated.is_empty() && goes_at.is_some_and(|at| at <= now) {
        outdated.push(current.remove(0));
    }

    let room = demand.most.saturating_sub(taken);
    let target = demand.size.saturating_add(demand.pending).min(room);
    let surplus = current.len().saturating_sub(target);
    delete.extend(current.drain(..surplus));
    let ready = current
        .iter()
        .filter(|member| member.standing == Standing::Ready)
        .count();
    // The former pods serve until the new ones can.
    let surplus = outdated.len().saturating_sub(target.saturating_sub(ready));
    delete.extend(outdated.drain(..surplus));

    let starting = current.len() - ready + unseen;
    let missing = target.saturating_sub(ready + starting);
    let free = room.saturating_sub(current.len() + outdated.len() + unseen + surplus + failed);
    if missing > 0 && free == 0 && surplus == 0 && !outdated.is_empty() {
        // There is no room beside the former pods: one of them makes some.
        delete.push(outdated.remove(0));
    }
    let allowed = match trouble {
        None => MOST_CREATED,
        Some(trouble) if now < trouble.retry_at || starting > 0 => 0,
        // One is enough to see whether pods start again.
        Some(_) => 1,
    };
    delete.truncate(MOST_DELETED);
    Plan {
        create: missing.min(free).min(allowed),
        report: WarmPoolStatus {
            size: count(demand.size.min(room)),
            ready: count(
                ready
                    + outdated
                        .iter()
                        .filter(|member| member.standing == Standing::Ready)
                        .count(),
            ),
            starting: count(starting),
            last_error: trouble.map(|trouble| trouble.error.clone()),
        },
        delete,
        again: [
            trouble.filter(|_| missing > 0).map(|trouble| trouble.retry_at),
            goes_at,
        ]
        .into_iter()
        .flatten()
        .filter(|at| *at > now)
        .min(),
    }
}

/// How long a pod waits before it is replaced.
fn life(member: &Member, maximum: SignedDuration) -> SignedDuration {
    let sum: u32 = member
        .uid
        .bytes()
        .fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let thousandths = i32::try_from(sum % 1000).unwrap_or_default();
    let spread = maximum / 100 * SPREAD_PERCENT;
    maximum - spread / 1000 * thousandths
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
