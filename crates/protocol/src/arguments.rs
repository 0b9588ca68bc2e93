//! The runner's command lines, written by the operator and read by the runner.
//!
//! Every option is `--name VALUE` in two arguments, so a value may begin with a dash; the body's own words stand behind `--`
//! and are never looked at.

mod read;
mod session;

use std::collections::BTreeMap;

use thiserror::Error;

pub use read::{ReadArguments, RefusedLinks};
pub use session::{RegisterArguments, ServeArguments};

use crate::layout;

const PREPARE: &str = "prepare";
const EXEC: &str = "exec";
const READ: &str = "read";
const REGISTER: &str = "register";
const SERVE: &str = "serve";

const BUNDLE: &str = "--bundle";
const DIGEST: &str = "--digest";
const TARGET: &str = "--target";
const INSTALL: &str = "--install";
const TERMINATION_LOG: &str = "--termination-log";
const WORKDIR: &str = "--workdir";
const TIMEOUT_MS: &str = "--timeout-ms";
const GRACE_MS: &str = "--grace-ms";

/// Why a command line was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArgumentError {
    /// There is no subcommand at all.
    #[error("a subcommand is missing; expected `prepare`, `exec`, `read`, `register` or `serve`")]
    NoSubcommand,
    /// The first word is no subcommand of the runner.
    #[error("unknown subcommand `{0}`; expected `prepare`, `exec`, `read`, `register` or `serve`")]
    UnknownSubcommand(String),
    /// The subcommand has no such option.
    #[error("{subcommand}: unknown argument `{argument}`")]
    Unknown {
        /// The subcommand that was given.
        subcommand: &'static str,
        /// The argument as written.
        argument: String,
    },
    /// An option stands at the end of the line.
    #[error("{subcommand}: `{option}` needs a value")]
    NoValue {
        /// The subcommand that was given.
        subcommand: &'static str,
        /// The option without a value.
        option: &'static str,
    },
    /// An option was given twice; neither value is believed.
    #[error("{subcommand}: `{option}` was given twice")]
    Twice {
        /// The subcommand that was given.
        subcommand: &'static str,
        /// The repeated option.
        option: &'static str,
    },
    /// A required option, or the body's command, is missing.
    #[error("{subcommand}: `{option}` is missing")]
    Missing {
        /// The subcommand that was given.
        subcommand: &'static str,
        /// The absent option, or `-- COMMAND`.
        option: &'static str,
    },
    /// A value has the wrong form.
    #[error("{subcommand}: `{option} {value}`: {expected}")]
    Invalid {
        /// The subcommand that was given.
        subcommand: &'static str,
        /// The option.
        option: &'static str,
        /// The value as written.
        value: String,
        /// What the value must look like.
        expected: &'static str,
    },
}

/// `runner prepare`: put the runner and the verified bundle where the body's container finds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrepareArguments {
    /// Absolute path of the compressed bundle.
    pub bundle: String,
    /// What the bundle must hash to: `sha256:` and 64 lower-case hex digits, over the uncompressed tar. It comes from the pod
    /// spec, which a replaced `ConfigMap` cannot change.
    pub digest: String,
    /// Absolute path of the directory that shall hold the bundle's files and nothing else; never `/`.
    pub target: String,
    /// Absolute path of the directory into which the runner copies itself.
    pub install: String,
    /// Absolute path of the file that takes the record of a failure; [`layout::TERMINATION_LOG`] in a pod.
    pub termination_log: String,
}

/// `runner exec`: run a body and keep its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecArguments {
    /// Absolute path of the body's working directory.
    pub workdir: String,
    /// Milliseconds that the body may take; absent means no limit.
    pub timeout_ms: Option<u64>,
    /// Milliseconds between asking the body to end and killing it.
    pub grace_ms: u64,
    /// Absolute path of the file that takes the record; [`layout::TERMINATION_LOG`] in a pod.
    pub termination_log: String,
    /// The body: program and arguments, at least one, the first not empty.
    pub argv: Vec<String>,
}

/// Any command line of the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerArguments {
    /// `runner prepare …`
    Prepare(PrepareArguments),
    /// `runner exec …`
    Exec(ExecArguments),
    /// `runner read …`
    Read(ReadArguments),
    /// `runner register …`
    Register(RegisterArguments),
    /// `runner serve …`
    Serve(ServeArguments),
}

impl RunnerArguments {
    /// How to call the runner, for whoever called it wrongly.
    pub const USAGE: &str = "\
usage: runner prepare --bundle FILE --digest sha256:HEX --target DIRECTORY --install DIRECTORY
                      [--termination-log FILE]
       runner exec --workdir DIRECTORY [--timeout-ms N] --grace-ms N [--termination-log FILE]
                   -- COMMAND [ARGUMENT…]
       runner read --folder DIRECTORY [--below PATH] --links keep|skip --max-entries N
                   --max-file-bytes N --max-total-bytes N
       runner register --operator HOST:PORT --authority BASE64 --token FILE --identity DIRECTORY
                       --install DIRECTORY [--termination-log FILE]
       runner serve --identity DIRECTORY --authority BASE64 --root DIRECTORY --port N
                    [--kernel NAME]… [--termination-log FILE]
";

    /// Reads a command line without the program's own name.
    pub fn parse(arguments: &[String]) -> Result<Self, ArgumentError> {
        match arguments.first().map(String::as_str) {
            Some(PREPARE) => PrepareArguments::parse(arguments).map(Self::Prepare),
            Some(EXEC) => ExecArguments::parse(arguments).map(Self::Exec),
            Some(READ) => ReadArguments::parse(arguments).map(Self::Read),
            Some(REGISTER) => RegisterArguments::parse(arguments).map(Self::Register),
            Some(SERVE) => ServeArguments::parse(arguments).map(Self::Serve),
            Some(other) => Err(ArgumentError::UnknownSubcommand(other.to_owned())),
            None => Err(ArgumentError::NoSubcommand),
        }
    }
}

impl PrepareArguments {
    /// The command line without the program's own name; [`PrepareArguments::parse`] reads it back.
    pub fn to_args(&self) -> Vec<String> {
        [
            PREPARE,
            BUNDLE,
            &self.bundle,
            DIGEST,
            &self.digest,
            TARGET,
            &self.target,
            INSTALL,
            &self.install,
            TERMINATION_LOG,
            &self.termination_log,
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// Reads a command line without the program's own name, subcommand included.
    pub fn parse(arguments: &[String]) -> Result<Self, ArgumentError> {
        let (mut options, rest) = Options::read(
            PREPARE,
            arguments,
            &[BUNDLE, DIGEST, TARGET, INSTALL, TERMINATION_LOG],
            &[],
        )?;
        options.without_words(rest)?;
        let target = options.absolute_path(TARGET)?;
        if target.split('/').all(str::is_empty) {
            return Err(options.invalid(
                TARGET,
                target,
                "must not be the root: everything in it is replaced",
            ));
        }
        Ok(Self {
            bundle: options.absolute_path(BUNDLE)?,
            digest: options.digest()?,
            target,
            install: options.absolute_path(INSTALL)?,
            termination_log: options.termination_log()?,
        })
    }
}

impl ExecArguments {
    /// The command line without the program's own name; [`ExecArguments::parse`] reads it back.
    pub fn to_args(&self) -> Vec<String> {
        let mut arguments = vec![EXEC.to_owned(), WORKDIR.to_owned(), self.workdir.clone()];
        if let Some(timeout) = self.timeout_ms {
            arguments.extend([TIMEOUT_MS.to_owned(), timeout.to_string()]);
        }
        arguments.extend([GRACE_MS.to_owned(), self.grace_ms.to_string()]);
        arguments.extend([
            TERMINATION_LOG.to_owned(),
            self.termination_log.clone(),
            "--".to_owned(),
        ]);
        arguments.extend_from_slice(&self.argv);
        arguments
    }

    /// Reads a command line without the program's own name, subcommand included.
    pub fn parse(arguments: &[String]) -> Result<Self, ArgumentError> {
        let known = [WORKDIR, TIMEOUT_MS, GRACE_MS, TERMINATION_LOG];
        let (mut options, argv) = Options::read(EXEC, arguments, &known, &[])?;
        let argv = argv
            .filter(|argv| !argv.is_empty())
            .ok_or_else(|| options.missing("-- COMMAND"))?;
        if argv.first().is_some_and(String::is_empty) {
            return Err(options.invalid("-- COMMAND", String::new(), "the command must not be empty"));
        }
        let timeout_ms = options.milliseconds(TIMEOUT_MS)?;
        if timeout_ms == Some(0) {
            return Err(options.invalid(
                TIMEOUT_MS,
                "0".to_owned(),
                "must be at least 1; leave it out for no limit",
            ));
        }
        Ok(Self {
            workdir: options.absolute_path(WORKDIR)?,
            timeout_ms,
            grace_ms: options
                .milliseconds(GRACE_MS)?
                .ok_or_else(|| options.missing(GRACE_MS))?,
            termination_log: options.termination_log()?,
            argv: argv.to_vec(),
        })
    }
}

/// The options of one command line, taken out one by one.
struct Options {
    subcommand: &'static str,
    values: BTreeMap<&'static str, String>,
    /// Values of options that may be given more than once, in the order of the line.
    repeated: Vec<(&'static str, String)>,
}

impl Options {
    /// Splits a command line into the options before `--` and, when there is a `--`, the words after it.
    fn read<'a>(
        subcommand: &'static str,
        arguments: &'a [String],
        known: &[&'static str],
        repeatable: &[&'static str],
    ) -> Result<(Self, Option<&'a [String]>), ArgumentError> {
        let mut options = Self {
            subcommand,
            values: BTreeMap::new(),
            repeated: Vec::new(),
        };
        match arguments.first() {
            Some(first) if first == subcommand => {}
            Some(other) => return Err(ArgumentError::UnknownSubcommand(other.clone())),
            None => return Err(ArgumentError::NoSubcommand),
        }
        let mut rest = &arguments[1..];
        while let Some((argument, after)) = rest.split_first() {
            if argument == "--" {
                return Ok((options, Some(after)));
            }
            let option = known
                .iter()
                .chain(repeatable)
                .copied()
                .find(|option| option == argument)
                .ok_or_else(|| ArgumentError::Unknown {
                    subcommand,
                    argument: argument.clone(),
                })?;
            let (value, after) = after
                .split_first()
                .ok_or(ArgumentError::NoValue { subcommand, option })?;
            if repeatable.contains(&option) {
                options.repeated.push((option, value.clone()));
            } else if options.values.insert(option, value.clone()).is_some() {
                return Err(ArgumentError::Twice { subcommand, option });
            }
            rest = after;
        }
        Ok((options, None))
    }

    /// For subcommands that have nothing to do with a body.
    fn without_words(&self, words: Option<&[String]>) -> Result<(), ArgumentError> {
        match words {
            None => Ok(()),
            Some(_) => Err(ArgumentError::Unknown {
                subcommand: self.subcommand,
                argument: "--".to_owned(),
            }),
        }
    }

    fn required(&mut self, option: &'static str) -> Result<String, ArgumentError> {
        self.values.remove(option).ok_or_else(|| self.missing(option))
    }

    fn repeated(&mut self, option: &'static str) -> Vec<String> {
        self.repeated
            .extract_if(.., |(name, _)| *name == option)
            .map(|(_, value)| value)
            .collect()
    }

    fn absolute_path(&mut self, option: &'static str) -> Result<String, ArgumentError> {
        let value = self.required(option)?;
        self.check_absolute(option, value)
    }

    fn termination_log(&mut self) -> Result<String, ArgumentError> {
        match self.values.remove(TERMINATION_LOG) {
            Some(value) => self.check_absolute(TERMINATION_LOG, value),
            None => Ok(layout::TERMINATION_LOG.to_owned()),
        }
    }

    fn check_absolute(&self, option: &'static str, value: String) -> Result<String, ArgumentError> {
        if value.starts_with('/') && !value.contains('\0') {
            Ok(value)
        } else {
            Err(self.invalid(option, value, "must be an absolute path"))
        }
    }

    fn digest(&mut self) -> Result<String, ArgumentError> {
        let value = self.required(DIGEST)?;
        let well_formed = value.strip_prefix("sha256:").is_some_and(|hex| {
            hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        });
        if well_formed {
            Ok(value)
        } else {
            Err(self.invalid(DIGEST, value, "must be `sha256:` and 64 lower-case hex digits"))
        }
    }

    fn milliseconds(&mut self, option: &'static str) -> Result<Option<u64>, ArgumentError> {
        let Some(value) = self.values.remove(option) else {
            return Ok(None);
        };
        // `u64::from_str` also takes a leading plus sign, which would make two spellings of one command line.
        match value.parse() {
            Ok(number) if !value.starts_with('+') => Ok(Some(number)),
            _ => Err(self.invalid(option, value, "must be a whole number of milliseconds")),
        }
    }

    fn missing(&self, option: &'static str) -> ArgumentError {
        ArgumentError::Missing {
            subcommand: self.subcommand,
            option,
        }
    }

    fn invalid(&self, option: &'static str, value: String, expected: &'static str) -> ArgumentError {
        ArgumentError::Invalid {
            subcommand: self.subcommand,
            option,
            value,
            expected,
        }
    }
}
