//! `cargo xtask test`: every tier of tests, from the compiler's opinion to the whole cluster.

mod clients;
mod stages;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::installation;

/// The arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Which tier.
    #[arg(value_enum, default_value_t = Tier::All)]
    tier: Tier,
    /// Also run what takes too long for each push.
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    installation: installation::Options,
    /// Arguments for the tests' own runner, such as a part of a test's name.
    #[arg(last = true)]
    runner: Vec<String>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    /// Format, lints and every test that needs nothing but this machine.
    Unit,
    /// Tests of the Jupyter kernels, inside the interpreter image.
    Kernels,
    /// Tests against etcd and an API server.
    Api,
    /// Tests on the whole cluster, where the charts installed the operator.
    E2e,
    /// All of them.
    All,
}

/// A part of a tier that passes or fails by itself.
struct Stage {
    name: &'static str,
    run: fn(&Arguments) -> Result<()>,
}

const UNIT: [Stage; 3] = [
    Stage {
        name: "format",
        run: stages::format,
    },
    Stage {
        name: "lint",
        run: stages::lint,
    },
    Stage {
        name: "unit",
        run: stages::unit,
    },
];
const KERNELS: [Stage; 1] = [Stage {
    name: "kernels",
    run: stages::kernels,
}];
const API: [Stage; 1] = [Stage {
    name: "api",
    run: stages::api,
}];
const E2E: [Stage; 1] = [Stage {
    name: "e2e",
    run: stages::e2e,
}];

impl Tier {
    fn stages(self) -> Vec<&'static Stage> {
        match self {
            Self::Unit => UNIT.iter().collect(),
            Self::Kernels => KERNELS.iter().collect(),
            Self::Api => API.iter().collect(),
            Self::E2e => E2E.iter().collect(),
            Self::All => UNIT.iter().chain(&KERNELS).chain(&API).chain(&E2E).collect(),
        }
    }
}

/// Runs the tiers. A failing stage does not keep the others from telling what they know.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut results = Vec::new();
    for stage in arguments.tier.stages() {
        println!("\n== {}", stage.name);
        let started = Instant::now();
        let outcome = (stage.run)(arguments);
        let result = StageResult {
            name: stage.name,
            took: started.elapsed(),
            error: outcome.err().map(|error| format!("{error:#}")),
        };
        println!("== {result}");
        results.push(result);
    }
    println!("\n== summary");
    for result in &results {
        // The rest of a long error stands above.
        println!("{}", result.to_string().lines().next().unwrap_or_default());
    }
    let failed: Vec<_> = results
        .iter()
        .filter(|result| result.error.is_some())
        .map(|result| result.name)
        .collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// How a stage went.
struct StageResult {
    name: &'static str,
    took: Duration,
    error: Option<String>,
}

impl std::fmt::Display for StageResult {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.took.as_secs();
        match &self.error {
            None => write!(out, "{} passed in {seconds} s", self.name),
            Some(error) => write!(out, "{} FAILED after {seconds} s: {error}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_stages_come_first_and_no_tier_is_left_out() {
        let names = |tier: Tier| tier.stages().iter().map(|stage| stage.name).collect::<Vec<_>>();
        assert_eq!(
            names(Tier::All),
            ["format", "lint", "unit", "kernels", "api", "e2e"]
        );
        assert_eq!(names(Tier::Unit), ["format", "lint", "unit"]);
    }

    #[test]
    fn a_failure_is_told_with_its_stage_and_reason() {
        let result = |error: Option<&str>| StageResult {
            name: "lint",
            took: Duration::from_millis(2500),
            error: error.map(str::to_owned),
        };
        assert_eq!(result(None).to_string(), "lint passed in 2 s");
        assert_eq!(
            result(Some("exit status: 101")).to_string(),
            "lint FAILED after 2 s: exit status: 101"
        );
    }
}
