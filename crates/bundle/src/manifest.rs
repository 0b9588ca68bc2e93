//! Manifests: the blocks of one code workspace, whether they stand in an object or in a file of somebody's root (AIP-26).

mod files;
mod read;
mod recorded;
mod yaml;

use serde_json::Value;

pub use files::block_files;
pub use read::{ManifestError, manifest_files, read_manifest};
pub use recorded::{Link, Recorded};
pub use yaml::MAX_MANIFEST_BYTES;

use crate::{
    code::{Code, WorkspacePath, define_code},
    field::FieldError,
    network::{Network, define_network},
    path::BundlePath,
    run::{Run, define_run},
    runner::RunnerBlock,
    runtime::define_runtime,
    sandbox::Sandbox,
    secrets::Secrets,
    taken::Entries,
};
use files::BlockFiles;

/// The kinds of manifests whose code can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestKind {
    /// What a `ref` is meant for.
    CodeWorkspace,
    /// Allowed, but what makes it a tool is not taken over.
    Tool,
    /// Allowed, but what makes it a workflow is not taken over.
    Workflow,
}

impl ManifestKind {
    const ALL: [Self; 3] = [Self::CodeWorkspace, Self::Tool, Self::Workflow];

    /// The kind as it is written in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CodeWorkspace => "code-workspace",
            Self::Tool => "tool",
            Self::Workflow => "workflow",
        }
    }
}

/// The blocks of an object's spec, as they were given.
#[derive(Debug, Clone, Copy, Default)]
pub struct Blocks<'a> {
    /// AIP-26.
    pub code: Option<&'a Value>,
    /// AIP-26.
    pub run: Option<&'a Value>,
    /// AIP-17.
    pub runner: Option<&'a Value>,
    /// The legacy block of AIP-17.
    pub runtime: Option<&'a Value>,
    /// AIP-36.
    pub sandbox: Option<&'a Value>,
    /// AIP-19.
    pub secrets: Option<&'a Value>,
    /// AIP-26.
    pub network: Option<&'a Value>,
}

/// One code workspace: its blocks, parsed, each right or wrong by itself.
///
/// An object and a file make the same type, so that what refers to one never has to know which it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The file that it stands in; `None` for an object.
    pub file: Option<BundlePath>,
    /// What kind of manifest it is.
    pub kind: ManifestKind,
    /// Its name, if it has one of its own.
    pub name: Option<String>,
    /// The folder of the root that the paths of its `local` sources start at: the root itself, but the module's own folder for a lean
    /// `CODE.md`, whose siblings so land at the root of the bundle. Paths of `ref` always start at the root.
    pub base: WorkspacePath,
    /// The sources.
    pub code: Result<Code, Vec<FieldError>>,
    /// The command; never taken over by what refers to this manifest.
    pub run: Option<Result<Run, Vec<FieldError>>>,
    /// The runner, with what the legacy `runtime` block says where this one says nothing.
    pub runner: Result<RunnerBlock, Vec<FieldError>>,
    /// The environment of its commands.
    pub sandbox: Option<Sandbox>,
    /// The variables; those of the legacy block and of the sandbox are among them.
    pub secrets: Secrets,
    /// The hosts; those of the legacy block and of the sandbox are among them.
    pub network: Network,
    /// Files of the legacy block's `fs`, which AIP-16 replaces: read, written.
    pub legacy_files: (Vec<String>, Vec<String>),
    /// What is shown and has no effect.
    pub recorded: Recorded,
    /// What is wrong in the other blocks, or with the manifest as a whole.
    pub errors: Vec<FieldError>,
    /// What will probably surprise somebody.
    pub warnings: Vec<String>,
}

impl Manifest {
    /// The blocks of an object. Files that they name are read from `root`, the files of the object's root; [`block_files`] tells which
    /// they are, so that a root need not be read for nothing.
    pub fn from_blocks(blocks: &Blocks<'_>, root: Option<&Entries>) -> Self {
        let files = BlockFiles { root, folder: None };
        let code = match blocks.code {
            Some(code) => define_code(code),
            None => Err(vec![FieldError::new("code", "is missing")]),
        };
        Self::build(blocks, code, files)
    }

    fn build(blocks: &Blocks<'_>, code: Result<Code, Vec<FieldError>>, files: BlockFiles<'_>) -> Self {
        let mut errors = Vec::new();
        let mut warnings = Vec::new();
        let mut runner = blocks
            .runner
            .map_or_else(|| Ok(RunnerBlock::default()), |block| files.runner(block));
        let sandbox = blocks
            .sandbox
            .and_then(|block| kept(files.sandbox(block), &mut errors));
        let (mut secrets, more) = blocks
            .secrets
            .and_then(|block| kept(files.secrets(block), &mut errors))
            .unwrap_or_default();
        warnings.extend(more);
        let mut network = blocks
            .network
            .and_then(|block| kept(define_network(block), &mut errors))
            .unwrap_or_default();
        let mut legacy_files = (Vec::new(), Vec::new());
        if let Some(runtime) = blocks
            .runtime
            .and_then(|block| kept(define_runtime(block), &mut errors))
        {
            runner = runner.map(|runner| runner.over(runtime.runner));
            secrets.add(runtime.secrets);
            network.add(&runtime.network.egress);
            legacy_files = (runtime.reads, runtime.writes);
            warnings.extend(runtime.warnings);
        }
        if let Some(sandbox) = &sandbox {
            secrets.add(sandbox.secrets.clone());
            network.add(&sandbox.egress);
            warnings.extend(sandbox.warnings.iter().cloned());
        }
        Self {
            file: None,
            kind: ManifestKind::CodeWorkspace,
            name: None,
            base: WorkspacePath::of(None),
            code,
            run: blocks.run.map(define_run),
            runner,
            sandbox,
            secrets,
            network,
            legacy_files,
            recorded: Recorded::default(),
            errors,
            warnings,
        }
    }

    /// Puts the file's name before the field of every error.
    fn located(mut self, file: BundlePath) -> Self {
        let place = |errors: &mut Vec<FieldError>| {
            *errors = std::mem::take(errors)
                .into_iter()
                .map(|error| in_file(error, &file))
                .collect();
        };
        match &mut self.code {
            Ok(code) => {
                place(&mut code.errors);
                code.sources
                    .iter_mut()
                    .filter_map(|entry| entry.source.as_mut().err())
                    .for_each(place);
            }
            Err(errors) => place(errors),
        }
        if let Some(Err(errors)) = &mut self.run {
            place(errors);
        }
        if let Err(errors) = &mut self.runner {
            place(errors);
        }
        place(&mut self.errors);
        for warning in self
            .warnings
            .iter_mut()
            .filter(|warning| !warning.starts_with("./"))
        {
            *warning = format!("./{file}: {warning}");
        }
        self.file = Some(file);
        self
    }
}

/// An error below a block's file already names that file.
fn in_file(error: FieldError, file: &BundlePath) -> FieldError {
    if error.field.starts_with("./") {
        error
    } else {
        error.within(format_args!("./{file}"))
    }
}

fn kept<T>(result: Result<T, Vec<FieldError>>, errors: &mut Vec<FieldError>) -> Option<T> {
    result.map_err(|wrong| errors.extend(wrong)).ok()
}

#[cfg(test)]
mod tests;
