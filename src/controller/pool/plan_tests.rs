use proptest::prelude::*;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn member(number: usize, hash: &str, created: i64, standing: Standing) -> Member {
    Member {
        name: format!("pod-{number:03}"),
        uid: format!("uid-{number}"),
        resource_version: None,
        created: at(created),
        hash: hash.to_owned(),
        session: None,
        standing,
    }
}

fn demand(size: usize, most: usize) -> Demand {
    Demand {
        hash: "new".to_owned(),
        size,
        pending: 0,
        most,
        maximum_age: SignedDuration::from_hours(24),
    }
}

/// Pods to make, and names of pods to delete.
fn planned(
    demand: &Demand,
    members: &[Member],
    unseen: usize,
    trouble: Option<&Trouble>,
) -> (usize, Vec<String>) {
    let plan = plan(at(1000), demand, members, unseen, trouble);
    let delete = plan.delete.iter().map(|member| member.name.clone());
    (plan.create, delete.collect())
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn what_is_missing_is_made_and_what_was_made_a_moment_ago_is_not_missing() {
    assert_eq!(planned(&demand(3, 100), &[], 0, None), (3, none()));
    assert_eq!(planned(&demand(3, 100), &[], 2, None), (1, none()));
    let starting = [member(1, "new", 990, Standing::Starting)];
    assert_eq!(planned(&demand(3, 100), &starting, 2, None), (0, none()));
    assert_eq!(planned(&demand(300, 1000), &[], 0, None), (MOST_CREATED, none()));
}

#[test]
fn sessions_without_a_pod_get_one_each_beside_those_that_wait() {
    let pending = Demand {
        pending: 2,
        ..demand(1, 100)
    };
    assert_eq!(planned(&pending, &[], 0, None), (3, none()));
    let members = [
        member(1, "new", 900, Standing::Claimed),
        member(2, "new", 900, Standing::Reserved),
    ];
    assert_eq!(planned(&demand(1, 100), &members, 0, None), (1, none()));
}

#[test]
fn there_are_never_more_than_permitted_whoever_has_them() {
    let members = [
        member(1, "new", 900, Standing::Claimed),
        member(2, "new", 900, Standing::Reserved),
        member(3, "new", 900, Standing::Ready),
    ];
    assert_eq!(planned(&demand(5, 4), &members, 0, None), (1, none()));
    assert_eq!(planned(&demand(5, 4), &members, 1, None), (0, none()));
    assert_eq!(
        planned(&demand(5, 2), &members, 0, None),
        (0, vec!["pod-003".to_owned()])
    );
    // Those that have ended or go take no place.
    let gone = [
        member(1, "new", 900, Standing::Ended),
        member(2, "new", 900, Standing::Going),
    ];
    assert_eq!(planned(&demand(5, 2), &gone, 0, None), (2, none()));
}

#[test]
fn the_oldest_go_first_when_fewer_are_wanted() {
    let members = [
        member(1, "new", 900, Standing::Starting),
        member(2, "new", 700, Standing::Ready),
        member(3, "new", 800, Standing::Ready),
    ];
    assert_eq!(
        planned(&demand(1, 100), &members, 0, None),
        (0, vec!["pod-002".to_owned(), "pod-003".to_owned()])
    );
}

#[test]
fn pods_of_a_changed_template_serve_until_new_ones_can() {
    let old = |number| member(number, "old", 900, Standing::Ready);
    let members = [old(1), old(2)];
    assert_eq!(planned(&demand(2, 100), &members, 0, None), (2, none()));
    let members = [old(1), old(2), member(3, "new", 990, Standing::Ready)];
    assert_eq!(
        planned(&demand(2, 100), &members, 0, None),
        (1, vec!["pod-001".to_owned()])
    );
    // Without room beside them, one makes some.
    let members = [old(1), old(2)];
    assert_eq!(
        planned(&demand(2, 2), &members, 0, None),
        (0, vec!["pod-001".to_owned()])
    );
    // A pod that a session has stays, whatever it was made from.
    let members = [member(1, "old", 900, Standing::Claimed)];
    assert_eq!(planned(&demand(0, 100), &members, 0, None), (0, none()));
}

#[test]
fn aged_pods_are_replaced_one_at_a_time() {
    let day = 24 * 3600;
    let members = [
        member(1, "new", 1000 - day - 2, Standing::Ready),
        member(2, "new", 1000 - day - 1, Standing::Ready),
    ];
    assert_eq!(planned(&demand(2, 100), &members, 0, None), (1, none()));
    let with_new = [members.as_slice(), &[member(3, "new", 999, Standing::Ready)]].concat();
    assert_eq!(
        planned(&demand(2, 100), &with_new, 0, None),
        (0, vec!["pod-001".to_owned()])
    );
}

#[test]
fn ages_differ_by_up_to_a_tenth() {
    let day = SignedDuration::from_hours(24);
    let lives: Vec<_> = (0..50)
        .map(|number| life(&member(number, "new", 0, Standing::Ready), day))
        .collect();
    assert!(lives.iter().all(|life| *life <= day && *life > day * 9 / 10));
    let different: std::collections::BTreeSet<_> = lives.iter().collect();
    assert!(different.len() > 25, "{different:?}");
}

#[test]
fn pods_that_do_not_start_are_deleted_and_one_after_the_other_is_tried_later() {
    let failed = [member(1, "new", 990, Standing::Failed("no image".to_owned()))];
    let trouble = Trouble::after(None, "new", "no image", at(990), at(999));
    assert_eq!(
        planned(&demand(3, 100), &failed, 0, Some(&trouble)),
        (0, vec!["pod-001".to_owned()])
    );
    let plan = plan(at(1000), &demand(3, 100), &failed, 0, Some(&trouble));
    assert_eq!(plan.again, Some(trouble.retry_at));
    assert_eq!(plan.report.last_error.as_deref(), Some("no image"));
    let trouble = Trouble::after(None, "new", "no image", at(900), at(900));
    assert_eq!(planned(&demand(3, 100), &[], 0, Some(&trouble)), (1, none()));
    assert_eq!(planned(&demand(3, 100), &[], 1, Some(&trouble)), (0, none()));
}

#[test]
fn the_report_counts_what_a_session_can_have() {
    let members = [
        member(1, "new", 990, Standing::Ready),
        member(2, "old", 990, Standing::Ready),
        member(3, "new", 990, Standing::Starting),
        member(4, "new", 990, Standing::Claimed),
        member(5, "new", 990, Standing::Going),
    ];
    let report = plan(at(1000), &demand(4, 100), &members, 1, None).report;
    assert_eq!(
        report,
        WarmPoolStatus {
            size: 4,
            ready: 2,
            starting: 2,
            last_error: None
        }
    );
}

/// What happens in a simulated cluster.
#[derive(Clone, Debug)]
enum Happening {
    /// The watch shows so many more changes.
    Watch(usize),
    /// The operator looks.
    Look,
    /// A pod starts.
    Start(usize),
    /// A pod that waits fails.
    Fail(usize),
    /// A session claims a ready pod.
    Claim(usize),
    /// A session ends, and its pod goes.
    End(usize),
    /// Time passes, in seconds.
    Wait(i64),
    /// An administrator wants so many.
    Resize(usize),
    /// The template changes.
    Change,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (0..4_usize).prop_map(Happening::Watch),
        6 => Just(Happening::Look),
        4 => (0..8_usize).prop_map(Happening::Start),
        2 => (0..8_usize).prop_map(Happening::Fail),
        3 => (0..8_usize).prop_map(Happening::Claim),
        2 => (0..8_usize).prop_map(Happening::End),
        1 => (1..400_i64).prop_map(Happening::Wait),
        1 => (0..8_usize).prop_map(Happening::Resize),
        1 => Just(Happening::Change),
    ]
}

/// A cluster, and a watch of it that lags behind.
struct Cluster {
    now: i64,
    demand: Demand,
    pods: Vec<Member>,
    versions: u64,
    /// States that the watch has not shown yet, oldest first.
    unshown: std::collections::VecDeque<Vec<Member>>,
    shown: Vec<Member>,
    /// Names of pods that were made and not shown yet.
    expected: Vec<String>,
    trouble: Option<Trouble>,
    blamed: Vec<String>,
    made: usize,
    hashes: usize,
}

impl Cluster {
    fn new(size: usize, most: usize) -> Self {
        Self {
            now: 1000,
            demand: demand(size, most),
            pods: Vec::new(),
            versions: 0,
            unshown: std::collections::VecDeque::new(),
            shown: Vec::new(),
            expected: Vec::new(),
            trouble: None,
            blamed: Vec::new(),
            made: 0,
            hashes: 0,
        }
    }

    fn changed(&mut self) {
        self.unshown.push_back(self.pods.clone());
    }

    fn watch(&mut self, steps: usize) {
        for _ in 0..steps {
            let Some(state) = self.unshown.pop_front() else {
                return;
            };
            // Each state holds all pods, so that one that came and went in between is seen to come.
            self.expected
                .retain(|name| !state.iter().any(|member| member.name == *name));
            self.shown = state;
        }
    }

    fn alter(&mut self, index: usize, from: impl Fn(&Standing) -> bool, to: Option<Standing>) {
        let Some(position) = self
            .pods
            .iter()
            .enumerate()
            .filter(|(_, member)| from(&member.standing))
            .map(|(position, _)| position)
            .nth(index)
        else {
            return;
        };
        self.versions += 1;
        match to {
            Some(standing) => {
                let pod = &mut self.pods[position];
                pod.standing = standing;
                pod.resource_version = Some(self.versions.to_string());
            }
            None => {
                self.pods.remove(position);
            }
        }
        self.changed();
    }

    /// What the reconcile does, against this cluster.
    fn look(&mut self) {
        let now = at(self.now);
        let members = self.shown.clone();
        let mut trouble = self
            .trouble
            .take()
            .and_then(|trouble| trouble.still(&self.demand.hash, &members));
        let failed: Vec<&Member> = members
            .iter()
            .filter(|member| matches!(member.standing, Standing::Failed(_)))
            .filter(|member| member.hash == self.demand.hash && !self.blamed.contains(&member.uid))
            .collect();
        if let Some(newest) = failed.iter().map(|member| member.created).max() {
            trouble = Some(Trouble::after(
                trouble.as_ref(),
                &self.demand.hash,
                "failed",
                newest,
                now,
            ));
        }
        self.blamed.extend(failed.iter().map(|member| member.uid.clone()));
        self.trouble = trouble;
        let plan = plan(
            now,
            &self.demand,
            &members,
            self.expected.len(),
            self.trouble.as_ref(),
        );
        for doomed in &plan.delete {
            assert!(
                !matches!(doomed.standing, Standing::Claimed | Standing::Reserved),
                "{doomed:?}"
            );
            // As the API server does it: only if nothing has changed since.
            self.pods
                .retain(|pod| pod.uid != doomed.uid || pod.resource_version != doomed.resource_version);
        }
        if self.trouble.is_some() {
            assert!(plan.create <= 1, "{plan:?}");
        }
        for _ in 0..plan.create {
            self.made += 1;
            self.versions += 1;
            let mut pod = member(self.made, &self.demand.hash, self.now, Standing::Starting);
            pod.resource_version = Some(self.versions.to_string());
            self.expected.push(pod.name.clone());
            self.pods.push(pod);
        }
        self.changed();
        let alive = self.pods.iter().filter(|pod| pod.is_alive()).count();
        assert!(alive <= self.demand.most, "{alive} pods");
    }

    fn happens(&mut self, happening: &Happening) {
        let warm = |standing: &Standing| matches!(standing, Standing::Starting | Standing::Ready);
        match *happening {
            Happening::Watch(steps) => self.watch(steps),
            Happening::Look => self.look(),
            Happening::Start(index) => self.alter(
                index,
                |standing| *standing == Standing::Starting,
                Some(Standing::Ready),
            ),
            Happening::Fail(index) => self.alter(index, warm, Some(Standing::Failed("why".to_owned()))),
            Happening::Claim(index) => self.alter(
                index,
                |standing| *standing == Standing::Ready,
                Some(Standing::Claimed),
            ),
            Happening::End(index) => {
                self.alter(index, |standing| *standing == Standing::Claimed, None);
            }
            Happening::Wait(seconds) => self.now += seconds,
            Happening::Resize(size) => self.demand.size = size,
            Happening::Change => {
                self.hashes += 1;
                self.demand.hash = format!("hash-{}", self.hashes);
            }
        }
    }

    /// Nothing fails any more, and everything is seen.
    fn settle(&mut self) {
        for _ in 0..60 {
            self.watch(usize::MAX);
            self.look();
            self.now += 60;
            self.watch(usize::MAX);
            while self.pods.iter().any(|pod| pod.standing == Standing::Starting) {
                self.alter(
                    0,
                    |standing| *standing == Standing::Starting,
                    Some(Standing::Ready),
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn a_pool_becomes_what_it_should_be_and_never_more_whatever_happens_and_however_late_it_is_seen(
        size in 0..8_usize,
        most in 1..10_usize,
        happenings in proptest::collection::vec(happening(), 0..120),
    ) {
        let mut cluster = Cluster::new(size, most);
        for happening in &happenings {
            cluster.happens(happening);
        }
        cluster.settle();
        let taken = cluster
            .pods
            .iter()
            .filter(|pod| pod.standing == Standing::Claimed)
            .count();
        let ready = cluster
            .pods
            .iter()
            .filter(|pod| pod.standing == Standing::Ready && pod.hash == cluster.demand.hash)
            .count();
        prop_assert_eq!(ready, cluster.demand.size.min(most - taken));
        prop_assert_eq!(cluster.pods.len(), ready + taken);
    }

    #[test]
    fn starts_that_always_fail_are_tried_ever_more_rarely(size in 1..8_usize) {
        let mut cluster = Cluster::new(size, 100);
        for _ in 0..3600 {
            cluster.watch(usize::MAX);
            cluster.look();
            cluster.alter(0, |standing| *standing == Standing::Starting, Some(Standing::Failed("why".to_owned())));
            cluster.now += 1;
        }
        // The first ones, and then one after 5, 10, 20, … 300 seconds.
        prop_assert!(cluster.made <= size + 20, "{} pods within an hour", cluster.made);
        prop_assert!(cluster.made >= 10, "{} pods within an hour", cluster.made);
    }
}
