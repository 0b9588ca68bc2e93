//! A session's pod without a cluster: the runner, its identity, its volumes.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codeworkspace_protocol::session::{BindRequest, BindResponse, GATEWAY_NAME, SESSION_NAME, path};
use codeworkspace_protocol::{RunRecord, ServeArguments, layout};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::client::Client;
use crate::fixture::RUNNER;

/// The kernelspec that the tests install; the runner must not expect a particular name.
pub const PYTHON: &str = "test-python";

/// A certificate authority, as the operator keeps one.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// Certificate and key of somebody, PEM.
#[derive(Clone)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(parameters, key).unwrap(),
        }
    }

    pub fn issue(&self, name: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new([name.to_owned()]).unwrap();
        Identity {
            certificate: parameters.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// As it stands on command lines.
    pub fn argument(&self) -> String {
        STANDARD.encode(self.pem())
    }
}

/// What a test wants of its pod.
pub struct Options {
    pub kernels: Vec<String>,
    pub bind: Option<BindRequest>,
    /// The beginning of the runner's command line; its process is signalled then, and not the runner.
    pub wrapper: Vec<String>,
    /// Numeric id of the runner's user, if it is not the tests' own.
    pub user: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kernels: vec![PYTHON.to_owned()],
            bind: Some(binding()),
            wrapper: Vec::new(),
            user: None,
        }
    }
}

pub fn binding() -> BindRequest {
    BindRequest {
        session: "session1".to_owned(),
        commands: true,
        idle_timeout_seconds: None,
        bundle: None,
    }
}

/// A running `runner serve`. It is killed, with all of its processes, when the test drops it.
pub struct Pod {
    pub directory: TempDir,
    pub authority: Authority,
    pub client: Client,
    /// The runner's own certificate, PEM.
    pub certificate: String,
    pub port: u16,
    wrapped: bool,
    runner: Child,
}

impl Pod {
    /// With a kernel, bound to a session.
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    /// Without kernels, which is quicker.
    pub async fn bare() -> Self {
        Self::with(Options {
            kernels: Vec::new(),
            ..Options::default()
        })
        .await
    }

    pub async fn with(options: Options) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let own = own_identity();
        let mut runner = command(directory.path(), &authority, &own, options.kernels);
        if let Some((program, words)) = options.wrapper.split_first() {
            let mut wrapped = Command::new(program);
            wrapped
                .args(words)
                .arg(runner.get_program())
                .args(runner.get_args());
            wrapped.envs(runner.get_envs().filter_map(|(name, value)| Some((name, value?))));
            wrapped.stdin(Stdio::null()).stderr(Stdio::piped());
            runner = wrapped;
        }
        if let Some(user) = options.user {
            give_to(directory.path(), user);
            runner.uid(user).gid(user);
        }
        let mut runner = runner.spawn().unwrap();
        let mut said = BufReader::new(runner.stderr.take().unwrap()).lines();
        let mut words = String::new();
        let port = loop {
            let Some(line) = said.next() else {
                panic!("the runner ended: {words}{}", log(directory.path()));
            };
            let line = line.unwrap();
            if let Some(port) = line.strip_prefix("runner: the session is served at port ") {
                break port.parse().unwrap();
            }
            words.push_str(&line);
        };
        // The rest is read, so that the runner never waits for it.
        std::thread::spawn(move || for _ in said {});
        let client = Client::new(port, &own.certificate, &authority.issue(GATEWAY_NAME));
        if let Some(bind) = options.bind {
            let _: BindResponse = client.post(path::BIND, &bind).await.unwrap();
        }
        Self {
            directory,
            authority,
            client,
            certificate: own.certificate,
            port,
            wrapped: !options.wrapper.is_empty(),
            runner,
        }
    }

    pub fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    pub fn runner_id(&self) -> Pid {
        Pid::from_child(&self.runner)
    }

    /// Waits for the runner's own end.
    pub fn ended(&mut self) -> (Option<i32>, RunRecord) {
        let status = self.runner.wait().unwrap();
        (
            status.code(),
            RunRecord::parse(&log(self.directory.path())).unwrap(),
        )
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        // Asked, it ends what it started; killed, it could not.
        if matches!(self.runner.try_wait(), Ok(None)) {
            // What wraps a runner takes it with it.
            let signal = if self.wrapped { Signal::KILL } else { Signal::TERM };
            let _ = kill_process(Pid::from_child(&self.runner), signal);
            let _ = self.runner.wait();
        }
    }
}

fn give_to(path: &Path, user: u32) {
    std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() {
        for entry in fs_err::read_dir(path).unwrap() {
            give_to(&entry.unwrap().path(), user);
        }
    }
}

fn log(directory: &Path) -> String {
    fs_err::read_to_string(directory.join("termination-log")).unwrap_or_default()
}

/// What `runner register` makes.
pub fn own_identity() -> Identity {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new([SESSION_NAME.to_owned()]).unwrap();
    Identity {
        certificate: parameters.self_signed(&key).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

/// The runner as process 1 of its container would be started, in a directory that has all of its volumes.
pub fn command(directory: &Path, authority: &Authority, own: &Identity, kernels: Vec<String>) -> Command {
    let folder = |name: &str| {
        let folder = directory.join(name);
        fs_err::create_dir_all(&folder).unwrap();
        folder.display().to_string()
    };
    let identity = folder("identity");
    fs_err::write(
        Path::new(&identity).join(layout::CERTIFICATE_FILE),
        &own.certificate,
    )
    .unwrap();
    fs_err::write(Path::new(&identity).join(layout::KEY_FILE), &own.key).unwrap();
    let arguments = ServeArguments {
        identity,
        authority: authority.argument(),
        root: folder("root"),
        kernels,
        port: 0,
        termination_log: directory.join("termination-log").display().to_string(),
    };
    let mut command = Command::new(RUNNER);
    command
        .args(arguments.to_args())
        .env("JUPYTER_PATH", jupyter_path(directory))
        .env("IPYTHONDIR", folder("ipython"))
        .env("ROOT", folder("root"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Installs the kernelspec of the tests' own Python.
fn jupyter_path(directory: &Path) -> PathBuf {
    let folder = directory.join("jupyter");
    let kernel = folder.join("kernels").join(PYTHON);
    fs_err::create_dir_all(&kernel).unwrap();
    let spec = serde_json::json!({
        "argv": [python(), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python", "language": "python", "env": {"FROM_SPEC": "yes"},
    });
    fs_err::write(kernel.join("kernel.json"), spec.to_string()).unwrap();
    folder
}

/// A Python that has ipykernel: the machine's, or else one in a virtual environment that is made once and kept in the user's cache.
fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let system = PathBuf::from("python3");
        if has_ipykernel(&system) {
            return system;
        }
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
            .expect("XDG_CACHE_HOME or HOME says where the tests keep their kernel");
        let environment = cache.join("codeworkspace-dev/ipykernel");
        let python = environment.join("bin/python3");
        if !has_ipykernel(&python) {
            fs_err::create_dir_all(&cache).unwrap();
            run(Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&environment));
            run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "ipykernel==7.*"]));
        }
        python
    })
}

fn has_ipykernel(python: &Path) -> bool {
    Command::new(python)
        .args(["-c", "import ipykernel_launcher"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "these tests need a Jupyter kernel: install python3 with venv and pip, or the package python3-ipykernel ({command:?}: {status:?})"
    );
}
