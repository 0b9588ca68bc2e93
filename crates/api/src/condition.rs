//! Conditions as kstatus reads them: a map by type whose transition time moves only when the status flips.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The summary: materialized and runnable. A failed run does not change it.
pub const READY: &str = "Ready";
/// Every source of the bundle is there.
pub const SOURCES_RESOLVED: &str = "SourcesResolved";
/// `run` and `runner` mean something that this cluster can execute.
pub const RUNNER_RESOLVED: &str = "RunnerResolved";
/// Whether the declared network is what pods really get.
pub const NETWORK_ENFORCED: &str = "NetworkEnforced";
/// How the run of the current key ended.
pub const LAST_RUN_SUCCEEDED: &str = "LastRunSucceeded";
/// Present while the operator still works towards the current generation (kstatus).
pub const RECONCILING: &str = "Reconciling";
/// Present while only a change by somebody else can help (kstatus).
pub const STALLED: &str = "Stalled";
/// Present while the bundle comes from the last good look-up of a source that cannot be looked up now.
pub const STALE: &str = "Stale";

/// Longest condition message. The API server refuses the whole status above 32,768 bytes; readers give up far earlier.
const MESSAGE_MAX: usize = 4096;

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Nobody can tell yet.
    Unknown,
}

impl State {
    /// The spelling of the Kubernetes API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for State {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// The conditions of one status, built anew in each reconcile on top of the former ones.
#[derive(Debug)]
pub struct Conditions<'a> {
    former: &'a [Condition],
    generation: Option<i64>,
    now: Timestamp,
    built: Vec<Condition>,
}

impl<'a> Conditions<'a> {
    /// Starts from the conditions that stand in the object; those that are not set again vanish.
    pub fn new(former: &'a [Condition], generation: Option<i64>, now: Timestamp) -> Self {
        Self {
            former,
            generation,
            now,
            built: Vec::new(),
        }
    }

    /// Sets one condition, keeping its transition time unless the status flipped.
    pub fn set(&mut self, type_: &str, state: State, reason: &str, message: impl Into<String>) {
        let former = self
            .former
            .iter()
            .find(|condition| condition.type_ == type_ && condition.status == state.as_str());
        let condition = Condition {
            type_: type_.to_owned(),
            status: state.as_str().to_owned(),
            reason: reason.to_owned(),
            message: truncate(message.into(), MESSAGE_MAX),
            observed_generation: self.generation,
            last_transition_time: former
                .map_or(Time(self.now), |condition| condition.last_transition_time.clone()),
        };
        match self.built.iter_mut().find(|built| built.type_ == type_) {
            Some(built) => *built = condition,
            None => self.built.push(condition),
        }
    }

    /// Keeps a condition as it stands, speaking of the generation for which it was found.
    pub fn keep(&mut self, type_: &str) {
        let former = self.former.iter().find(|condition| condition.type_ == type_);
        self.built.extend(former.cloned());
    }

    /// The finished list, ordered by type so that equal states are equal lists.
    pub fn finish(mut self) -> Vec<Condition> {
        self.built.sort_by(|a, b| a.type_.cmp(&b.type_));
        self.built
    }
}

/// Cuts a message to at most `max` bytes on a character boundary, saying that it did.
pub fn truncate(message: String, max: usize) -> String {
    const MARK: &str = " … (cut)";
    if message.len() <= max {
        return message;
    }
    let mut end = max.saturating_sub(MARK.len());
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_transition_time_moves_only_when_the_status_flips() {
        let mut first = Conditions::new(&[], Some(1), at(10));
        first.set(READY, State::False, "Failed", "one");
        let first = first.finish();
        let mut second = Conditions::new(&first, Some(2), at(20));
        second.set(READY, State::False, "Other", "two");
        let second = second.finish();
        assert_eq!(second[0].last_transition_time, Time(at(10)));
        assert_eq!(
            (second[0].reason.as_str(), second[0].observed_generation),
            ("Other", Some(2))
        );
        let mut third = Conditions::new(&second, Some(2), at(30));
        third.set(READY, State::True, "Ready", "");
        assert_eq!(third.finish()[0].last_transition_time, Time(at(30)));
    }

    #[test]
    fn a_kept_condition_still_speaks_of_its_own_generation() {
        let mut first = Conditions::new(&[], Some(1), at(10));
        first.set(SOURCES_RESOLVED, State::False, "Failed", "one");
        let first = first.finish();
        let mut second = Conditions::new(&first, Some(2), at(20));
        second.keep(SOURCES_RESOLVED);
        second.keep(STALE);
        assert_eq!(second.finish(), first);
    }

    #[test]
    fn a_long_message_is_cut_on_a_character_boundary() {
        let cut = truncate("ü".repeat(5000), MESSAGE_MAX);
        assert!(cut.len() <= MESSAGE_MAX);
        assert!(cut.ends_with("ü … (cut)"));
    }
}
