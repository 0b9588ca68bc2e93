//! etcd and the API server alone: enough for schemas, admission and everything else that needs no pod to run. They need neither root nor
//! namespaces, listen on free ports of the loopback interface and end with their handle.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use tempfile::TempDir;

use super::certificates::Authority;
use super::components::{CommandLine, ControlPlane};
use super::{command, programs};

/// A running API server, which ends when this is dropped.
pub(crate) struct ApiServer {
    // Fields are dropped in this order: the folder goes last.
    server: Running,
    etcd: Running,
    folder: TempDir,
}

impl ApiServer {
    /// Starts etcd and an API server without any object of an earlier one, and waits until it is ready.
    ///
    /// Without controllers some things stay undone: a deleted namespace keeps its objects, and pods need no service account.
    ///
    /// The programs also end, under Linux, when the thread that called this ends, so that not even a killed process leaves them behind.
    pub(crate) fn start() -> Result<Self> {
        let target = crate::checkout().join("target");
        fs::create_dir_all(&target)?;
        let folder = tempfile::Builder::new()
            .prefix("api-server-")
            .tempdir_in(target)?;
        let authority = Authority::at(folder.path().join("pki"));
        authority.create()?;
        authority.issue(
            "kube-apiserver",
            "/CN=kube-apiserver",
            &["IP:127.0.0.1".to_owned(), "DNS:localhost".to_owned()],
        )?;
        authority.issue("admin", "/O=system:masters/CN=admin", &[])?;
        let [port, client, peer] = free_ports()?;
        let data = folder.path().join("etcd");
        let control_plane = ControlPlane {
            authority: &authority,
            data: &data,
            address: Ipv4Addr::LOCALHOST,
            port,
            etcd_ports: [client, peer],
            services: "10.96.0.0/16".to_owned(),
        };
        authority.write_kubeconfig("admin", &control_plane.server(), &kubeconfig(folder.path()))?;
        let etcd = Running::start(&control_plane.etcd()?, folder.path().join("etcd.log"))?;
        let server = Running::start(
            &control_plane.api_server(&[
                // Nobody makes the service accounts that pods would be given.
                "--disable-admission-plugins=ServiceAccount".to_owned(),
                // The Service `kubernetes` may not point to a loopback address.
                "--endpoint-reconciler-type=none".to_owned(),
                format!("--cert-dir={}", folder.path().display()),
            ])?,
            folder.path().join("kube-apiserver.log"),
        )?;
        let mut this = Self { server, etcd, folder };
        this.wait()?;
        Ok(this)
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        kubeconfig(self.folder.path())
    }

    fn wait(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_mins(1);
        let kubeconfig = self.kubeconfig();
        loop {
            if command::output(programs::kubectl(&kubeconfig)?.args(["get", "--raw", "/readyz"])).is_ok() {
                return Ok(());
            }
            self.etcd.check()?;
            self.server.check()?;
            if Instant::now() > deadline {
                bail!(
                    "the API server did not become ready in a minute: {}",
                    self.server.last_words()
                );
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn kubeconfig(folder: &Path) -> PathBuf {
    folder.join("kubeconfig")
}

/// Three free ports. All are held until the last one is known, so that they differ.
fn free_ports() -> Result<[u16; 3]> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners = [listen()?, listen()?, listen()?];
    let [first, second, third] = &listeners;
    Ok([
        first.local_addr()?.port(),
        second.local_addr()?.port(),
        third.local_addr()?.port(),
    ])
}

/// A program that is ended when this is dropped.
struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    fn start(program: &CommandLine, log: PathBuf) -> Result<Self> {
        let output = fs::File::create(&log)?.into_parts().0;
        let mut command = if cfg!(target_os = "linux") {
            let mut command = command::command("setpriv");
            command.args(["--pdeathsig", "KILL", "--"]).args(program);
            command
        } else {
            let (name, arguments) = program.split_first().context("no program")?;
            let mut command = command::command(name);
            command.args(arguments);
            command
        };
        let child = command
            // A proxy cannot reach this machine.
            .env("NO_PROXY", "*")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("starting a part of the API server")?;
        Ok(Self { child, log })
    }

    /// Fails if the program has ended.
    fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        bail!(
            "the API server cannot start, as one of its programs ended ({status}): {}",
            self.last_words()
        )
    }

    fn last_words(&self) -> String {
        command::tail(&self.log)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only for a program that has already ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs a command with `KUBECONFIG` set to an API server of its own, and gives its exit status.
pub(super) fn run_with(program: &[std::ffi::OsString]) -> Result<std::process::ExitStatus> {
    let (name, arguments) = program.split_first().context("no command was given")?;
    let server = ApiServer::start()?;
    Command::new(name)
        .args(arguments)
        .env("KUBECONFIG", server.kubeconfig())
        .env("KUBECACHEDIR", server.folder.path().join("cache"))
        .status()
        .with_context(|| format!("{} could not be started", name.display()))
}
