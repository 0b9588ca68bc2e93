//! Metrics in the OpenMetrics text format. Labels come from closed sets, so that no object's name can flood a scrape.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

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
struct Ended {
    outcome: &'static str,
}

/// The operator's metrics.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: Family<Reconcile, Counter>,
    durations: Family<Kind, Histogram>,
    runs: Family<Ended, Counter>,
    leader: Gauge<i64, std::sync::atomic::AtomicI64>,
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
        registry.register("leader", "1 while this replica leads", leader.clone());
        Self {
            registry,
            reconciles,
            durations,
            runs,
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

    /// Says whether this replica leads.
    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// The text for a scrape.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
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
