//! What stands in the way of a workspace. Pure.

use codeworkspace_api::{condition, reason};
use codeworkspace_bundle::Inherited;

use super::manifest::Manifest;
use crate::controller::fault::{Fault, join};

/// Why a workspace is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The condition that it makes false, besides `Ready`; none when it concerns only `Ready`.
    pub condition: Option<&'static str>,
    /// One word of the closed list.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Whether it may heal without a change of the manifest.
    pub transient: bool,
}

impl Problem {
    /// A problem that only somebody else's change can mend.
    pub fn permanent(
        condition: Option<&'static str>,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            condition,
            reason,
            message: message.into(),
            transient: false,
        }
    }
}

/// What is wrong with the manifest besides its sources, its command and its runner.
pub fn of_manifest(manifest: &Manifest, inherited: &Inherited) -> Vec<Problem> {
    let mut problems = Vec::new();
    let of_code = match &manifest.blocks.code {
        Ok(code) => &code.errors,
        Err(wrong) => wrong,
    };
    if !of_code.is_empty() {
        problems.push(Problem::permanent(
            Some(condition::SOURCES_RESOLVED),
            reason::MANIFEST_VALIDATION_ERROR,
            join(of_code),
        ));
    }
    // Blocks whose file cannot be read are not wrong for that.
    let of_blocks = match &manifest.unread {
        Some(_) => &[],
        None => manifest.blocks.errors.as_slice(),
    };
    let own = [of_blocks, &manifest.errors].concat();
    if !own.is_empty() {
        problems.push(Problem::permanent(
            None,
            reason::MANIFEST_VALIDATION_ERROR,
            join(&own),
        ));
    }
    let conflicts = inherited.errors();
    if !conflicts.is_empty() {
        problems.push(Problem::permanent(
            Some(condition::RUNNER_RESOLVED),
            reason::INHERITANCE_CONFLICT,
            join(&conflicts),
        ));
    }
    let unsupported = unsupported(manifest, inherited);
    if !unsupported.is_empty() {
        let message = format!("this version does not implement yet: {}", unsupported.join(", "));
        problems.push(Problem::permanent(None, reason::NOT_YET_SUPPORTED, message));
    }
    problems
}

/// A block stands in a file that cannot be read.
pub fn unread(fault: &Fault) -> Problem {
    Problem {
        condition: Some(condition::RUNNER_RESOLVED),
        reason: fault.reason,
        message: fault.message.clone(),
        transient: fault.may_pass(),
    }
}

/// Everything that is accepted so that it can be named. What only a body would need does not matter to a bundle that nothing
/// executes: those who refer to it are told.
fn unsupported(manifest: &Manifest, inherited: &Inherited) -> Vec<String> {
    let mut fields = manifest.unsupported.clone();
    if manifest.run().is_none() {
        return fields;
    }
    let from = |field: String| match inherited.origins.get(&field) {
        Some(origin) => format!("{field} (from {origin})"),
        None => field,
    };
    let secrets = inherited.secrets.bindings.keys();
    fields.extend(secrets.map(|name| from(format!("secrets.{name}"))));
    let needs = &inherited.runner.needs;
    fields.extend(
        needs
            .npm
            .iter()
            .map(|package| from(format!("runner.needs.npm[{package}]"))),
    );
    fields.extend(
        needs
            .pip
            .iter()
            .map(|package| from(format!("runner.needs.pip[{package}]"))),
    );
    let (reads, writes) = &manifest.blocks.legacy_files;
    if !reads.is_empty() {
        fields.push("runtime.fs.read".to_owned());
    }
    if !writes.is_empty() {
        fields.push("runtime.fs.write".to_owned());
    }
    if let Some(sandbox) = &manifest.blocks.sandbox {
        if !sandbox.mounts.is_empty() {
            fields.push("sandbox.mounts".to_owned());
        }
        if !sandbox.passthrough.is_empty() {
            fields.push("sandbox.env.passthrough".to_owned());
        }
    }
    fields
}
