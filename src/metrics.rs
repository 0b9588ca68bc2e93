//! Metrics in the OpenMetrics text format. Labels come from closed sets, so that no object's name can flood a scrape.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use codeworkspace_source::Github;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reconcile {
    kind: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Asker {
    /// The credential's name, from a bounded set, or `anonymous`.
    credential: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Ended {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct EndedSession {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Registration {
    result: &'static str,
}

/// The operator's metrics.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: Family<Reconcile, Counter>,
    durations: Family<Kind, Histogram>,
    runs: Family<Ended, Counter>,
    sessions: Family<EndedSession, Counter>,
    registrations: Family<Registration, Counter>,
    leaked_pods: Counter,
    leader: Gauge,
    github: OnceLock<Github>,
    github_api_requests: Counter,
    github_download_requests: Counter,
    github_tree_cache_bytes: Gauge,
    github_disk_cache_bytes: Gauge,
    github_disk_cache_hits: Counter,
    github_disk_cache_evictions: Counter,
    github_rate_limit_remaining: Family<Asker, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("codeworkspace");
        let reconciles = Family::<Reconcile, Counter<u64, AtomicU64>>::default();
        let durations = Family::<Kind, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.001, 2.0, 14))
        });
        let runs = Family::<Ended, Counter>::default();
        let leader = Gauge::default();
        registry.register(
            "reconciles",
            "Finished reconciles by kind and result",
            reconciles.clone(),
        );
        registry.register_with_unit(
            "reconcile_duration",
            "Time of one reconcile",
            Unit::Seconds,
            durations.clone(),
        );
        registry.register("runs_finished", "Finished CodeRuns by outcome", runs.clone());
        let sessions = Family::<EndedSession, Counter>::default();
        registry.register("sessions_ended", "Ended CodeSessions by reason", sessions.clone());
        let registrations = Family::<Registration, Counter>::default();
        registry.register(
            "registrations",
            "Requests of sessions' pods to register a key, by result",
            registrations.clone(),
        );
        registry.register("leader", "1 while this replica leads", leader.clone());
        let counter = |registry: &mut Registry, name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let gauge = |registry: &mut Registry, name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let leaked_pods = counter(
            &mut registry,
            "leaked_pods",
            "Pods that were found claimed although their session was gone",
        );
        let github_rate_limit_remaining = Family::<Asker, Gauge>::default();
        registry.register(
            "github_rate_limit_remaining",
            "Requests that GitHub's API still allows, as it last said, by credential",
            github_rate_limit_remaining.clone(),
        );
        Self {
            github_api_requests: counter(
                &mut registry,
                "github_api_requests",
                "Requests to GitHub's API since the start",
            ),
            github_download_requests: counter(
                &mut registry,
                "github_download_requests",
                "Archive requests since the start",
            ),
            github_tree_cache_bytes: gauge(
                &mut registry,
                "github_tree_cache_bytes",
                "Memory of cached trees",
            ),
            github_disk_cache_bytes: gauge(&mut registry, "github_disk_cache_bytes", "Disk of cached files"),
            github_disk_cache_hits: counter(
                &mut registry,
                "github_disk_cache_hits",
                "Trees that were read from disk",
            ),
            github_disk_cache_evictions: counter(
                &mut registry,
                "github_disk_cache_evictions",
                "Cached files that were removed to make room",
            ),
            github_rate_limit_remaining,
            github: OnceLock::new(),
            registry,
            reconciles,
            durations,
            runs,
            sessions,
            registrations,
            leaked_pods,
            leader,
        }
    }
}

impl Metrics {
    /// Counts one reconcile.
    pub fn reconciled(&self, kind: &'static str, result: &'static str, took: Duration) {
        self.reconciles.get_or_create(&Reconcile { kind, result }).inc();
        self.durations
            .get_or_create(&Kind { kind })
            .observe(took.as_secs_f64());
    }

    /// Counts one finished run.
    pub fn run_finished(&self, outcome: &'static str) {
        self.runs.get_or_create(&Ended { outcome }).inc();
    }

    /// Counts one ended session.
    pub fn session_ended(&self, reason: &'static str) {
        self.sessions.get_or_create(&EndedSession { reason }).inc();
    }

    /// Counts one request of a pod to register its key.
    pub fn registered(&self, result: &'static str) {
        self.registrations.get_or_create(&Registration { result }).inc();
    }

    /// Counts one pod that was found claimed although its session was gone.
    pub fn leaked(&self) {
        self.leaked_pods.inc();
    }

    /// Says whether this replica leads.
    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Lets scrapes show what this resolver counts.
    pub fn observe(&self, github: Github) {
        // A second resolver in one process would be a mistake of the programmer; the first one stays.
        let _ = self.github.set(github);
    }

    /// The text for a scrape.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        if let Some(github) = self.github.get() {
            let statistics = github.statistics();
            advance(&self.github_api_requests, statistics.api_requests);
            advance(&self.github_download_requests, statistics.download_requests);
            self.github_tree_cache_bytes
                .set(signed(statistics.tree_cache_bytes));
            self.github_disk_cache_bytes
                .set(signed(statistics.disk_cache_bytes));
            advance(&self.github_disk_cache_hits, statistics.disk_cache_hits);
            advance(&self.github_disk_cache_evictions, statistics.disk_cache_evictions);
            // Credentials come and go.
            self.github_rate_limit_remaining.clear();
            for (credential, limit) in statistics.rate_limits {
                self.github_rate_limit_remaining
                    .get_or_create(&Asker { credential })
                    .set(signed(limit.remaining));
            }
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Brings a counter up to what was counted elsewhere.
fn advance(counter: &Counter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrape_shows_what_was_counted() {
        let metrics = Metrics::default();
        metrics.reconciled("CodeWorkspace", "ok", Duration::from_millis(3));
        metrics.run_finished("Succeeded");
        metrics.leads(true);
        let text = metrics.text().unwrap();
        for line in [
            "codeworkspace_reconciles_total{kind=\"CodeWorkspace\",result=\"ok\"} 1",
            "codeworkspace_runs_finished_total{outcome=\"Succeeded\"} 1",
            "codeworkspace_leader 1",
            "codeworkspace_reconcile_duration_seconds_count{kind=\"CodeWorkspace\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
