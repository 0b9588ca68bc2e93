//! `cluster up`: from whatever is there to a cluster that is ready.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde_json::json;

use super::archive::Image;
use super::command::{self, run};
use super::components::{Components, NODE, authority};
use super::control_groups::ControlGroups;
use super::instance::{INSTANCES, Instance};
use super::lock::Lock;
use super::namespaces::{self, Namespace};
use super::network::{self, Network, Range};
use super::processes::{self, Started};
use super::progress::Progress;
use super::{cache, packages, programs, stop};

/// How long one thing may take to become ready. A busy machine takes a fifth of it.
const PATIENCE: Duration = Duration::from_mins(3);

/// Written when a start is complete: a hash of the programs, arguments and configuration that it used.
const DESCRIPTION: &str = "description";

/// Makes sure that the cluster runs. One that runs is left alone; a half of one is cleared away first.
pub(super) fn up(instance: &Instance) -> Result<()> {
    let _lock = lock(instance)?;
    if ready(instance) {
        eprintln!("the cluster runs");
        return Ok(());
    }
    let started = Instant::now();
    packages::install_missing()?;
    for name in Components::NAMES
        .into_iter()
        .filter(|name| *name != "containerd")
        .chain(["coredns"])
    {
        programs::program(name)?;
    }
    if stop::anything_left(instance)? {
        eprintln!(
            "clearing away a cluster that is incomplete, about to expire, or of another version of this checkout"
        );
        stop::remove(instance)?;
    }
    eprintln!("starting the cluster");
    Start::new(instance)?.run()?;
    eprintln!("the cluster is ready after {} s", started.elapsed().as_secs());
    Ok(())
}

/// Held while a cluster is started or removed.
pub(super) fn lock(instance: &Instance) -> Result<Lock> {
    let path = cache::folder()?.join(format!("instance-{}.lock", instance.id()));
    Lock::take(
        &path,
        "another command that starts or removes this checkout's cluster",
    )
}

/// Whether the whole cluster runs as this checkout describes it, and will for some time.
fn ready(instance: &Instance) -> bool {
    let described = || Components::new(instance, reserved_network(instance)?).description();
    let completed = fs::read_to_string(instance.path(DESCRIPTION)).ok();
    completed.is_some()
        && completed == described().ok()
        && Components::NAMES
            .into_iter()
            .all(|name| processes::running(instance, name).is_some())
        && !authority(instance).expires_soon()
        && node_is_ready(instance)
        && dns_is_ready(instance)
}

/// Runs kubectl against the cluster.
pub(super) fn kubectl(instance: &Instance, arguments: &[&str]) -> Result<String> {
    command::output(programs::kubectl(&instance.kubeconfig())?.args(arguments))
}

/// Whether the API server is ready.
pub(super) fn api_answers(instance: &Instance) -> bool {
    kubectl(instance, &["get", "--raw", "/readyz"]).is_ok()
}

fn node_is_ready(instance: &Instance) -> bool {
    let path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
    kubectl(instance, &["get", "node", NODE, "--output", path]).is_ok_and(|status| status == "True")
}

fn dns_is_ready(instance: &Instance) -> bool {
    let path = "jsonpath={.status.readyReplicas}";
    kubectl(
        instance,
        &[
            "get",
            "deployment",
            "coredns",
            "--namespace=kube-system",
            "--output",
            path,
        ],
    )
    .is_ok_and(|count| count == "1")
}

/// A start that is under way.
struct Start<'a> {
    instance: &'a Instance,
    components: Components<'a>,
    started: Vec<Started>,
}

impl<'a> Start<'a> {
    fn new(instance: &'a Instance) -> Result<Self> {
        let network = reserve_network(instance)?;
        for folder in ["log", "processes", "configuration"] {
            fs::create_dir_all(instance.path(folder))?;
        }
        namespaces::create(instance, network)?;
        ControlGroups::of(instance)?.create()?;
        Ok(Self {
            instance,
            components: Components::new(instance, network),
            started: Vec::new(),
        })
    }

    fn run(mut self) -> Result<()> {
        self.components.configure()?;
        for name in ["etcd", "kube-apiserver", "containerd"] {
            self.start(name)?;
        }
        self.load_images()?;
        let instance = self.instance;
        self.wait("the API server", || api_answers(instance))?;
        for name in [
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "kube-proxy",
        ] {
            self.start(name)?;
        }
        let objects = self.components.dns_objects_file();
        kubectl(
            instance,
            &["apply", "--server-side", "--filename", &objects.to_string_lossy()],
        )?;
        // kube-router ends if its node is not registered.
        self.wait("the node", || kubectl(instance, &["get", "node", NODE]).is_ok())?;
        self.start("kube-router")?;
        self.wait("the node", || node_is_ready(instance))?;
        self.wait("DNS", || dns_is_ready(instance))?;
        // kube-router makes its chains when it first looks at the policies.
        self.wait("the enforcement of network policies", || {
            let arguments = ["--list-rules", "KUBE-ROUTER-FORWARD"];
            command::output(namespaces::enter(instance, &[Namespace::Network], "iptables").args(arguments))
                .is_ok()
        })?;
        self.wait("the default service account", || {
            kubectl(instance, &["get", "serviceaccount", "default"]).is_ok()
        })?;
        Ok(fs::write(
            instance.path(DESCRIPTION),
            self.components.description()?,
        )?)
    }

    fn start(&mut self, name: &'static str) -> Result<()> {
        let program = self.components.command_line(name)?;
        self.started
            .push(processes::start(self.instance, name, &program)?);
        Ok(())
    }

    /// Waits until `ready`. A component that ends meanwhile is an error at once.
    fn wait(&mut self, what: &str, ready: impl Fn() -> bool) -> Result<()> {
        let waiting = format!("waiting for {what}");
        let mut progress = Progress::of(&waiting);
        while !ready() {
            for component in &mut self.started {
                component.check()?;
            }
            if progress.elapsed() > PATIENCE {
                bail!(
                    "{what} did not become ready in {} s; see the logs in {}",
                    PATIENCE.as_secs(),
                    self.instance.path("log").display()
                );
            }
            progress.tick();
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn load_images(&mut self) -> Result<()> {
        let instance = self.instance;
        self.wait("containerd", || {
            run(
                "ctr",
                [
                    "--address".as_ref(),
                    instance.containerd_socket().as_os_str(),
                    "version".as_ref(),
                ],
            )
            .is_ok()
        })?;
        let folder = instance.path("images");
        fs::create_dir_all(&folder)?;
        for (name, image) in [
            ("pause", pause(&folder)?),
            ("busybox", busybox()?),
            ("coredns", coredns()?),
        ] {
            let archive = folder.join(name).with_extension("tar");
            image.write(fs::File::create(&archive)?)?;
            import(instance, &archive)?;
        }
        Ok(fs::remove_dir_all(&folder)?)
    }
}

/// Imports an archive in the format of `docker save` into the cluster's containerd.
pub(super) fn import(instance: &Instance, archive: &Path) -> Result<String> {
    command::output(
        command::command("ctr")
            .arg("--address")
            .arg(instance.containerd_socket())
            .args(["--namespace=k8s.io", "images", "import"])
            .arg(archive),
    )
    .with_context(|| format!("loading {}", archive.display()))
}

/// Picks addresses that no neighbour has and writes them down where neighbours look.
fn reserve_network(instance: &Instance) -> Result<Network> {
    let _lock = Lock::take(
        &cache::folder()?.join("networks.lock"),
        "another checkout's start",
    )?;
    let mut taken = network::routed(&run("ip", ["-4", "route", "show", "table", "all"])?);
    fs::create_dir_all(INSTANCES)?;
    for other in fs::read_dir(INSTANCES)? {
        // A start that was killed may have left half a note; it holds no addresses then.
        let note = fs::read_to_string(other?.path().join("network"));
        taken.extend(note.ok().and_then(|note| note.parse().ok()).map(Range::of));
    }
    let network = network::choose(instance, &taken)?;
    fs::create_dir_all(instance.directory())?;
    fs::write(instance.path("network"), network.number().to_string())?;
    Ok(network)
}

/// The network that [`reserve_network`] picked.
fn reserved_network(instance: &Instance) -> Result<Network> {
    fs::read_to_string(instance.path("network"))?.parse()
}

/// What holds a pod's namespaces. Compiled here: it is twenty lines, and a C compiler is part of every Rust installation.
fn pause(folder: &Path) -> Result<Image> {
    let (source, program) = (folder.join("pause.c"), folder.join("pause"));
    fs::write(&source, include_str!("../../../cluster/node/pause.c"))?;
    command::output(
        command::command("cc")
            .args(["-static", "-Os", "-o"])
            .args([&program, &source]),
    )?;
    let mut image = Image::new("localhost/pause:dev", json!({ "Entrypoint": ["/pause"] }));
    image.program("pause", &fs::read(&program)?)?;
    Ok(image)
}

/// A shell with the usual small programs, for tests.
fn busybox() -> Result<Image> {
    let program = packages::static_busybox()?;
    let mut image = Image::new(
        "localhost/busybox:dev",
        json!({ "Cmd": ["sh"], "Env": ["PATH=/bin"] }),
    );
    image.open_folder("tmp/")?;
    image.program("bin/busybox", &fs::read(&program)?)?;
    for name in command::output(command::command(&program).arg("--list"))?
        .lines()
        .filter(|name| *name != "busybox")
    {
        image.link(&format!("bin/{name}"), "busybox")?;
    }
    Ok(image)
}

fn coredns() -> Result<Image> {
    let mut image = Image::new("localhost/coredns:dev", json!({ "Entrypoint": ["/coredns"] }));
    image.program("coredns", &fs::read(programs::program("coredns")?)?)?;
    Ok(image)
}
