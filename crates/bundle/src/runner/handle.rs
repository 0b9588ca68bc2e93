use super::{Engine, RunnerBlock};
use crate::{field::FieldError, language::Language};

/// Memory in MiB when a manifest asks for none (AIP-17, `runner.limits`).
pub const DEFAULT_MEMORY_MB: u64 = 256;
/// Time in milliseconds when a manifest asks for none (AIP-17, `runner.limits`).
pub const DEFAULT_TIMEOUT_MS: u64 = 600_000;

/// A runner in which every field has its value: the handle of AIP-17.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerHandle {
    /// Where to run: never [`Engine::InProcess`].
    pub engine: Engine,
    /// The runner template that the manifest names; `None` for `subprocess`, and for `sandbox` until one is picked.
    pub image: Option<String>,
    /// What the body depends on.
    pub needs: ResolvedNeeds,
    /// What it may use.
    pub limits: ResolvedLimits,
    /// Whether the manifest asked for `in-process` and got `subprocess`, which has to be said aloud.
    pub downgraded: bool,
}

/// Like [`Needs`](super::Needs), with the language filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedNeeds {
    /// The language runtime.
    pub language: Language,
    /// System packages, by their Debian names.
    pub native: Vec<String>,
    /// npm packages on top of the bundle's `package.json`.
    pub npm: Vec<String>,
    /// Python packages on top of the bundle's `requirements.txt`.
    pub pip: Vec<String>,
}

/// Like [`Limits`](super::Limits), with the defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedLimits {
    /// Memory in MiB.
    pub memory_mb: u64,
    /// Time from start to end in milliseconds.
    pub timeout_ms: u64,
    /// Time on a processor in milliseconds; `None` is no cap.
    pub cpu_ms: Option<u64>,
    /// Processors, in thousandths; `None` is the host's default.
    pub milli_vcpus: Option<u64>,
    /// Writable disk space in MiB; `None` is the host's default.
    pub ephemeral_storage_mb: Option<u64>,
}

impl RunnerBlock {
    /// Fills in the defaults and refuses what does not fit together.
    pub(crate) fn resolve(&self, run_language: Language) -> Result<RunnerHandle, Vec<FieldError>> {
        let mut issues = Vec::new();
        let asked = self.engine.unwrap_or_default();
        let downgraded = asked == Engine::InProcess;
        let engine = if downgraded { Engine::Subprocess } else { asked };
        if self.image.is_some() && asked != Engine::Sandbox {
            let message = format!("is only for engine `sandbox`, but the engine is `{asked}`");
            issues.push(FieldError::new(format!("{}.image", self.field), message));
        }
        let language = self.needs.language.unwrap_or(run_language);
        if conflict(language, run_language) {
            let message = format!("is `{language}`, but the file in `run` is `{run_language}`");
            issues.push(FieldError::new(format!("{}.needs.language", self.field), message));
        }
        if !issues.is_empty() {
            return Err(issues);
        }
        let (needs, limits) = (self.needs.clone(), self.limits);
        Ok(RunnerHandle {
            engine,
            image: self.image.clone(),
            needs: ResolvedNeeds {
                language,
                native: needs.native,
                npm: needs.npm,
                pip: needs.pip,
            },
            limits: ResolvedLimits {
                memory_mb: limits.memory_mb.unwrap_or(DEFAULT_MEMORY_MB),
                timeout_ms: limits.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS),
                cpu_ms: limits.cpu_ms,
                milli_vcpus: limits.milli_vcpus,
                ephemeral_storage_mb: limits.ephemeral_storage_mb,
            },
            downgraded,
        })
    }
}

/// A command line or a list of arguments says nothing about its language, and `multi` has both: so only one named
/// language against the other is a conflict.
fn conflict(language: Language, run_language: Language) -> bool {
    language != run_language && language != Language::Multi && run_language != Language::Multi
}
