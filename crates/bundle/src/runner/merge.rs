//! One runner block over another.

use super::{Engine, Limits, Needs, RunnerBlock};
use crate::network::join;

impl RunnerBlock {
    /// This block with the other's values where it has none of its own (AIP-26, "Inheritance semantics"): scalars field by field, lists of
    /// packages joined.
    pub(crate) fn over(self, base: Self) -> Self {
        // An image belongs to its engine, and nothing could be written to take it away.
        let keeps_image = matches!(self.engine, None | Some(Engine::Sandbox));
        Self {
            image: self.image.or(base.image.filter(|_| keeps_image)),
            field: self.field,
            engine: self.engine.or(base.engine),
            needs: self.needs.over(base.needs),
            limits: self.limits.over(base.limits),
        }
    }
}

impl Needs {
    fn over(self, base: Self) -> Self {
        Self {
            language: self.language.or(base.language),
            native: joined(base.native, &self.native),
            npm: joined(base.npm, &self.npm),
            pip: joined(base.pip, &self.pip),
        }
    }
}

impl Limits {
    fn over(self, base: Self) -> Self {
        Self {
            memory_mb: self.memory_mb.or(base.memory_mb),
            timeout_ms: self.timeout_ms.or(base.timeout_ms),
            cpu_ms: self.cpu_ms.or(base.cpu_ms),
            milli_vcpus: self.milli_vcpus.or(base.milli_vcpus),
            ephemeral_storage_mb: self.ephemeral_storage_mb.or(base.ephemeral_storage_mb),
        }
    }

    /// The smaller of each pair.
    pub(crate) fn lowered_to(self, other: Self) -> Self {
        let smaller = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            memory_mb: smaller(self.memory_mb, other.memory_mb),
            timeout_ms: smaller(self.timeout_ms, other.timeout_ms),
            cpu_ms: smaller(self.cpu_ms, other.cpu_ms),
            milli_vcpus: smaller(self.milli_vcpus, other.milli_vcpus),
            ephemeral_storage_mb: smaller(self.ephemeral_storage_mb, other.ephemeral_storage_mb),
        }
    }
}

fn joined(mut first: Vec<String>, more: &[String]) -> Vec<String> {
    join(&mut first, more);
    first
}
