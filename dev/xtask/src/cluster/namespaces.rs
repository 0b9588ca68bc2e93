//! The cluster's network namespace and mount namespace.
//!
//! The network namespace keeps its packets and its iptables rules apart from the machine's. The mount namespace gives the programs a `/run`,
//! `/var/lib` and `/var/log` of their own: kubelet, containerd and the network plugins have paths there that cannot be configured, and all
//! that they mount vanishes with the namespace.

use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;

use super::command::{self, run};
use super::instance::Instance;
use super::network::Network;

/// Settings of the kernel that kubelet insists on. They belong to the whole machine, so kubelet is shown files that already say so.
const KERNEL_SETTINGS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1\n"),
    ("vm/panic_on_oom", "0\n"),
    ("kernel/panic", "10\n"),
    ("kernel/panic_on_oops", "1\n"),
    ("kernel/keys/root_maxkeys", "1000000\n"),
    ("kernel/keys/root_maxbytes", "25000000\n"),
];

/// Makes both namespaces and connects the network namespace with the machine.
pub(super) fn create(instance: &Instance, network: Network) -> Result<()> {
    // Files that pin mount namespaces must lie on a mount that is not shared with others.
    let pins = instance.path("namespaces");
    fs::create_dir_all(&pins)?;
    mount(["--bind".as_ref(), pins.as_os_str(), pins.as_os_str()])?;
    mount(["--make-private".as_ref(), pins.as_os_str()])?;
    create_mounts(instance)?;
    create_network(instance, network)
}

fn create_mounts(instance: &Instance) -> Result<()> {
    for folder in ["node/run", "node/var/log", "node/settings"] {
        fs::create_dir_all(instance.path(folder))?;
    }
    let own = instance
        .path("node/var/lib")
        .join(instance.directory().strip_prefix("/var/lib")?);
    fs::create_dir_all(&own)?;

    let pin = instance.mount_namespace();
    fs::write(&pin, "")?;
    // What the machine mounts and unmounts later happens inside as well; what is mounted inside stays inside.
    run(
        "unshare",
        [
            &format!("--mount={}", pin.display()),
            "--propagation=slave",
            "true",
        ],
    )?;

    let inside = |source: &Path, target: &Path| -> Result<()> {
        command::output(
            enter(instance, &[Namespace::Mount], "mount")
                .arg("--bind")
                .args([source, target]),
        )
        .map(drop)
    };
    for (index, (name, value)) in KERNEL_SETTINGS.iter().enumerate() {
        let target = Path::new("/proc/sys").join(name);
        if target.exists() {
            let source = instance.path("node/settings").join(index.to_string());
            fs::write(&source, value)?;
            inside(&source, &target)?;
        }
    }
    // The cluster's own folder stays where everyone knows it, although the folder above it is replaced.
    inside(&instance.directory(), &own)?;
    inside(&instance.path("node/run"), Path::new("/run"))?;
    inside(&instance.path("node/var/log"), Path::new("/var/log"))?;
    command::output(
        enter(instance, &[Namespace::Mount], "mount")
            .arg("--rbind")
            .args([&instance.path("node/var/lib"), Path::new("/var/lib")]),
    )?;
    // Pods may ask for mount propagation, which needs shared mounts; they are shared inside this namespace only.
    command::output(enter(instance, &[Namespace::Mount], "mount").args(["--make-rshared", "/"])).map(drop)
}

fn mount<'a>(arguments: impl IntoIterator<Item = &'a std::ffi::OsStr>) -> Result<()> {
    run("mount", arguments).map(drop)
}

fn create_network(instance: &Instance, network: Network) -> Result<()> {
    let namespace = instance.network_namespace();
    fs::write(&namespace, "")?;
    let namespace = namespace.display();
    let link = instance.link();
    let ip = |arguments: &str| run("ip", arguments.split(' ')).map(drop);
    let inside = |arguments: &str| {
        command::output(enter(instance, &[Namespace::Network], "ip").args(arguments.split(' '))).map(drop)
    };
    run("unshare", [&format!("--net={namespace}"), "true"])?;
    ip(&format!(
        "link add {link} type veth peer name eth0 netns {namespace}"
    ))?;
    // Should the machine be a router: nothing that comes out of the cluster is passed on.
    fs::write(format!("/proc/sys/net/ipv4/conf/{link}/forwarding"), "0")?;
    let without_ipv6 = format!("/proc/sys/net/ipv6/conf/{link}/disable_ipv6");
    if Path::new(&without_ipv6).exists() {
        fs::write(without_ipv6, "1")?;
    }
    ip(&format!("addr add {}/30 dev {link}", network.machine()))?;
    ip(&format!("link set {link} up"))?;
    inside("link set lo up")?;
    inside(&format!("addr add {}/30 dev eth0", network.node()))?;
    inside("link set eth0 up")?;
    // The route only has to exist: kube-proxy rewrites the destination before a packet leaves.
    inside(&format!(
        "route add {} via {}",
        network.services(),
        network.machine()
    ))?;
    // Where the internet would be there is nothing, and programs are told so instead of waiting.
    inside("route add unreachable default")?;
    if !Path::new("/proc/sys/net/bridge").exists() {
        run("modprobe", ["br_netfilter"])
            .context("packets between pods pass no iptables rules without this")?;
    }
    for setting in ["net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"] {
        let write = format!("echo 1 > /proc/sys/{setting}");
        command::output(enter(instance, &[Namespace::Network], "sh").args(["-c", &write]))?;
    }
    // Pods and Services can be reached from the machine, and the machine from pods at its end of the cable.
    ip(&format!(
        "route add {} via {} dev {link}",
        network.all(),
        network.node()
    ))
}

/// What [`enter`] can enter.
#[derive(Clone, Copy)]
pub(super) enum Namespace {
    /// The network.
    Network,
    /// The mounts.
    Mount,
}

/// A command that runs `program` inside namespaces of the cluster. Unlike `ip netns exec`, `nsenter` adds no further mount namespace.
pub(super) fn enter(instance: &Instance, namespaces: &[Namespace], program: &str) -> std::process::Command {
    let mut command = command::command("nsenter");
    for namespace in namespaces {
        command.arg(match namespace {
            Namespace::Network => format!("--net={}", instance.network_namespace().display()),
            Namespace::Mount => format!("--mount={}", instance.mount_namespace().display()),
        });
    }
    command.args(["--", program]).current_dir("/");
    command
}

/// Whether the cable is there. Everything else shows in the cluster's folder.
pub(super) fn exist(instance: &Instance) -> bool {
    Path::new("/sys/class/net").join(instance.link()).exists()
}

/// Removes what [`create`] made, as far as it exists. No process may be left in the namespaces.
pub(super) fn remove(instance: &Instance) -> Result<()> {
    if exist(instance) {
        run("ip", ["link", "del", &instance.link()])?;
    }
    for path in mounts_below(
        &fs::read_to_string("/proc/self/mountinfo")?,
        &instance.directory(),
    ) {
        run("umount", [&path])?;
    }
    Ok(())
}

/// Mount points at or below a folder, innermost first.
pub(super) fn mounts_below(mounts: &str, folder: &Path) -> Vec<String> {
    let mut paths: Vec<String> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|path| Path::new(path).starts_with(folder))
        .map(str::to_owned)
        .collect();
    // Mounts are listed in the order in which they were made.
    paths.reverse();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mounts_of_the_clusters_own_folder_are_found_and_the_innermost_comes_first() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/vda rw\n\
                      2 1 8:1 /s/ns /var/lib/codeworkspace-dev/1/namespaces rw - ext4 /dev/vda rw\n\
                      3 2 0:4 mnt /var/lib/codeworkspace-dev/1/namespaces/mount rw - nsfs nsfs rw\n\
                      4 1 8:1 /s/ns /var/lib/codeworkspace-dev/12/namespaces rw - ext4 /dev/vda rw\n";
        assert_eq!(
            mounts_below(mounts, Path::new("/var/lib/codeworkspace-dev/1")),
            [
                "/var/lib/codeworkspace-dev/1/namespaces/mount",
                "/var/lib/codeworkspace-dev/1/namespaces"
            ]
        );
    }
}
