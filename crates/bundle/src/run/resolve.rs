use std::{collections::BTreeSet, fmt};

use super::{
    Command, Form, Run, Written,
    detect::first_word,
    interpreter::{EXTENSIONS, Interpreter},
};
use crate::{
    near::nearest_paths,
    path::BundlePath,
    quote::Quoted,
    tree::{FileTree, Found},
};

/// Folders that appear only when the bundle's dependencies are installed, after it was built.
const INSTALLED: [&str; 2] = ["node_modules", ".venv"];

/// A command as it will be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRun {
    /// The form it was written in or detected as.
    pub form: Form,
    /// The program and its arguments. Files of the bundle are absolute, so that no name is taken for an option.
    pub argv: Vec<String>,
    /// What is legal but probably not meant.
    pub warnings: Vec<String>,
}

/// Why a file can't be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError {
    /// No such file.
    Missing {
        /// The path that was asked for.
        path: BundlePath,
        /// Files that may have been meant, the likeliest first.
        near: Vec<BundlePath>,
    },
    /// A folder.
    Folder {
        /// Its path.
        path: BundlePath,
    },
    /// The extension does not say how to run it.
    Extension {
        /// The file.
        path: BundlePath,
        /// Files that may have been meant, the likeliest first.
        near: Vec<BundlePath>,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let near = match self {
            Self::Missing { path, near } => {
                write!(out, "`{path}` is not in the bundle")?;
                near
            }
            Self::Folder { path } => return write!(out, "`{path}` is a folder of the bundle, not a file"),
            Self::Extension { path, near } => {
                write!(
                    out,
                    "`{path}` has no extension that says how to run it ({EXTENSIONS} do); \
                     a program is run by a list, as in `[\"{path}\"]`"
                )?;
                near
            }
        };
        for (index, path) in near.iter().enumerate() {
            let before = if index == 0 { "; did you mean" } else { " or" };
            write!(out, "{before} `{path}`")?;
        }
        if near.is_empty() {
            Ok(())
        } else {
            out.write_str("?")
        }
    }
}

impl std::error::Error for RunError {}

impl Run {
    /// The command for a bundle whose root is at the absolute path `mount`, in an image that declares `tools`.
    pub fn resolve(
        &self,
        bundle: &FileTree,
        mount: &str,
        tools: &BTreeSet<String>,
    ) -> Result<ResolvedRun, RunError> {
        let mut warnings = Vec::new();
        let argv = match &self.command {
            Command::File(path) => {
                let (interpreter, warning) = check_file(path, bundle)?;
                warnings.extend(warning);
                let file = format!("{}/{path}", mount.trim_end_matches('/'));
                let before = interpreter.command(tools).iter().map(|word| (*word).to_owned());
                before.chain([file]).collect()
            }
            Command::Exec(argv) => argv.clone(),
            Command::Shell(line) => {
                if self.written == Written::Text {
                    warnings.extend(meant_a_file(line, bundle));
                }
                shell(line)
            }
        };
        Ok(ResolvedRun {
            form: self.form(),
            argv,
            warnings,
        })
    }
}

fn check_file(path: &BundlePath, bundle: &FileTree) -> Result<(Interpreter, Option<String>), RunError> {
    let near = || {
        let paths = bundle
            .paths()
            .filter(|other| *other != path)
            .map(BundlePath::as_str);
        nearest_paths(path.as_str(), paths)
            .into_iter()
            .filter_map(|near| near.parse().ok())
            .collect()
    };
    let interpreter = Interpreter::of(path);
    let is_installed = path
        .folders()
        .any(|folder| INSTALLED.contains(&last_segment(folder)));
    match (bundle.find(path), interpreter) {
        (Found::Folder, _) => Err(RunError::Folder { path: path.clone() }),
        (Found::File, Some(interpreter)) => Ok((interpreter, None)),
        (Found::Nothing, Some(interpreter)) if is_installed => {
            let warning = format!("`{path}` is not in the bundle: it has to come from an install step");
            Ok((interpreter, Some(warning)))
        }
        (Found::Nothing, Some(_)) => Err(RunError::Missing {
            path: path.clone(),
            near: near(),
        }),
        (Found::File | Found::Nothing, None) => Err(RunError::Extension {
            path: path.clone(),
            near: near(),
        }),
    }
}

fn last_segment(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or_default()
}

/// `bash` reads options even after `-c`, so a line that looks like one needs `--` before it.
fn shell(line: &str) -> Vec<String> {
    let before: &[&str] = if line.starts_with(['-', '+']) {
        &["bash", "-c", "--"]
    } else {
        &["bash", "-c"]
    };
    before
        .iter()
        .chain(&[line])
        .map(|word| (*word).to_owned())
        .collect()
}

/// A hint for a string that became a command line although it begins with a file of the bundle.
fn meant_a_file(line: &str, bundle: &FileTree) -> Option<String> {
    let file = |text: &str| {
        let path = BundlePath::from_manifest(text).ok()?;
        (bundle.find(&path) == Found::File).then_some(path)
    };
    if let Some(path) = file(line.trim()) {
        return Some(format!(
            "this is a shell command, though {} is a file of the bundle: to run the file write `{{file: \"{path}\"}}`",
            Quoted(path.as_str())
        ));
    }
    let path = file(first_word(line))?;
    let program =
        Interpreter::of(&path).map(|interpreter| interpreter.command(&BTreeSet::new()).join("\", \""));
    let program = program
        .map(|program| format!("\"{program}\", "))
        .unwrap_or_default();
    Some(format!(
        "this is a shell command, though its first word {} is a file of the bundle: to run the file with arguments \
         write `{{exec: [{program}\"{path}\", …]}}`, to keep the command `{{shell: …}}`",
        Quoted(path.as_str())
    ))
}
