//! The command lines of a session's containers: `runner register` and `runner serve`.

use super::{ArgumentError, INSTALL, Options, REGISTER, SERVE, TERMINATION_LOG};

const OPERATOR: &str = "--operator";
const AUTHORITY: &str = "--authority";
const TOKEN: &str = "--token";
const IDENTITY: &str = "--identity";
const ROOT: &str = "--root";
const KERNEL: &str = "--kernel";
const PORT: &str = "--port";

/// `runner register`: install the runner, make the pod's key, and tell the operator its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterArguments {
    /// `host:port` of the operator's registration endpoint; whatever the host is, the endpoint's certificate must name
    /// [`crate::session::OPERATOR_NAME`].
    pub operator: String,
    /// The internal authority's certificate: PEM in standard base64, so that it is one word.
    pub authority: String,
    /// Absolute path of the pod's projected token.
    pub token: String,
    /// Absolute path of the directory that takes the pod's certificate and key.
    pub identity: String,
    /// Absolute path of the directory into which the runner copies itself.
    pub install: String,
    /// Absolute path of the file that takes the record of a failure; [`crate::layout::TERMINATION_LOG`] in a pod.
    pub termination_log: String,
}

/// `runner serve`: start kernels and serve a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeArguments {
    /// Absolute path of the directory that holds the pod's certificate and key; the key is removed from it.
    pub identity: String,
    /// The internal authority's certificate: PEM in standard base64.
    pub authority: String,
    /// Absolute path of the session's files: kernels and commands start there, and nothing outside of it is read or written for a
    /// caller.
    pub root: String,
    /// Names of the kernelspecs to start, each once; the port opens when all are ready. May be empty.
    pub kernels: Vec<String>,
    /// TCP port to listen at; [`crate::session::PORT`] in a pod. 0 lets the kernel choose.
    pub port: u16,
    /// Absolute path of the file that takes the record of the session's end; [`crate::layout::TERMINATION_LOG`] in a pod.
    pub termination_log: String,
}

impl RegisterArguments {
    /// The command line without the program's own name; [`RegisterArguments::parse`] reads it back.
    pub fn to_args(&self) -> Vec<String> {
        let options = [
            (OPERATOR, &self.operator),
            (AUTHORITY, &self.authority),
            (TOKEN, &self.token),
            (IDENTITY, &self.identity),
            (INSTALL, &self.install),
            (TERMINATION_LOG, &self.termination_log),
        ];
        std::iter::once(REGISTER)
            .chain(
                options
                    .iter()
                    .flat_map(|(option, value)| [*option, value.as_str()]),
            )
            .map(str::to_owned)
            .collect()
    }

    /// Reads a command line without the program's own name, subcommand included.
    pub fn parse(arguments: &[String]) -> Result<Self, ArgumentError> {
        let known = [OPERATOR, AUTHORITY, TOKEN, IDENTITY, INSTALL, TERMINATION_LOG];
        let (mut options, rest) = Options::read(REGISTER, arguments, &known, &[])?;
        options.without_words(rest)?;
        Ok(Self {
            operator: host_and_port(&mut options)?,
            authority: authority(&mut options)?,
            token: options.absolute_path(TOKEN)?,
            identity: options.absolute_path(IDENTITY)?,
            install: options.absolute_path(INSTALL)?,
            termination_log: options.termination_log()?,
        })
    }
}

impl ServeArguments {
    /// The command line without the program's own name; [`ServeArguments::parse`] reads it back.
    pub fn to_args(&self) -> Vec<String> {
        let port = self.port.to_string();
        let options = [
            (IDENTITY, &self.identity),
            (AUTHORITY, &self.authority),
            (ROOT, &self.root),
            (PORT, &port),
            (TERMINATION_LOG, &self.termination_log),
        ];
        let kernels = self.kernels.iter().map(|kernel| (KERNEL, kernel));
        std::iter::once(SERVE)
            .chain(
                options
                    .into_iter()
                    .chain(kernels)
                    .flat_map(|(option, value)| [option, value.as_str()]),
            )
            .map(str::to_owned)
            .collect()
    }

    /// Reads a command line without the program's own name, subcommand included.
    pub fn parse(arguments: &[String]) -> Result<Self, ArgumentError> {
        let known = [IDENTITY, AUTHORITY, ROOT, PORT, TERMINATION_LOG];
        let (mut options, rest) = Options::read(SERVE, arguments, &known, &[KERNEL])?;
        options.without_words(rest)?;
        Ok(Self {
            identity: options.absolute_path(IDENTITY)?,
            authority: authority(&mut options)?,
            root: options.absolute_path(ROOT)?,
            kernels: kernels(&mut options)?,
            port: port(&mut options)?,
            termination_log: options.termination_log()?,
        })
    }
}

fn host_and_port(options: &mut Options) -> Result<String, ArgumentError> {
    let value = options.required(OPERATOR)?;
    let is_address = value.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty()
            && !host.contains(char::is_whitespace)
            && is_number(port)
            && port.parse::<u16>().is_ok()
    });
    if is_address {
        Ok(value)
    } else {
        Err(options.invalid(
            OPERATOR,
            value,
            "must be a host and a port, as in `10.0.0.1:8443`",
        ))
    }
}

fn authority(options: &mut Options) -> Result<String, ArgumentError> {
    let value = options.required(AUTHORITY)?;
    let is_base64 = !value.is_empty()
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    if is_base64 {
        Ok(value)
    } else {
        Err(options.invalid(AUTHORITY, value, "must be a certificate's PEM in base64"))
    }
}

/// Kernelspec names as jupyter_client takes them: one name of a folder.
fn kernels(options: &mut Options) -> Result<Vec<String>, ArgumentError> {
    let names = options.repeated(KERNEL);
    for (index, name) in names.iter().enumerate() {
        let is_name = !name.is_empty()
            && !name.starts_with('.')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
        if !is_name {
            let expected = "must be a kernelspec's name: letters, digits, `.`, `_` and `-`";
            return Err(options.invalid(KERNEL, name.clone(), expected));
        }
        if names[..index].contains(name) {
            return Err(options.invalid(KERNEL, name.clone(), "was named before"));
        }
    }
    Ok(names)
}

fn port(options: &mut Options) -> Result<u16, ArgumentError> {
    let value = options.required(PORT)?;
    match value.parse() {
        Ok(port) if is_number(&value) => Ok(port),
        _ => Err(options.invalid(PORT, value, "must be a TCP port")),
    }
}

/// `u16::from_str` also takes a leading plus sign, which would make two spellings of one command line.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
