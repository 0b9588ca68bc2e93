//! Blocks that stand in files of their own, beside the manifest that names them.

use serde_json::Value;

use super::{Blocks, yaml};
use crate::{
    code::WorkspacePath,
    field::FieldError,
    follow::read_file,
    form::{Reference, block_file},
    object::{Object, place},
    path::BundlePath,
    quote::Quoted,
    runner::{self, RunnerBlock, RunnerDefinition, define_runner},
    sandbox::{self, Sandbox, SandboxDefinition, define_sandbox, define_sandbox_at},
    secrets::{self, Secrets, define_secrets_at, read_inventory},
    taken::{Entries, nearest_entries},
};

/// What a file with a block may have beside the block's fields: it describes the file.
const HEAD: [&str; 6] = ["schema", "id", "version", "name", "description", "metadata"];

/// The files that the blocks of an object name, all of which [`Manifest::from_blocks`](super::Manifest::from_blocks) looks for.
pub fn block_files(blocks: &Blocks<'_>) -> Vec<WorkspacePath> {
    let runner = blocks.runner.and_then(|block| match define_runner(block) {
        Ok(RunnerDefinition::File(path)) => Some(path),
        _ => None,
    });
    let sandbox = blocks.sandbox.and_then(|block| match define_sandbox(block) {
        Ok(SandboxDefinition::File(path)) => Some(path),
        _ => None,
    });
    let secrets = blocks
        .secrets
        .and_then(|block| SecretsForm::of(block).ok())
        .and_then(|form| match form {
            SecretsForm::File(path) => Some(path),
            SecretsForm::Here(..) => None,
        });
    runner.into_iter().chain(sandbox).chain(secrets).collect()
}

/// Where the files of blocks are looked for.
#[derive(Clone, Copy)]
pub(super) struct BlockFiles<'a> {
    /// The files of the root; `None` if there is no root.
    pub(super) root: Option<&'a Entries>,
    /// The manifest's folder below the root; `None` is the root itself.
    pub(super) folder: Option<&'a BundlePath>,
}

impl BlockFiles<'_> {
    pub(super) fn runner(self, block: &Value) -> Result<RunnerBlock, Vec<FieldError>> {
        let path = match define_runner(block)? {
            RunnerDefinition::Block(block) => return Ok(block),
            RunnerDefinition::Ref(name) => return Ok(RunnerBlock::of_template(&name)),
            RunnerDefinition::File(path) => path,
        };
        let (field, block) = self
            .read(runner::FIELD, block, &path)
            .map_err(|error| vec![error])?;
        let mut issues = Vec::new();
        let read = Object::read(&field, &block, &runner::BLOCK_SHAPE, &mut issues)
            .map(|object| RunnerBlock::read(&object, field.clone(), &mut issues));
        match read {
            Some(read) if issues.is_empty() => Ok(read),
            _ => Err(issues),
        }
    }

    pub(super) fn sandbox(self, block: &Value) -> Result<Sandbox, Vec<FieldError>> {
        let path = match define_sandbox(block)? {
            SandboxDefinition::Block(sandbox) => return Ok(*sandbox),
            SandboxDefinition::File(path) => path,
        };
        let (field, block) = self.read(sandbox::FIELD, block, &path).map_err(|error| {
            let message = format!("{}: {}", sandbox::REF_UNRESOLVABLE, error.message);
            vec![FieldError::new(error.field, message)]
        })?;
        define_sandbox_at(&field, &block)
    }

    /// The variables, and what should be said about them.
    pub(super) fn secrets(self, block: &Value) -> Result<(Secrets, Vec<String>), Vec<FieldError>> {
        let path = match SecretsForm::of(block)? {
            SecretsForm::Here(field, block) => {
                return define_secrets_at(&field, block).map(|secrets| (secrets, Vec::new()));
            }
            SecretsForm::File(path) => path,
        };
        let (field, file) = self
            .read(secrets::FIELD, block, &path)
            .map_err(|error| vec![error])?;
        match &file["secrets"] {
            Value::Null => define_secrets_at(&field, &file).map(|secrets| (secrets, Vec::new())),
            inventory @ Value::Array(_) => read_inventory(&field, inventory).map(|secrets| {
                let warning = format!(
                    "{field}: only names are taken from it; who may use a secret is said by the namespace's SecretInventory"
                );
                (secrets, vec![warning])
            }),
            bindings => define_secrets_at(&field, bindings).map(|secrets| (secrets, Vec::new())),
        }
    }

    /// Reads the file that a block names: the name of the block in that file for messages, and what stands in it.
    fn read(self, field: &str, block: &Value, path: &WorkspacePath) -> Result<(String, Value), FieldError> {
        let form = if block["file"].is_string() { "file" } else { "ref" };
        let wrong = |message: String| FieldError::new(place(field, form), message);
        let Some(root) = self.root else {
            return Err(wrong(format!(
                "`{path}` is a file of the workspace: set `root`, which says where its files are"
            )));
        };
        let file = self
            .resolve(path)
            .ok_or_else(|| wrong(format!("`{path}` is no file")))?;
        let Some(bytes) = read_file(root, &file) else {
            let near = nearest_entries(root, file.as_str());
            let hint = near
                .first()
                .map(|near| format!(": did you mean {}?", Quoted(near)))
                .unwrap_or_default();
            return Err(wrong(format!(
                "there is no file `./{file}` in the workspace{hint}"
            )));
        };
        let mut value = yaml::read_document(&file, bytes)?;
        if let Value::Object(map) = &mut value {
            map.retain(|key, _| !HEAD.contains(&key.as_str()));
        }
        Ok((format!("./{file}: {field}"), value))
    }

    /// From the folder of the manifest to the root.
    fn resolve(self, path: &WorkspacePath) -> Option<BundlePath> {
        let below = path.below_root()?;
        match self.folder {
            None => Some(below.clone()),
            Some(folder) => folder.join(below).ok(),
        }
    }
}

/// The forms of a `secrets` block. Its keys are names of variables, so only keys that can't be bindings make another form of it.
enum SecretsForm<'a> {
    Here(String, &'a Value),
    File(WorkspacePath),
}

impl<'a> SecretsForm<'a> {
    fn of(block: &'a Value) -> Result<Self, Vec<FieldError>> {
        let here = || Self::Here(secrets::FIELD.to_owned(), block);
        let Some(map) = block.as_object() else {
            return Ok(here());
        };
        let form = ["ref", "file"]
            .into_iter()
            .find_map(|form| Some((form, map.get(form)?.as_str()?)));
        let Some((form, text)) = form else {
            let is_binding = |value: &Value| {
                ["vault", "oauth", "value"]
                    .iter()
                    .any(|key| value.get(key).is_some())
            };
            return Ok(match map.get("inline") {
                Some(inline) if map.len() == 1 && inline.is_object() && !is_binding(inline) => {
                    Self::Here(place(secrets::FIELD, "inline"), inline)
                }
                _ => here(),
            });
        };
        let field = place(secrets::FIELD, form);
        if map.len() > 1 {
            let message = format!("has `{form}` and other keys: `{form}` stands alone");
            return Err(vec![FieldError::new(secrets::FIELD, message)]);
        }
        if let Reference::Name(name) = Reference::of(text) {
            let message = format!(
                "{} is no file, and inventories are not chosen by name: bind variables to the namespace's own, as in \
                 `API_KEY: {{vault: api-key}}`",
                Quoted(name)
            );
            return Err(vec![FieldError::new(field, message)]);
        }
        let mut issues = Vec::new();
        match block_file(&field, text, &mut issues) {
            Some(path) => Ok(Self::File(path)),
            None => Err(issues),
        }
    }
}
